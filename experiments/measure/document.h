// One JSON document for programs (docs/reference/json.md): the results and their source.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "experiments/page/json.h"

namespace triptych::measure {

/// Version of the JSON documents. Grows when a field changes its meaning or goes away.
inline constexpr int kJsonSchema = 1;

/// Commit, versions of the compiler and the libraries, processor, threads, operating system.
page::Json environment_json();

/// The document {"schema", "command", "environment", "results"}, all of it valid UTF-8.
page::Json document(std::string_view command, page::Json results);

}  // namespace triptych::measure
