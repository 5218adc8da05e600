// One HTML file without other files or network access. It has sections with a table of contents,
// tables and charts, in light and dark, for screens from 320 pixels on and for paper.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/page/chart.h"
#include "experiments/page/json_view.h"
#include "experiments/page/table.h"

namespace triptych::page {

class Page {
 public:
  /// `subtitle` may be empty. Both are text.
  Page(std::string title, std::string subtitle);

  /// Heading of the parts that follow. The table of contents lists it. `id` is unique.
  void section(std::string_view id, std::string_view title);
  void heading(std::string_view title);
  /// A paragraph of text.
  void text(std::string_view words);
  /// A paragraph about missing content and the reason.
  void missing(std::string_view words);
  /// Elements without escaping. The caller has escaped their content.
  void html(std::string_view elements);
  void table(const Table& table);
  /// A table behind a line that opens it.
  void folded(std::string_view line, const Table& table);
  /// Drawn for wide and for narrow screens, with its numbers as a table behind a line. Points that
  /// a logarithmic axis has no place for are left out of the picture, and it says so.
  void chart(const Chart& chart, const Table& numbers);
  /// Several small charts in a row, with one table.
  void charts(std::span<const Chart> charts, const Table& numbers);
  /// Numbers and words of an object, one name each. Nested members have names like "model depth".
  void facts(const JsonView& object);
  /// The report itself, as <script type="application/json" id="report">.
  void embed(const Json& report);

  std::string str() const;

 private:
  std::string contents() const;

  std::string title_, subtitle_, body_, embedded_;
  std::vector<std::pair<std::string, std::string>> sections_;  ///< id, title
};

/// Commands as they are typed, one per line.
std::string commands_html(std::span<const std::string> commands);

/// The report with every invalid byte of UTF-8 replaced, which paths and names of a user may hold.
Json valid_text(const Json& report);

}  // namespace triptych::page
