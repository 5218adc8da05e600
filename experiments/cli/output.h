// What leaves the program: tables for people, one JSON document for programs
// (docs/reference/json.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time_kind.h"

namespace triptych::cli {

using Json = nlohmann::ordered_json;

/// Version of the JSON documents; grows when a field changes its meaning or goes away.
inline constexpr int kJsonSchema = 1;

/// {"value": seconds, "unit": "s", "kind": "measured"}; null for a value that is not finite.
Json time_json(Duration duration);

/// Commit, versions of the compiler and the libraries, processor, threads, operating system.
Json environment_json();

/// The document {"schema", "command", "environment", "results"}.
Json document(std::string_view command, Json results);

/// Writes the document to standard output.
void print_document(std::string_view command, Json results);

/// `text` in lines of at most 100 columns, broken between words; all but the first begin with
/// `indent` spaces. A longer word has a line of its own.
std::string wrapped(const std::string& text, std::size_t indent);

/// A table in columns as wide as their widest cell; numbers are right-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Writes the table to standard output.
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// "12.3 ms", "1.20 s": three significant digits and a unit that fits.
std::string format_seconds(double seconds);
/// "118.4 MiB".
std::string format_bytes(double bytes);
/// "96.18 G": three or four significant digits and an SI prefix.
std::string format_count(double count);

}  // namespace triptych::cli
