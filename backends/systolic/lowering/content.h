// The content of the buffer as tiles demand it: a load is written when a tile is to read what no
// tile has read before, unless the program before has left it there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "backends/systolic/lowering/stream_problem.h"

namespace triptych::systolic {

class Content {
 public:
  /// Values of the slice that the box reads, of the image tensor at `address`; `is_there`: all of
  /// them lie in the buffer already.
  Content(const Slice& slice, const Box& box, std::uint32_t address, bool is_there)
      : view_(slice, box),
        address_(address),
        loaded_(static_cast<std::size_t>(view_.units()), is_there ? view_.inputs() : 0) {}

  const BoxView& view() const { return view_; }
  /// True when something is missing of the first `inputs` inputs, of these units.
  bool lacks(std::int64_t inputs, Range units) const {
    return std::any_of(loaded_.begin() + units.begin, loaded_.begin() + units.end,
                       [&](auto there) { return there < inputs; });
  }

  /// The loads of what is missing of the first `inputs` inputs, `units` of each.
  std::vector<mmu::Load> read(std::int64_t inputs, Range units) {
    std::vector<mmu::Load> loads;
    for (auto begin = units.begin, end = begin; begin < units.end; begin = end) {
      const auto there = loaded_[static_cast<std::size_t>(begin)];
      while (end < units.end && loaded_[static_cast<std::size_t>(end)] == there) ++end;
      if (there >= inputs) continue;
      std::ranges::copy(view_.loads(address_, {there, inputs}, {begin, end}),
                        std::back_inserter(loads));
      std::fill(loaded_.begin() + begin, loaded_.begin() + end, inputs);
    }
    return loads;
  }

 private:
  BoxView view_;
  std::uint32_t address_;
  std::vector<std::int64_t> loaded_;  ///< inputs, by unit
};

}  // namespace triptych::systolic
