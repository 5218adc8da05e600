// SPDX-License-Identifier: Apache-2.0
#include "core/base/csv_text.h"

#include <charconv>

namespace triptych {
namespace {

constexpr char kMark = '\'';

bool is_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// True for a text that a spreadsheet may read as a formula. Apostrophes before it are part of it,
/// so that csv_text() has an inverse.
bool begins_formula(std::string_view text) {
  const auto first = text.find_first_not_of(kMark);
  if (first == std::string_view::npos) return false;
  const auto rest = text.substr(first);
  return rest.size() > 1 &&
         std::string_view("=+-@\t\r").find(rest.front()) != std::string_view::npos &&
         !is_number(rest);
}

}  // namespace

std::string csv_text(std::string_view text) {
  std::string field(begins_formula(text) ? 1 : 0, kMark);
  field += text;
  if (field.find_first_of(",;\t\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string_view text_of_csv(std::string_view field) {
  if (field.starts_with(kMark) && begins_formula(field)) field.remove_prefix(1);
  return field;
}

}  // namespace triptych
