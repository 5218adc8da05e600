// Common part of the elementwise kernels: the walk over broadcast operands row by row, and operands
// of other floating types as float32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "backends/cpu/grain.h"
#include "backends/cpu/simd.h"
#include "backends/host/parallel.h"
#include "core/ops/scalar_math.h"
#include "core/runtime/broadcast_walk.h"

namespace triptych::cpu {

/// Elements that a row function handles at once when an operand must be converted or repeated.
inline constexpr std::int64_t kRowBlock = 512;

/// Neighbouring rows of an operand. An element lies `stride` (0 or 1) elements behind the one
/// before it, and a row `step` elements.
struct RowGroup {
  std::int64_t rows, size, stride, step;
};

/// The loops over `kOperands` broadcast operands. In a row (the innermost axis) an operand is
/// contiguous, or one element for the whole row.
template <std::size_t kOperands>
class ElementwiseLoop {
 public:
  using Offsets = std::array<std::int64_t, kOperands>;

  /// `operations`: of an element, at least 1.
  ElementwiseLoop(const Shape& shape, const std::array<Dims, kOperands>& strides,
                  std::int64_t operations = 1)
      : walk_(shape, strides), grain_(grain_of(operations)) {
    // Rows must be contiguous. An operand with a gap or a first axis alone has rows of one element.
    const auto one_by_one = [](const Offsets& axis) {
      return std::ranges::all_of(axis, [](auto stride) { return stride <= 1; });
    };
    if (!walk_.sizes.empty() && one_by_one(walk_.strides.back())) {
      row_ = walk_.sizes.back();
      row_strides_ = walk_.strides.back();
      walk_.sizes.pop_back();
      walk_.strides.pop_back();
    }
  }

  /// 1, or 0 when the operand is one element for the whole row.
  std::int64_t row_stride(std::size_t operand) const { return row_strides_[operand]; }

  std::int64_t row_size() const { return row_; }
  /// True when whole rows, several at a time, fill a block of the result: run_rows() then takes
  /// less time than run().
  bool has_short_rows() const {
    return walk_.elements > 0 && row_ <= kRowBlock / 4 && !walk_.sizes.empty() &&
           walk_.strides.back()[0] == row_;
  }
  /// The operand in a group of run_rows().
  RowGroup group(std::size_t operand, std::int64_t rows) const {
    return {rows, row_, row_strides_[operand], walk_.strides.back()[operand]};
  }

  /// Calls rows(offsets, count) for disjoint groups of `count` whole rows, in parallel. A group has
  /// at most kRowBlock elements, and those of operand 0 are contiguous.
  template <class Rows>
  void run_rows(const Rows& rows) const {
    const auto neighbours = walk_.sizes.back();
    parallel_for(walk_.elements / row_, grain_ / row_, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const auto left = std::min(end - begin, neighbours - begin % neighbours);
        const auto count = std::min(left, kRowBlock / row_);
        rows(offsets_at(begin, 0), count);
        begin += count;
      }
    });
  }

  /// Calls row(offsets, count) for disjoint pieces of rows, in parallel.
  template <class Row>
  void run(const Row& row) const {
    parallel_for(walk_.elements, grain_, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const auto within = begin % row_;
        const auto count = std::min(end - begin, row_ - within);
        row(offsets_at(begin / row_, within), count);
        begin += count;
      }
    });
  }

 private:
  Offsets offsets_at(std::int64_t outer, std::int64_t within) const {
    Offsets offsets{};
    for (std::size_t k = 0; k < kOperands; ++k) offsets[k] = within * row_strides_[k];
    for (auto axis = walk_.sizes.size(); axis-- > 0;) {
      const auto index = axis == 0 ? outer : outer % walk_.sizes[axis];
      outer /= walk_.sizes[axis];
      for (std::size_t k = 0; k < kOperands; ++k) offsets[k] += index * walk_.strides[axis][k];
    }
    return offsets;
  }

  BroadcastWalk<kOperands> walk_;
  std::int64_t grain_;
  std::int64_t row_ = 1;
  Offsets row_strides_{};
};

template <class T>
void gather_rows(const std::byte* from, const RowGroup& group, std::byte* to) {
  const auto* x = reinterpret_cast<const T*>(from);
  auto* y = reinterpret_cast<T*>(to);
  for (std::int64_t r = 0; r < group.rows; ++r, x += group.step, y += group.size) {
    if (group.stride == 0) {
      std::fill_n(y, group.size, *x);
    } else {
      std::copy_n(x, group.size, y);
    }
  }
}

/// The rows one after another: `x` itself, or `buffer` filled with them. Elements have `bytes`.
inline const std::byte* gathered(const std::byte* x, const RowGroup& group, std::int64_t bytes,
                                 std::byte* buffer) {
  if (group.stride == 1 && group.step == group.size) return x;
  if (bytes == 1) {
    gather_rows<std::uint8_t>(x, group, buffer);
  } else if (bytes == 2) {
    gather_rows<std::uint16_t>(x, group, buffer);
  } else if (bytes == 4) {
    gather_rows<std::uint32_t>(x, group, buffer);
  } else {
    gather_rows<std::uint64_t>(x, group, buffer);
  }
  return buffer;
}

/// `count` <= kRowBlock elements at `x` as an array of Compute: `x` itself, or `buffer` filled with
/// the converted elements, or with the one element when `stride` is 0.
template <class Compute, class T>
const Compute* as_array(const T* x, std::int64_t stride, std::int64_t count, Compute* buffer) {
  if (stride == 0) {
    std::fill_n(buffer, count, static_cast<Compute>(*x));
    return buffer;
  }
  if constexpr (std::is_same_v<T, Compute>) {
    return x;
  } else {
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = static_cast<Compute>(x[i]);
    return buffer;
  }
}

using scalar::ComputeType;

}  // namespace triptych::cpu
