// Charts and tables that a report holds as data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/page/chart.h"
#include "experiments/page/json_view.h"
#include "experiments/page/table.h"

namespace triptych::page {

/// {"id", "title", "kind": "line"|"scatter"|"bars"|"stack", "x": {"label", "unit", "scale"}, "y":
/// {…}, "series": [{"name", "kind", "points": [{"x", "y", "label"}]}], "lines": [{"name", "points":
/// [[x, y]]}]}. x of bars is a word. Points without a value are left out.
Chart chart_from(const JsonView& json);

/// All points of a chart, one per row.
Table points_table(const Chart& chart);

/// {"title", "columns": [{"name", "unit"}], "rows": [[word, number or figure]]}.
Table table_from(const JsonView& json, std::string id);

}  // namespace triptych::page
