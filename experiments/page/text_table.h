// Tables and numbers for people at a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace triptych::page {

/// `text` in lines of at most 100 columns, broken between words. All but the first begin with
/// `indent` spaces. A longer word has a line of its own.
std::string wrapped(const std::string& text, std::size_t indent);

/// A table in columns as wide as their widest cell. Numbers are right-aligned.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Writes the table to standard output.
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// "0.8913". "-" for a score that there is not.
std::string format_score(std::optional<double> score);
/// "12.3 ms", "1.20 s": three significant digits and a unit that fits.
std::string format_seconds(double seconds);
/// "118.4 MiB".
std::string format_bytes(double bytes);
/// "96.18 G": three or four significant digits and an SI prefix.
std::string format_count(double count);

}  // namespace triptych::page
