// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/text_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <sstream>

#include "core/base/speech.h"

namespace triptych::page {
namespace {

bool is_number(const std::string& cell) {
  return !cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) != 0 ||
                           (cell.size() > 1 && (cell[0] == '-' || cell[0] == '+') &&
                            std::isdigit(static_cast<unsigned char>(cell[1])) != 0));
}

/// Columns a cell takes on a terminal: UTF-8 continuation bytes take none.
std::size_t display_width(const std::string& cell) {
  return static_cast<std::size_t>(
      std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xC0) != 0x80; }));
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

std::string wrapped(const std::string& text, std::size_t indent) {
  constexpr std::size_t columns = 100;
  std::string lines;
  std::size_t used = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto width = display_width(word);
    const bool fits = used + 1 + width <= columns;
    if (used == 0) {
      used = text.find_first_not_of(' ');
      lines += std::string(used, ' ');
    } else if (fits) {
      lines += ' ';
      ++used;
    } else {
      lines += '\n' + std::string(indent, ' ');
      used = indent;
    }
    lines += word;
    used += width;
  }
  return lines + '\n';
}

void TextTable::print() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      const auto& cell = rows_[r][i];
      const std::string space(widths[i] - display_width(cell), ' ');
      const bool right = rows_.size() > 1 && is_number(rows_[1][i]);
      line += (i > 0 ? "  " : "") + (right ? space + cell : cell + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    print_pieces({{line, r == 0 ? std::optional(Style::Bold) : std::nullopt}, {"\n"}});
    if (r == 0) print_text("{}\n", std::string(display_width(line), '-'));
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

std::string format_bytes(double bytes) {
  return with_prefix(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string format_count(double count) {
  auto text = with_prefix(count, 1000, {"", "k", "M", "G", "T"});
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace triptych::page
