// One JSON document for programs (docs/reference/json.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "experiments/page/json.h"

namespace triptych::app {

using page::Json;

/// Version of the JSON documents; grows when a field changes its meaning or goes away.
inline constexpr int kJsonSchema = 1;

/// Commit, versions of the compiler and the libraries, processor, threads, operating system.
Json environment_json();

/// The document {"schema", "command", "environment", "results"}.
Json document(std::string_view command, Json results);

/// Writes the document to standard output.
void print_document(std::string_view command, Json results);

}  // namespace triptych::app
