// The activations of a matmul, fetched from the unified buffer as numbers, a block of slots at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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
void append_runs(TapWalk& walk, std::uint32_t first, std::uint32_t start, std::uint32_t count,
                 std::uint32_t lanes, std::vector<TapRun>& runs);

/// target[p * position_stride + run.first + i] for every position and every run: the elements side
/// by side, or zeros where the tap lies in the padding.
template <class Element>
void gather(const BufferView<Element>& buffer, const SetStream& geometry,
            std::span<const Position> positions, const std::vector<TapRun>& runs,
            std::size_t position_stride, float* target);

}  // namespace triptych::mmu
