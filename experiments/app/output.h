// The documents of measure/document.h on standard output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "experiments/measure/document.h"

namespace triptych::app {

using measure::document;
using measure::environment_json;
using measure::kJsonSchema;
using page::Json;

/// Writes the document to standard output.
void print_document(std::string_view command, Json results);
/// The same of a complete document.
void print_json(const Json& document);
/// The document of a command that failed. Nothing if it has printed one before.
void print_error_document(std::string_view command, int exit_code, std::string_view message);

}  // namespace triptych::app
