// The activations of a matmul, fetched from the unified buffer as numbers, a block of slots at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "systolic/twin/array.h"
#include "systolic/twin/geometry.h"
#include "systolic/twin/numerics.h"

namespace triptych::mmu {

inline float to_number(std::uint16_t bits) { return from_bf16(bits); }
inline float to_number(std::int8_t value) { return value; }

/// The unified buffer as the address generator sees it.
template <class Element>
struct BufferView {
  const Element* data;
  std::uint32_t lanes;     ///< R
  std::uint32_t row_mask;  ///< buffer_rows - 1

  const Element* at(std::uint32_t row, std::uint32_t lane) const {
    return data + std::size_t{row & row_mask} * lanes + lane;
  }
};

/// Lanes in a row that share a tap: their elements lie side by side in a buffer row.
struct TapRun {
  std::uint32_t first;  ///< value within the block
  std::uint32_t lane;
  std::uint32_t length;
  Tap tap;
};

/// Appends the next `count` values of a walk over taps: value i is the block's value first + i and
/// lies in lane (start + i) mod lanes.
inline void append_runs(TapWalk& walk, std::uint32_t first, std::uint32_t start,
                        std::uint32_t count, std::uint32_t lanes, std::vector<TapRun>& runs) {
  for (std::uint32_t i = 0; i < count; ++i, walk.next()) {
    const std::uint32_t lane = (start + i) & (lanes - 1);
    if (i > 0 && lane != 0 && runs.back().tap == walk.tap())
      ++runs.back().length;
    else
      runs.push_back({first + i, lane, 1, walk.tap()});
  }
}

template <class Element>
inline void copy_numbers(const Element* source, std::uint32_t count, float* target) {
  for (; count >= 8; count -= 8, source += 8, target += 8)
    for (int i = 0; i < 8; ++i) target[i] = to_number(source[i]);
  for (std::uint32_t i = 0; i < count; ++i) target[i] = to_number(source[i]);
}

/// The elements under one run of taps for every position. kLength is the run's length, or 0 for
/// any: short runs are common, and fast only as straight code.
template <std::uint32_t kLength, class Element>
void gather_run(const BufferView<Element>& buffer, const SetStream& geometry,
                std::span<const Position> positions, const TapRun& run, std::size_t position_stride,
                float* out) {
  const std::uint32_t length = kLength == 0 ? run.length : kLength;
  for (const Position& position : positions) {
    if (inside(geometry, position, run.tap))
      copy_numbers(buffer.at(position.address + run.tap.offset, run.lane), length, out);
    else
      std::fill_n(out, length, 0.0F);
    out += position_stride;
  }
}

/// target[p * position_stride + run.first + i] for every position and every run: the elements side
/// by side, or zeros where the tap lies in the padding.
template <class Element>
void gather(const BufferView<Element>& buffer, const SetStream& geometry,
            std::span<const Position> positions, const std::vector<TapRun>& runs,
            std::size_t position_stride, float* target) {
  const auto gather_length = [](std::uint32_t length) {
    switch (length) {
      case 1:
        return gather_run<1, Element>;
      case 2:
        return gather_run<2, Element>;
      case 4:
        return gather_run<4, Element>;
      case 16:
        return gather_run<16, Element>;
      default:
        return gather_run<0, Element>;
    }
  };
  for (const TapRun& run : runs)
    gather_length(run.length)(buffer, geometry, positions, run, position_stride,
                              target + run.first);
}

}  // namespace triptych::mmu
