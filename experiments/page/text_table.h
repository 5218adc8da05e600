// Tables and numbers for people at a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace triptych::page {

/// Columns that a text takes on a terminal.
std::size_t display_width(std::string_view text);

struct FilledForm {
  std::size_t indent = 0;            ///< spaces before each line except the first
  std::optional<std::size_t> first;  ///< spaces before the first line. Default: the same
  std::size_t columns = 100;
  std::string_view line_end;  ///< after each line except the last
};

/// `text` in lines of at most so many columns, broken between words. A longer word has a line of
/// its own.
std::string filled(const std::string& text, const FilledForm& form);

/// filled() for the width of the terminal, at most 100 columns. The first line begins with the
/// spaces of `text`.
std::string wrapped(const std::string& text, std::size_t indent);

/// The text as it is where the width of standard output is unknown, else filled() for that width.
std::string fitted(const std::string& text, std::size_t indent);

/// A table with columns as wide as their widest cell. Numbers are right-aligned. Where the width of
/// standard output is known, a wider table breaks its cells between words. If it is still too wide,
/// its last columns follow below, again with the first column.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Writes the table to standard output.
  void print() const;
  /// The lines of header and rows of each part, for so many columns.
  struct Part {
    std::vector<std::string> header, lines;
  };
  std::vector<Part> parts(std::optional<std::size_t> columns) const;

 private:
  using Columns = std::vector<std::size_t>;
  Columns natural_widths() const;
  Columns least_widths() const;
  Part part(const Columns& columns, const Columns& widths) const;
  std::vector<std::string> lines_of(std::size_t row, const Columns& columns,
                                    const Columns& widths) const;

  std::vector<std::vector<std::string>> rows_;
};

/// "0.8913". "-" for a score that there is not.
std::string format_score(std::optional<double> score);
/// "12.3 ms", "1.20 s": three significant digits and a unit that fits.
std::string format_seconds(double seconds);
/// "1.23 mJ": three significant digits and a unit that fits.
std::string format_joule(double joule);
/// "118.4 MiB".
std::string format_bytes(double bytes);
/// "96.18 G": three or four significant digits and an SI prefix.
std::string format_count(double count);

}  // namespace triptych::page
