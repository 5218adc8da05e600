// The page of `triptych reproduce`: the claims of the source documents, and the findings of this
// run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "experiments/page/json_view.h"

namespace triptych::studies {

/// The whole HTML file of a document with the results {"claims": [{"id", "claim", "source",
/// "verdict", "why", "rule", "commands", "tables", "charts"}], "summary"}. Charts and tables are as
/// in chart_json.h. Every number on it names its place in the document, which is embedded, as in
/// compare_page().
std::string reproduce_page(const page::Json& report);

}  // namespace triptych::studies
