// What the elementwise kernels share: the walk over broadcast operands row by row, and operands of
// other floating types as float32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "backends/cpu/parallel.h"
#include "backends/cpu/simd.h"
#include "core/runtime/kernel.h"

namespace triptych::cpu {

/// Elements that are worth a task of their own.
inline constexpr std::int64_t kElementwiseGrain = 16384;

/// Strides with which `operand` is read as if it had shape `to`: 0 along broadcast axes.
inline Dims operand_strides(const Operand& operand, const Shape& to) {
  auto strides = broadcast_strides(operand.spec.shape, to);
  const auto& shape = operand.spec.shape;
  if (shape.rank() > 0 && shape[0] > 1) {
    strides[static_cast<std::size_t>(to.rank() - shape.rank())] = operand.outer_stride;
  }
  return strides;
}

/// The loops over `kOperands` broadcast operands, axes that can be walked as one merged. In a row
/// (the innermost axis) an operand is contiguous, or one element for the whole row.
template <std::size_t kOperands>
class ElementwiseLoop {
 public:
  using Offsets = std::array<std::int64_t, kOperands>;

  ElementwiseLoop(const Shape& shape, const std::array<Dims, kOperands>& strides) {
    for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      Offsets here{};
      for (std::size_t k = 0; k < kOperands; ++k) {
        here[k] = strides[k][static_cast<std::size_t>(axis)];
      }
      append(shape[axis], here);
    }
    elements_ = shape.elements();
    // Rows must be contiguous; an operand with a gap or a first axis alone has rows of one element.
    if (!sizes_.empty() && std::ranges::all_of(strides_.back(), [](auto s) { return s <= 1; })) {
      row_ = sizes_.back();
      row_strides_ = strides_.back();
      sizes_.pop_back();
      strides_.pop_back();
    }
  }

  /// 1, or 0 when the operand is one element for the whole row.
  std::int64_t row_stride(std::size_t operand) const { return row_strides_[operand]; }

  /// Calls row(offsets, count) for disjoint pieces of rows, in parallel.
  template <class Row>
  void run(const Row& row) const {
    parallel_for(elements_, kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const auto within = begin % row_;
        const auto count = std::min(end - begin, row_ - within);
        row(offsets_at(begin / row_, within), count);
        begin += count;
      }
    });
  }

 private:
  void append(std::int64_t size, const Offsets& here) {
    bool merges = !sizes_.empty();
    for (std::size_t k = 0; merges && k < kOperands; ++k) {
      merges = strides_.back()[k] == here[k] * size;
    }
    if (merges) {
      sizes_.back() *= size;
      strides_.back() = here;
    } else {
      sizes_.push_back(size);
      strides_.push_back(here);
    }
  }

  Offsets offsets_at(std::int64_t outer, std::int64_t within) const {
    Offsets offsets{};
    for (std::size_t k = 0; k < kOperands; ++k) offsets[k] = within * row_strides_[k];
    for (auto axis = sizes_.size(); axis-- > 0;) {
      const auto index = axis == 0 ? outer : outer % sizes_[axis];
      outer /= sizes_[axis];
      for (std::size_t k = 0; k < kOperands; ++k) offsets[k] += index * strides_[axis][k];
    }
    return offsets;
  }

  std::int64_t elements_ = 0;
  std::int64_t row_ = 1;
  Offsets row_strides_{};
  Dims sizes_;
  std::vector<Offsets> strides_;
};

/// Elements that a row function handles at once when an operand must be converted or repeated.
inline constexpr std::int64_t kRowBlock = 512;

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

/// The type that elements of T are computed in: float for the floating types.
template <class T>
using ComputeType = std::conditional_t<is_floating(dtype_of<T>), float, T>;

}  // namespace triptych::cpu
