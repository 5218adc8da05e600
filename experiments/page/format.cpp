// SPDX-License-Identifier: Apache-2.0
#include "experiments/page/format.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>

namespace triptych::page {
namespace {

constexpr const char* kSpace = "\u00A0";  ///< no line breaks there

/// Units that take a prefix, as they are written.
const std::map<std::string, std::string, std::less<>>& prefixed_units() {
  static const std::map<std::string, std::string, std::less<>> units = {
      {"s", "s"},       {"FLOP/s", "FLOP/s"}, {"FLOP", "FLOP"},  {"byte/s", "B/s"}, {"byte", "B"},
      {"bytes", "B"},   {"J", "J"},           {"Hz", "Hz"},      {"event", ""},     {"W", "W"},
      {"op/s", "op/s"}, {"FLOP/J", "FLOP/J"}, {"bytes/s", "B/s"}};
  return units;
}

Prefix prefix_of_exponent(int exponent) {
  constexpr std::array symbols = {"p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"};
  constexpr int without = 4;  // which of them
  const int symbol = std::clamp(static_cast<int>(std::floor(exponent / 3.0)) + without, 0, 10);
  return {std::pow(10.0, 3 * (symbol - without)), symbols.at(static_cast<std::size_t>(symbol))};
}

/// The exponent that the value has once it is rounded to three digits: 999.9 has 3.
int rounded_exponent(double value) {
  if (value == 0) return 0;
  const auto text = fmt::format("{:.2e}", std::fabs(value));
  return std::stoi(text.substr(text.find('e') + 1));
}

/// "1234567.5" as "1,234,567.5".
std::string with_commas(std::string digits) {
  const auto point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (auto at = point; at > first + 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        if ((code < 0x20 && c != '\n' && c != '\t') || code == 0x7F) {
          result += "\uFFFD";
        } else {
          result += c;
        }
    }
  }
  return result;
}

std::string format_digits(double value, int digits) {
  if (!std::isfinite(value)) return "–";
  if (value == 0) return "0";
  const auto scientific = fmt::format("{:.{}e}", std::fabs(value), digits - 1);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (exponent < -6 || exponent >= 12) return fmt::format("{:.{}e}", value, digits - 1);
  return with_commas(fmt::format("{:.{}f}", value, std::max(0, digits - 1 - exponent)));
}

std::string format_exact(double value) { return fmt::format("{}", value); }

std::string unit_symbol(std::string_view unit) {
  if (unit == "1" || unit == "count") return "";
  if (unit == "x") return "×";
  const auto found = prefixed_units().find(unit);
  return found == prefixed_units().end() ? std::string(unit) : found->second;
}

Prefix prefix_for(double largest, std::string_view unit) {
  if (unit == "%") return {0.01, ""};
  if (!prefixed_units().contains(unit) || largest == 0 || !std::isfinite(largest)) return {};
  const int exponent = rounded_exponent(largest);
  return unit == "s" && exponent >= 0 ? Prefix{} : prefix_of_exponent(exponent);
}

std::string escape_prose(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(" \n"), text.size());
    const auto word = text.substr(0, end);
    const auto letter = word.find_first_not_of('-');
    const bool option = letter != 0 && letter != word.npos &&
                        std::isalpha(static_cast<unsigned char>(word[letter])) != 0;
    result += option ? fmt::format("<span class=\"option\"><span>{}</span>{}</span>",
                                   word.substr(0, letter + 1), escape(word.substr(letter + 1)))
                     : escape(word);
    if (end < text.size()) result += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::string format_quantity(double value, std::string_view unit) {
  if (!std::isfinite(value)) return "–";
  if (unit == "%") return format_digits(100 * value, 3) + kSpace + "%";
  if (unit == "x") return format_digits(value, 3) + "×";
  if (unit.empty() || unit == "1" || unit == "count") {
    const bool whole = value == std::floor(value) && std::fabs(value) < 1e12;
    return whole ? with_commas(fmt::format("{:.0f}", value)) : format_digits(value, 3);
  }
  const auto prefix = prefix_for(value, unit);
  const auto symbol = prefix.symbol + unit_symbol(unit);
  const double shown = value / prefix.factor;
  const bool small_whole = prefix.factor == 1 && shown == std::floor(shown) && shown < 1000;
  const auto digits = small_whole ? fmt::format("{:.0f}", shown) : format_digits(shown, 3);
  return symbol.empty() ? digits : digits + kSpace + symbol;
}

std::string join_words(std::span<const std::string> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

std::string identifier(std::string_view text) {
  std::string id(text);
  for (char& c : id) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  }
  return id;
}

}  // namespace triptych::page
