// SPDX-License-Identifier: Apache-2.0
#include "core/base/list_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>
#include <string_view>
#include <system_error>

#include "core/base/error.h"

namespace triptych {
namespace {

std::int64_t parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) {
    throw InvalidArgument(fmt::format(
        "\"{}\" is not a positive number; write lists as 1,2,4 and ranges as 64..512", text));
  }
  return value;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.emplace_back(trimmed(part));
  if (parts.empty()) parts.emplace_back();
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string counted(std::int64_t count, std::string_view noun) {
  const bool hisses = noun.ends_with('s') || noun.ends_with("ch") || noun.ends_with('x');
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : hisses ? "es" : "s");
}

std::vector<std::int64_t> parse_numbers(const std::string& text) {
  std::vector<std::int64_t> numbers;
  for (const auto& part : split_list(text)) {
    const auto dots = part.find("..");
    if (dots == std::string::npos) {
      numbers.push_back(parse_number(part));
      continue;
    }
    const auto first = parse_number(std::string_view(part).substr(0, dots));
    const auto last = parse_number(std::string_view(part).substr(dots + 2));
    if (last < first) {
      throw InvalidArgument(
          fmt::format("\"{}\" ends below its begin; write it as {}..{}", part, last, first));
    }
    numbers.push_back(first);
    while (numbers.back() <= last / 2) numbers.push_back(2 * numbers.back());
  }
  return numbers;
}

}  // namespace triptych
