// Text that a compiler has written: assembly, and LLVM's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace triptych::kernels {

/// Without blanks at both ends.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  return first == text.npos ? std::string_view()
                            : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// The parts between separators that are outside of these brackets, without empty ones.
inline std::vector<std::string_view> split_outside(std::string_view text, char separator,
                                                   std::string_view open, std::string_view close) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : separator;
    if (open.find(c) != open.npos) ++depth;
    if (close.find(c) != close.npos) --depth;
    if (c != separator || (depth > 0 && i < text.size())) continue;
    if (const auto part = trimmed(text.substr(begin, i - begin)); !part.empty()) {
      parts.push_back(part);
    }
    begin = i + 1;
  }
  return parts;
}

}  // namespace triptych::kernels
