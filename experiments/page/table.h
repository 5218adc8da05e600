// Tables of a page: text, and numbers with their unit, their kind and their position in the report.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/report_field.h"
#include "experiments/page/chart.h"
#include "experiments/page/json_view.h"

namespace triptych::page {

/// Text, or a number with its format. A number without a value shows as "–".
struct Cell {
  std::string text;  ///< of a number: its own text where format_quantity()'s would not do
  std::optional<double> value;
  bool number = false;
  bool code = false;  ///< text as of a program: a hash, a command, a kernel
  std::string unit;
  std::string kind;  ///< of a ratio "measured/simulated": of the first time over the second
  std::string note;  ///< where it comes from, shown when pointed at
  Origin origin;
};

Cell text_cell(std::string text);
Cell code_cell(std::string text);
/// A cell of a figure {"value", "unit", "kind", "source"}.
Cell figure_cell(const JsonView& figure);
/// A cell of a plain number.
Cell number_cell(const JsonView& number, std::string unit = "1");
/// The quotient of two plain numbers of the report.
Cell quotient_cell(const JsonView& dividend, const JsonView& divisor, std::string unit,
                   std::string kind);
/// A cell of a ratio {"value", "kinds"}: "3.20×".
Cell ratio_cell(const JsonView& ratio);

struct Table {
  std::string id;  ///< unique within a page, also the name of the CSV file
  std::string caption;
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};

/// An empty table with columns named in `first` and a column for each field that has a name.
Table table_of(std::string id, std::string caption, std::vector<std::string> first,
               std::span<const ReportField> fields);
void add_columns(Table& table, std::span<const ReportField> fields);
/// A row of it: `first`, and the members of `object`.
std::vector<Cell> cells_of(std::vector<Cell> first, const JsonView& object,
                           std::span<const ReportField> fields);

/// Whether a column holds numbers. Those are right-aligned.
bool is_number_column(const Table& table, std::size_t column);

/// A mark and, for those who cannot see it, a word. "a/b" gives two. Empty for an empty kind.
std::string kind_badge(std::string_view kind);
/// The number as the page shows it, with its kind.
std::string cell_html(const Cell& cell);
/// A table that scrolls within itself where it is too wide, with the kinds that it holds explained
/// below it and a link to its CSV.
std::string table_html(const Table& table);

/// Comma-separated, every number with all its digits in the unit of its column's name. A column
/// with kinds is followed by one that names them.
std::string table_csv(const Table& table);

}  // namespace triptych::page
