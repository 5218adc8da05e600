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

}  // namespace triptych::app
