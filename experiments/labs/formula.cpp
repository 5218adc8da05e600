// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/formula.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace triptych::labs {
namespace {

constexpr std::size_t kLongest = 1000;
/// Brackets and signs within each other.
constexpr int kDeepest = 100;

/// Reads and computes at once, from left to right (recursive descent).
class Reader {
 public:
  Reader(std::string_view text, const Variables& variables) : text_(text), variables_(variables) {}

  double whole() {
    if (text_.size() > kLongest)
      throw InvalidArgument(fmt::format("a formula of more than {} characters", kLongest));
    const double value = any_of();
    skip_blanks();
    if (at_ < text_.size())
      fail(fmt::format("an operator or the end was expected{}",
                       text_[at_] == '=' ? "; \"is equal to\" is ==" : ""));
    if (!std::isfinite(value)) fail("the value is not finite");
    return value;
  }

 private:
  double any_of() {
    double value = all_of();
    while (take("||")) {
      const double other = all_of();
      value = value != 0 || other != 0;
    }
    return value;
  }

  double all_of() {
    double value = comparison();
    while (take("&&")) {
      const double other = comparison();
      value = value != 0 && other != 0;
    }
    return value;
  }

  double comparison() {
    const double left = sum();
    if (take("==")) return left == sum();
    if (take("!=")) return left != sum();
    if (take("<=")) return left <= sum();
    if (take(">=")) return left >= sum();
    if (take("<")) return left < sum();
    if (take(">")) return left > sum();
    return left;
  }

  double sum() {
    double value = product();
    for (;;) {
      if (take("+")) {
        value += product();
      } else if (take("-")) {
        value -= product();
      } else {
        return value;
      }
    }
  }

  double product() {
    double value = factor();
    for (;;) {
      if (take("*")) {
        value *= factor();
      } else if (take("/")) {
        value /= divisor();
      } else if (take("%")) {
        const double by = divisor();
        value -= by * std::floor(value / by);
      } else {
        return value;
      }
    }
  }

  double divisor() {
    const double value = factor();
    if (value == 0) fail("a division by zero");
    return value;
  }

  double factor() {
    if (++depth_ > kDeepest) fail("too many brackets within each other");
    const double value = take("-") ? -factor() : primary();
    --depth_;
    return value;
  }

  double primary() {
    skip_blanks();
    if (take("(")) return bracketed();
    if (at_ == text_.size()) fail("the formula ends too early");
    const char first = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(first)) != 0 || first == '.') return number();
    if (std::isalpha(static_cast<unsigned char>(first)) != 0) return named();
    fail("a number, a name or a bracket was expected");
  }

  double bracketed() {
    const double value = any_of();
    expect(")");
    return value;
  }

  double number() {
    double value = 0;
    const auto* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail("no number");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  double named() {
    const auto begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const auto name = text_.substr(begin, at_ - begin);
    if (take("(")) return function(name);
    const auto found = variables_.find(name);
    if (found != variables_.end()) return found->second;
    std::vector<std::string_view> names;
    for (const auto& [known, value] : variables_) names.emplace_back(known);
    at_ = begin;
    fail(fmt::format("\"{}\" is unknown; known are {}", name, fmt::join(names, ", ")));
  }

  double function(std::string_view name) {
    const double a = any_of();
    if (name == "min" || name == "max") {
      expect(",");
      const double b = any_of();
      expect(")");
      return name == "min" ? std::min(a, b) : std::max(a, b);
    }
    expect(")");
    if (name == "ceil") return std::ceil(a);
    if (name == "floor") return std::floor(a);
    if (name == "log2") return std::log2(a);
    fail(fmt::format("no function {}; there are ceil, floor, log2, min and max", name));
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  bool take(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  void expect(std::string_view word) {
    if (!take(word)) fail(fmt::format("\"{}\" was expected", word));
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw InvalidArgument(
        fmt::format("in \"{}\", at character {}: {}", text_.substr(0, 80), at_ + 1, why));
  }

  std::string_view text_;
  const Variables& variables_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

double evaluate(std::string_view formula, const Variables& variables) {
  return Reader(formula, variables).whole();
}

}  // namespace triptych::labs
