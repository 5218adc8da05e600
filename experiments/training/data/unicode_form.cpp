// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/unicode_form.h"

#include <bit>
#include <cstdint>
#include <string>

namespace triptych::segmentation {
namespace {

/// Stands for a letter beyond ASCII, or one with marks.
constexpr char32_t kLetter = 1;

bool within(char32_t code, char32_t first, char32_t last) { return code >= first && code <= last; }

/// Code points that follow the letter which they belong to: marks of Latin, Greek and Cyrillic
/// letters, voicing marks of kana, vowels and final consonants of Hangul.
bool joins_letter(char32_t code) {
  return within(code, 0x300, 0x36F) || within(code, 0x1AB0, 0x1AFF) ||
         within(code, 0x1DC0, 0x1DFF) || within(code, 0x20D0, 0x20FF) ||
         within(code, 0x3099, 0x309A) || within(code, 0x1160, 0x11FF);
}

/// `text` with kLetter in place of each accented letter, in either form.
std::u32string outline_of(std::string_view text) {
  std::u32string outline;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<std::uint8_t>(text[i++]);
    const auto length = std::countl_one(lead);  // of a sequence of 2 to 4 bytes
    char32_t code = length < 2 ? lead : lead & (0x7F >> length);
    for (int k = 1; k < length && i < text.size(); ++k, ++i) {
      code = (code << 6) | (static_cast<std::uint8_t>(text[i]) & 0x3F);
    }
    if (joins_letter(code) && !outline.empty()) {
      outline.back() = kLetter;
    } else {
      outline += code < 0x80 ? code : kLetter;
    }
  }
  return outline;
}

}  // namespace

bool differ_in_unicode_form(std::string_view one, std::string_view other) {
  return one != other && one.size() != other.size() && outline_of(one) == outline_of(other);
}

}  // namespace triptych::segmentation
