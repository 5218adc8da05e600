// The page of `triptych compare`: one experiment on several machines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "experiments/page/json_view.h"

namespace triptych::compare {

/// The whole HTML file of a document {"schema", "command", "environment", "results"}, its results
/// as docs/reference/json.md describes those of `compare`. Every number on it comes from the
/// document, which is embedded: the element that shows a number names it by a JSON pointer in
/// `data-path` (a quotient also its divisor's in `data-over`). The page marks missing parts.
std::string compare_page(const page::Json& report);

}  // namespace triptych::compare
