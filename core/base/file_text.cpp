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
constexpr std::size_t kLongestMessage = 8192;

/// The character that a text begins with.
struct Character {
  std::size_t bytes = 0;  ///< 0: the text does not begin with valid UTF-8
  std::uint32_t code = 0;
};

Character first_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return {1, first};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {};
  std::uint32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    code = code << 6 | (next & 0x3FU);
  }
  const bool shortest = code >= (length == 4 ? 0x10000U : length == 3 ? 0x800U : 0x80U);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (!shortest || surrogate || code > 0x10FFFF) return {};
  return {length, code};
}

/// True for control characters, and for marks that change the direction or the line of the
/// text after them.
bool steers(std::uint32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool turns = code == 0x061C || (code >= 0x200E && code <= 0x200F) ||
                     (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return control || turns;
}

/// Bytes of the printable character at the start of `text`, or 0.
std::size_t printable(std::string_view text) {
  const auto [bytes, code] = first_character(text);
  return bytes > 0 && !steers(code) ? bytes : 0;
}

/// Bytes at the start of `text` that need no escape.
std::size_t plain_bytes(std::string_view text) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const char c = text[bytes];
    const auto more = c == '\n' || c == '\t' ? 1 : printable(text.substr(bytes));
    if (more == 0) break;
    bytes += more;
  }
  return bytes;
}

}  // namespace

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto plain = plain_bytes(text);
    result += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto [bytes, code] = first_character(text);
    if (bytes == 0) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (!text.starts_with("\r\n")) {
      result += fmt::format("\\u{:04x}", code);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return result;
}

std::string shortened(std::string_view text) {
  if (text.size() <= kLongestMessage) return std::string(text);
  auto end = kLongestMessage;
  const auto continues = [&] { return (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80; };
  while (end > kLongestMessage - 4 && continues()) --end;
  return fmt::format("{}... ({} bytes more)", text.substr(0, end), text.size() - end);
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
