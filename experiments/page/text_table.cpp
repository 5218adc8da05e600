// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/text_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <numeric>
#include <sstream>
#include <utility>

#include "core/base/console.h"
#include "core/base/terminal.h"

namespace triptych::page {
namespace {

bool is_number(const std::string& cell) {
  return !cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) != 0 ||
                           (cell.size() > 1 && (cell[0] == '-' || cell[0] == '+') &&
                            std::isdigit(static_cast<unsigned char>(cell[1])) != 0));
}

constexpr std::size_t kColumnGap = 2;  // between columns

std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) longest = std::max(longest, display_width(word));
  return longest;
}

/// The cell in lines of at most `width` columns.
std::vector<std::string> broken(const std::string& cell, std::size_t width) {
  if (display_width(cell) <= width) return {cell};
  std::vector<std::string> lines;
  std::istringstream text(filled(cell, {.indent = 0, .first = 0, .columns = width}));
  for (std::string line; std::getline(text, line);) {
    // A word that is longer than its column breaks anywhere between its characters.
    while (display_width(line) > width) {
      std::size_t end = 0;
      for (std::size_t used = 0; used < width; ++used)
        for (++end; end < line.size() && (line[end] & 0xC0) == 0x80;) ++end;
      lines.push_back(line.substr(0, end));
      line.erase(0, end);
    }
    lines.push_back(line);
  }
  return lines;
}

std::size_t table_width(const std::vector<std::size_t>& columns,
                        const std::vector<std::size_t>& widths) {
  std::size_t width = kColumnGap * (columns.size() - 1);
  for (const auto column : columns) width += widths[column];
  return width;
}

/// Minimum widths of the columns, with the rest of `total` for the columns that lack most.
std::vector<std::size_t> widened(const std::vector<std::size_t>& columns,
                                 std::vector<std::size_t> least,
                                 const std::vector<std::size_t>& natural, std::size_t total) {
  const auto lacks = [&](std::size_t column) {
    return natural[column] - std::min(natural[column], least[column]);
  };
  for (auto used = table_width(columns, least); used < total; ++used) {
    const auto column = std::ranges::max(columns, {}, lacks);
    if (lacks(column) == 0) break;
    ++least[column];
  }
  return least;
}

std::string with_prefix(double value, double base, const std::array<const char*, 5>& prefixes) {
  std::size_t step = 0;
  while (std::fabs(value) >= base && step + 1 < prefixes.size()) {
    value /= base;
    ++step;
  }
  const int digits = step == 0 && value == std::floor(value) ? 0 : 1;
  return fmt::format("{:.{}f} {}", value, digits, prefixes[step]);
}

}  // namespace

std::size_t display_width(std::string_view text) {
  // UTF-8 continuation bytes take no column.
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string filled(const std::string& text, const FilledForm& form) {
  std::string lines;
  std::size_t used = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto width = display_width(word);
    if (lines.empty()) {
      used = form.first.value_or(form.indent);
      lines += std::string(used, ' ');
    } else if (used + 1 + width <= form.columns) {
      lines += ' ';
      ++used;
    } else {
      lines += std::string(form.line_end) + '\n' + std::string(form.indent, ' ');
      used = form.indent;
    }
    lines += word;
    used += width;
  }
  return lines + '\n';
}

std::string wrapped(const std::string& text, std::size_t indent) {
  const FilledForm usual;
  const auto spaces = text.find_first_not_of(' ');
  return filled(text,
                {.indent = indent,
                 .first = spaces == std::string::npos ? 0 : spaces,
                 .columns = std::min(output_columns().value_or(usual.columns), usual.columns)});
}

std::string fitted(const std::string& text, std::size_t indent) {
  const auto columns = output_columns();
  if (!columns) return text + '\n';
  return filled(text, {.indent = indent, .first = 0, .columns = *columns});
}

TextTable::Columns TextTable::natural_widths() const {
  Columns widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i]));
  }
  return widths;
}

/// Widths below which words would break, or short cells such as "12.3 ms".
TextTable::Columns TextTable::least_widths() const {
  constexpr std::size_t whole = 16;
  Columns widths(rows_.front().size(), 0);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      const auto& cell = rows_[r][i];
      const bool breaks = r == 0 || display_width(cell) > whole;
      widths[i] = std::max(widths[i], breaks ? longest_word(cell) : display_width(cell));
    }
  }
  return widths;
}

std::vector<TextTable::Part> TextTable::parts(std::optional<std::size_t> columns) const {
  const auto natural = natural_widths();
  Columns all(natural.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (!columns || table_width(all, natural) <= *columns) return {part(all, natural)};
  auto least = least_widths();
  const auto first = std::min(least.front(), *columns / 2);
  least.front() = first;
  std::vector<Part> parts;
  for (std::size_t next = 1; next < natural.size();) {
    Columns chosen = {0, next};
    least[next] = std::min(least[next], *columns - first - kColumnGap);
    for (++next; next < natural.size(); ++next) {
      chosen.push_back(next);
      if (table_width(chosen, least) <= *columns) continue;
      chosen.pop_back();
      break;
    }
    parts.push_back(part(chosen, widened(chosen, least, natural, *columns)));
  }
  return parts;
}

TextTable::Part TextTable::part(const Columns& columns, const Columns& widths) const {
  Part part = {.header = lines_of(0, columns, widths), .lines = {}};
  for (std::size_t row = 1; row < rows_.size(); ++row) {
    for (auto& line : lines_of(row, columns, widths)) part.lines.push_back(std::move(line));
  }
  return part;
}

/// The header ends on its last line, other rows begin on their first.
std::vector<std::string> TextTable::lines_of(std::size_t row, const Columns& columns,
                                             const Columns& widths) const {
  std::vector<std::vector<std::string>> cells;
  std::size_t height = 1;
  for (const auto i : columns) {
    cells.push_back(broken(rows_[row][i], widths[i]));
    height = std::max(height, cells.back().size());
  }
  std::vector<std::string> lines(height);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const auto i = columns[c];
    const bool right = rows_.size() > 1 && is_number(rows_[1][i]);
    const auto skipped = row == 0 ? height - cells[c].size() : 0;
    for (std::size_t line = 0; line < height; ++line) {
      const bool has = line >= skipped && line - skipped < cells[c].size();
      const auto text = has ? cells[c][line - skipped] : std::string();
      const auto width = display_width(text);
      const std::string space(widths[i] - std::min(width, widths[i]), ' ');
      lines[line] +=
          (c > 0 ? std::string(kColumnGap, ' ') : "") + (right ? space + text : text + space);
    }
  }
  for (auto& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

void TextTable::print() const {
  bool first = true;
  for (const auto& part : parts(output_columns())) {
    if (!std::exchange(first, false)) print_text("\n");
    std::size_t width = 0;
    for (const auto& line : part.header) {
      width = std::max(width, display_width(line));
      print_pieces({{line, Style::Bold}, {"\n"}});
    }
    print_text("{}\n", std::string(width, '-'));
    for (const auto& line : part.lines) print_text("{}\n", line);
  }
}

std::string format_score(std::optional<double> score) {
  return score ? fmt::format("{:.4f}", *score) : "-";
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  if (seconds < 120) return fmt::format("{:.2f} s", seconds);
  return fmt::format("{:.0f} min {:02.0f} s", std::floor(seconds / 60), std::fmod(seconds, 60));
}

std::string format_joule(double joule) {
  if (!std::isfinite(joule)) return "-";
  constexpr std::array units = {"J", "mJ", "uJ", "nJ", "pJ"};
  std::size_t unit = 0;
  while (std::fabs(joule) < 1 && joule != 0 && unit + 1 < units.size()) {
    joule *= 1e3;
    ++unit;
  }
  return fmt::format("{:.3g} {}", joule, units[unit]);
}

std::string format_bytes(double bytes) {
  return with_prefix(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string format_count(double count) {
  auto text = with_prefix(count, 1000, {"", "k", "M", "G", "T"});
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace triptych::page
