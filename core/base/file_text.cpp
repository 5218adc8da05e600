// SPDX-License-Identifier: Apache-2.0
#include "core/base/file_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "core/base/error.h"

namespace triptych {
namespace {

constexpr std::size_t kLongestName = 65535;
constexpr std::size_t kLongestShown = 200;

bool steers(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code < 0x20 || code == 0x7F;
}

/// Bytes of the printable character that `text` begins with; 0: none does.
std::size_t printable(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  std::uint32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return 0;
    code = code << 6 | (next & 0x3FU);
  }
  const bool shortest = code >= (length == 4 ? 0x10000U : length == 3 ? 0x800U : 0x80U);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool control = code < 0xA0;
  // Marks that turn the direction of what follows.
  const bool turns = (code >= 0x200E && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
                     (code >= 0x2066 && code <= 0x2069);
  return shortest && !surrogate && !control && !turns && code <= 0x10FFFF ? length : 0;
}

}  // namespace

bool has_control_characters(std::string_view text) { return std::ranges::any_of(text, steers); }

std::string without_control_characters(std::string_view text) {
  std::string result(text);
  std::ranges::replace_if(
      result, [](char c) { return c != '\n' && c != '\t' && steers(c); }, '?');
  return result;
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (text.starts_with(mark)) text.remove_prefix(mark.size());
  return text;
}

std::string shown(std::string_view text) {
  std::string result;
  while (!text.empty() && result.size() < kLongestShown) {
    const auto length = printable(text);
    result += length == 0 ? "?" : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return text.empty() ? result : result + "...";
}

std::string checked_name(const std::string& text, const std::string& of) {
  if (text.empty()) throw IoError(fmt::format("{} has no name", of));
  if (text.size() > kLongestName) {
    throw IoError(fmt::format("{} has a name of {} bytes", of, text.size()));
  }
  for (std::string_view rest = text; !rest.empty();) {
    const auto length = printable(rest);
    if (length == 0) {
      throw IoError(
          fmt::format("{} has a name that is not printable UTF-8: \"{}\"", of, shown(text)));
    }
    rest.remove_prefix(length);
  }
  return text;
}

}  // namespace triptych
