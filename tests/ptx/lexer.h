// The words of PTX.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "tests/ptx/text.h"

namespace triptych::ptx {

/// One word or one character of punctuation. Empty at the end. Names, registers and instructions
/// with all their modifiers are one word each. A sign is punctuation.
class Lexer {
 public:
  Lexer(std::string_view text, std::size_t begin, int line) : text_(text), at_(begin), line_(line) {
    next();
  }

  std::string_view word() const { return word_; }
  std::size_t begin() const { return begin_; }
  int line() const { return line_; }
  bool at_end() const { return word_.empty(); }

  /// Goes to the next word and returns the one before it.
  std::string_view take() {
    const auto taken = word_;
    next();
    return taken;
  }
  bool accept(std::string_view word) {
    if (word_ != word) return false;
    next();
    return true;
  }
  void expect(std::string_view word);
  /// Skips everything between braces, from the opening one on.
  void skip_block();
  void skip_line();

  [[noreturn]] void fail(std::string_view what) const;

 private:
  void next();
  void skip_space();

  std::string_view text_;
  std::size_t at_;
  std::size_t begin_ = 0;
  int line_;
  std::string_view word_;
};

/// An unsigned integer, or the bits of a float (0f3F800000, 0d3FF0000000000000). Throws Fault.
std::uint64_t number_of(const Lexer& lexer, std::string_view word);

/// True when its first character makes it a number.
inline bool is_number(std::string_view word) {
  return !word.empty() && word.front() >= '0' && word.front() <= '9';
}

}  // namespace triptych::ptx
