// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/tiling_choice.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace triptych::systolic {
namespace {

using Size = std::optional<std::int64_t> TilingChoice::*;

constexpr std::array<std::pair<std::string_view, Size>, 10> kSizes = {
    {{"images", &TilingChoice::images},
     {"y", &TilingChoice::y},
     {"x", &TilingChoice::x},
     {"channels", &TilingChoice::channels},
     {"taps", &TilingChoice::taps},
     {"pass", &TilingChoice::pass},
     {"columns", &TilingChoice::columns},
     {"buffer", &TilingChoice::buffer},
     {"accumulators", &TilingChoice::accumulators},
     {"group", &TilingChoice::group}}};

constexpr std::string_view kDataflow = "dataflow";
constexpr std::array<std::string_view, 2> kDataflows{"weight-stationary", "output-stationary"};

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw InvalidArgument(fmt::format("tiling \"{}\": {}", text, why));
}

Size size_named(std::string_view name, std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& [known, size] : kSizes) {
    if (known == name) return size;
    names.push_back(known);
  }
  refuse(text, fmt::format("there is no size \"{}\"; there are {} and {}, as in pass=64,columns=2",
                           name, fmt::join(names, ", "), kDataflow));
}

std::int64_t number_of(std::string_view word, std::string_view text) {
  if (word == "all") return TilingChoice::kAll;
  std::int64_t number = 0;
  const auto* end = word.data() + word.size();
  const auto [last, problem] = std::from_chars(word.data(), end, number);
  if (problem != std::errc{} || last != end || number < 1 || number > TilingChoice::kMost) {
    refuse(text, fmt::format("\"{}\" is no size; give a number from 1 to {}, or all", word,
                             TilingChoice::kMost));
  }
  return number;
}

Dataflow dataflow_named(std::string_view word, std::string_view text) {
  const auto found = std::ranges::find(kDataflows, word);
  if (found == kDataflows.end())
    refuse(text,
           fmt::format("\"{}\" is no dataflow; give {}", word, fmt::join(kDataflows, " or ")));
  return static_cast<Dataflow>(found - kDataflows.begin());
}

void check(const TilingChoice& choice, std::string_view text) {
  const auto is_power = [](std::int64_t n) {
    return std::has_single_bit(static_cast<std::uint64_t>(n));
  };
  for (const auto& parts : {choice.buffer, choice.accumulators}) {
    if (parts && (*parts < 2 || *parts == TilingChoice::kAll || !is_power(*parts)))
      refuse(text,
             "buffer and accumulators are into how many parts the memories are cut: a power "
             "of two from 2 on");
  }
  if (choice.taps && *choice.taps != 1 && *choice.taps != TilingChoice::kAll)
    refuse(text, "taps is 1, one place of the kernel at a time, or all");
}

}  // namespace

std::string to_string(const Tiling& tiling, const Parts& parts, const StreamProblem& problem) {
  const auto channels = tiling.slicing.channels > 0 ? tiling.slicing.channels : problem.channels;
  return fmt::format(
      "images={},y={},x={},channels={},taps={},pass={},columns={},buffer={},accumulators={},"
      "group={}{}",
      tiling.box_images, tiling.box_y, tiling.box_x, channels, tiling.slicing.one_tap ? "1" : "all",
      tiling.pass, tiling.column_tiles, parts.buffer, parts.accumulators, problem.group,
      tiling.dataflow == Dataflow::OutputStationary ? ",dataflow=output-stationary" : "");
}

TilingChoice tiling_choice(std::string_view text) {
  TilingChoice choice;
  for (auto left = text; !left.empty();) {
    const auto end = std::min(left.find(','), left.size());
    const auto item = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    const auto equals = item.find('=');
    if (equals == std::string_view::npos)
      refuse(text, fmt::format("\"{}\" is no size; write NAME=NUMBER", item));
    const auto name = item.substr(0, equals), value = item.substr(equals + 1);
    const auto set = [&](auto& member, auto read) {
      if (member) refuse(text, fmt::format("{} is given twice", name));
      member = read(value, text);
    };
    if (name == kDataflow)
      set(choice.dataflow, dataflow_named);
    else
      set(choice.*size_named(name, text), number_of);
  }
  check(choice, text);
  choice.text = text;
  return choice;
}

}  // namespace triptych::systolic
