// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/lexer.h"

#include <fmt/format.h>

#include <charconv>

namespace triptych::ptx {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '%' || c == '.';
}

}  // namespace

void Lexer::skip_space() {
  while (at_ < text_.size()) {
    const auto rest = text_.substr(at_, 2);
    if (rest.starts_with('\n')) ++line_;
    if (rest == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (rest == "/*") {
      const auto end = std::min(text_.find("*/", at_), text_.size() - 2) + 2;
      for (; at_ < end; ++at_) line_ += text_[at_] == '\n';
    } else if (rest.front() == ' ' || rest.front() == '\t' || rest.front() == '\n' ||
               rest.front() == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

void Lexer::next() {
  skip_space();
  begin_ = at_;
  if (at_ < text_.size() && text_[at_] == '"') {
    at_ = std::min(text_.find('"', at_ + 1), text_.size() - 1) + 1;
  } else {
    while (at_ < text_.size()) {
      if (is_word(text_[at_])) {
        ++at_;
      } else if (at_ > begin_ && text_.substr(at_, 2) == "::") {
        at_ += 2;
      } else {
        break;
      }
    }
    if (at_ == begin_ && at_ < text_.size()) ++at_;
  }
  word_ = text_.substr(begin_, at_ - begin_);
}

void Lexer::expect(std::string_view word) {
  if (!accept(word)) fail(fmt::format("\"{}\" where \"{}\" belongs", word_, word));
}

void Lexer::skip_block() {
  int depth = 0;
  do {
    if (at_end()) fail("a block without an end");
    depth += word_ == "{" ? 1 : word_ == "}" ? -1 : 0;
    next();
  } while (depth > 0);
}

void Lexer::skip_line() {
  const int line = line_;
  while (!at_end() && line_ == line) next();
}

void Lexer::fail(std::string_view what) const {
  throw Fault(fmt::format("PTX line {}: {}", line_, what));
}

std::uint64_t number_of(const Lexer& lexer, std::string_view word) {
  const auto all = word;
  int base = 10;
  if (word.size() > 2 && word[0] == '0') {
    const char kind = static_cast<char>(word[1] | 0x20);
    if (kind == 'x' || kind == 'f' || kind == 'd') {
      base = 16;
      word.remove_prefix(2);
    }
  }
  if (word.ends_with('U')) word.remove_suffix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (error != std::errc() || end != word.data() + word.size()) {
    lexer.fail(fmt::format("\"{}\" is no number", all));
  }
  return value;
}

}  // namespace triptych::ptx
