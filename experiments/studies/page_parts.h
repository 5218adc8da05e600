// Tables and charts as the page reads them: {"title", "columns": [{"name", "unit"}], "rows"} and
// {"id", "title", "kind", "x", "y", "series"}.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/base/time_kind.h"
#include "experiments/machines/machine_figures.h"
#include "experiments/page/json.h"

namespace triptych::studies {

using page::Json;

/// {"value", "unit", "kind"}.
Json figure(double value, std::string_view unit, TimeKind kind);
Json figure(const machines::Figure& figure, std::string_view unit);
Json figure(Duration duration);
/// A quotient, "x" or of another unit, of numbers of these kinds: "measured/simulated".
Json ratio(double value, TimeKind of, TimeKind over, std::string_view unit = "x");

struct Column {
  std::string name;
  std::string unit;  ///< empty: words
};

/// Cells are words, numbers or figures.
Json table(std::string_view title, const std::vector<Column>& columns,
           std::vector<std::vector<Json>> rows);

struct Axis {
  std::string label, unit;
  bool log = false;
};

struct Series {
  std::string name;
  TimeKind kind = TimeKind::Measured;
  std::vector<std::pair<double, double>> points;
};

/// A chart of lines.
Json line_chart(std::string_view id, std::string_view title, const Axis& x, const Axis& y,
                const std::vector<Series>& series);

/// Bars by category.
struct Bars {
  std::string name;
  TimeKind kind = TimeKind::Measured;
  std::vector<std::pair<std::string, double>> bars;
};
/// Adds a bar to the series of the same kind.
void add_bar(std::vector<Bars>& series, TimeKind kind, const std::string& name, double value);
Json bar_chart(std::string_view id, std::string_view title, const Axis& y,
               const std::vector<Bars>& series);

}  // namespace triptych::studies
