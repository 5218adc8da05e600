// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/csv_text.h"
#include "experiments/page/format.h"

namespace triptych::page {
namespace {

std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string shown(const Cell& cell) {
  if (!cell.number) return cell.text;
  if (!cell.value) return "–";
  return cell.text.empty() ? format_quantity(*cell.value, cell.unit) : cell.text;
}

/// Units of a column's numbers.
std::set<std::string> units(const Table& table, std::size_t column) {
  std::set<std::string> found;
  for (const auto& row : table.rows) {
    if (column < row.size() && row[column].number && row[column].value) {
      found.insert(row[column].unit);
    }
  }
  return found;
}

bool has_kinds(const Table& table, std::size_t column) {
  return std::ranges::any_of(table.rows, [&](const auto& row) {
    return column < row.size() && row[column].number && !row[column].kind.empty();
  });
}

/// As a CSV and a reader of one know the unit.
std::string csv_unit(std::string_view unit) {
  if (unit == "x" || unit == "%") return "1";
  return std::string(unit);
}

/// The CSV text of a column's numbers.
struct CsvColumn {
  bool mixed_units = false;  ///< then each has its own, in a column after it
  bool kinds = false;
};

CsvColumn csv_column(const Table& table, std::size_t column) {
  return {units(table, column).size() > 1, has_kinds(table, column)};
}

std::vector<std::string> csv_names(const Table& table) {
  std::vector<std::string> names;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const auto& name = table.columns[c];
    const auto found = units(table, c);
    const auto unit = found.size() == 1 ? csv_unit(*found.begin()) : "";
    const bool plain = unit.empty() || unit == "1";
    names.push_back(plain ? name : fmt::format("{} [{}]", name, unit));
    if (csv_column(table, c).mixed_units) names.push_back(fmt::format("{} unit", name));
    if (csv_column(table, c).kinds) names.push_back(fmt::format("{} kind", name));
  }
  return names;
}

std::vector<std::string> csv_row(const std::vector<Cell>& row,
                                 const std::vector<CsvColumn>& columns) {
  std::vector<std::string> fields;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const auto cell = c < row.size() ? row[c] : Cell{};
    const auto number = cell.value ? format_exact(*cell.value) : "";
    fields.push_back(cell.number ? number : cell.text);
    if (columns[c].mixed_units) fields.push_back(csv_unit(cell.unit));
    if (columns[c].kinds) fields.push_back(cell.kind);
  }
  return fields;
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const auto& field : fields) {
    if (&field != &fields.front()) line += ',';
    line += csv_text(field);
  }
  return line + '\n';
}

std::string percent_encoded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ||
                       c == '_' || c == '~';
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

std::string header_html(const Table& table) {
  std::string html = "<thead><tr>";
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    html += fmt::format("<th scope=\"col\"{}>{}</th>",
                        is_number_column(table, c) ? " class=\"n\"" : "", escape(table.columns[c]));
  }
  return html + "</tr></thead>\n";
}

std::string row_html(const Table& table, const std::vector<Cell>& row) {
  std::string html = "<tr>";
  for (std::size_t c = 0; c < row.size(); ++c) {
    const bool head = c == 0 && !row[c].number && !row[c].code;
    constexpr std::size_t line = 36;  // letters. Longer text may break
    const char* css = is_number_column(table, c)  ? " class=\"n\""
                      : row[c].text.size() > line ? " class=\"long\""
                                                  : "";
    html += head ? fmt::format("<th scope=\"row\">{}</th>", cell_html(row[c]))
                 : fmt::format("<td{}>{}</td>", css, cell_html(row[c]));
  }
  return html + "</tr>\n";
}

/// Legend of the marks of this table's kinds.
std::string kinds_html(const Table& table) {
  std::string html;
  for (const char* kind : {"measured", "simulated", "modelled", "recorded"}) {
    const bool held = std::ranges::any_of(table.rows, [&](const auto& row) {
      return std::ranges::any_of(row, [&](const Cell& cell) {
        return cell.value && cell.kind.find(kind) != std::string::npos;
      });
    });
    if (held) html += fmt::format("<span class=\"key\">{}{}</span>", kind_badge(kind), kind);
  }
  return html;
}

}  // namespace

Cell text_cell(std::string text) {
  Cell cell;
  cell.text = std::move(text);
  return cell;
}

Cell code_cell(std::string text) {
  Cell cell = text_cell(std::move(text));
  cell.code = true;
  return cell;
}

Cell number_cell(const JsonView& number, std::string unit) {
  Cell cell;
  cell.number = true;
  cell.value = finite(number.number());
  cell.unit = std::move(unit);
  cell.origin.path = number.path();
  return cell;
}

Cell figure_cell(const JsonView& figure) {
  Cell cell = number_cell(figure["value"], figure["unit"].text());
  cell.kind = figure["kind"].text();
  cell.note = figure["source"].text();
  return cell;
}

Cell quotient_cell(const JsonView& dividend, const JsonView& divisor, std::string unit,
                   std::string kind) {
  Cell cell = number_cell(dividend, std::move(unit));
  cell.value = finite(dividend.number() / divisor.number());
  cell.kind = std::move(kind);
  cell.origin.over = divisor.path();
  return cell;
}

Cell ratio_cell(const JsonView& ratio) {
  Cell cell = number_cell(ratio["value"], "x");
  const auto kinds = ratio["kinds"];
  if (kinds.size() == 2) cell.kind = kinds[0].text() + "/" + kinds[1].text();
  return cell;
}

Table table_of(std::string id, std::string caption, std::vector<std::string> first,
               std::span<const ReportField> fields) {
  Table table{.id = std::move(id), .caption = std::move(caption), .columns = std::move(first)};
  add_columns(table, fields);
  return table;
}

void add_columns(Table& table, std::span<const ReportField> fields) {
  for (const auto& field : fields)
    if (*field.name != 0) table.columns.emplace_back(field.name);
}

std::vector<Cell> cells_of(std::vector<Cell> first, const JsonView& object,
                           std::span<const ReportField> fields) {
  for (const auto& field : fields)
    if (*field.name != 0) first.push_back(number_cell(object[field.key], field.unit));
  return first;
}

bool is_number_column(const Table& table, std::size_t column) {
  return std::ranges::any_of(
      table.rows, [&](const auto& row) { return column < row.size() && row[column].number; });
}

std::string kind_badge(std::string_view kind) {
  if (kind.empty()) return "";
  const auto slash = kind.find('/');
  if (slash != std::string_view::npos) {
    return kind_badge(kind.substr(0, slash)) + kind_badge(kind.substr(slash + 1));
  }
  return fmt::format(
      "<span class=\"kind {0}\" title=\"{0}\"><span class=\"spoken\"> {0}</span></span>",
      escape(kind));
}

std::string cell_html(const Cell& cell) {
  const auto text = escape(shown(cell));
  if (!cell.number) return cell.code ? fmt::format("<code>{}</code>", text) : text;
  if (!cell.value) return "<span class=\"none\">–</span>";
  std::string attributes;
  if (!cell.origin.path.empty()) {
    attributes = fmt::format(" data-value=\"{}\" data-path=\"{}\"", format_exact(*cell.value),
                             escape(cell.origin.path));
  }
  if (!cell.origin.over.empty())
    attributes += fmt::format(" data-over=\"{}\"", escape(cell.origin.over));
  if (!cell.note.empty()) attributes += fmt::format(" title=\"{}\"", escape(cell.note));
  return fmt::format("<span class=\"figure\"><data value=\"{}\"{}>{}</data>{}</span>",
                     format_exact(*cell.value), attributes, text, kind_badge(cell.kind));
}

std::string table_html(const Table& table) {
  std::string html = fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">\n"
      "<table id=\"{1}\">\n<caption>{0}</caption>\n{2}<tbody>\n",
      escape(table.caption), escape(table.id), header_html(table));
  for (const auto& row : table.rows) html += row_html(table, row);
  html += fmt::format(
      "</tbody>\n</table>\n</div>\n<p class=\"under\">{}<a class=\"csv\" download=\"{}.csv\" "
      "href=\"data:text/csv;charset=utf-8,{}\">CSV</a></p>\n",
      kinds_html(table), escape(table.id), percent_encoded(table_csv(table)));
  return html;
}

std::string table_csv(const Table& table) {
  std::vector<CsvColumn> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c) columns.push_back(csv_column(table, c));
  auto csv = csv_line(csv_names(table));
  for (const auto& row : table.rows) csv += csv_line(csv_row(row, columns));
  return csv;
}

}  // namespace triptych::page
