// Text in a CSV file (RFC 4180). A spreadsheet takes a cell that begins with = + - @, a tab or a
// carriage return for a formula, and formulas run programs: such a text gets an apostrophe in
// front.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace triptych {

/// `text` as one field, with quotes where it needs them. Numbers, also negative ones, and a single
/// character stay as they are.
std::string csv_text(std::string_view text);

/// The text of a field without quotes: takes the apostrophe of csv_text() away.
std::string_view text_of_csv(std::string_view field);

}  // namespace triptych
