// The page of `triptych reproduce`: what the source documents claim, and what is found here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "experiments/page/part.h"

namespace triptych::studies {

/// The whole HTML file of a document whose results are {"claims": [{"id", "claim", "source",
/// "verdict", "why", "rule", "commands", "tables", "charts"}], "summary"}; charts and tables as in
/// chart_json.h. Every number on it names its place in the document, which is embedded, as in
/// compare_page().
std::string reproduce_page(const page::Json& report);

}  // namespace triptych::studies
