// Operands as strided memory, and the axes of a loop over broadcast operands, as few as possible.
// Every backend's elementwise kernels and copies walk over them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "core/ops/strided_view.h"
#include "core/runtime/kernel.h"

namespace triptych {

/// Strides with which `operand` is read as if it had shape `to`: 0 along broadcast axes.
inline Dims operand_strides(const Operand& operand, const Shape& to) {
  auto strides = broadcast_strides(operand.spec.shape, to);
  const auto& shape = operand.spec.shape;
  if (shape.rank() > 0 && shape[0] > 1) {
    strides[static_cast<std::size_t>(to.rank() - shape.rank())] = operand.outer_stride;
  }
  return strides;
}

/// An operand's memory, with its outer stride.
inline StridedView operand_view(const Operand& operand) {
  auto view = dense_view(operand.spec.shape);
  if (!view.strides.empty()) view.strides[0] = operand.outer_stride;
  return view;
}

/// Axes of size 1 are left out, neighbours that every operand walks over as if they were one are
/// merged. The innermost stands last.
template <std::size_t kOperands>
struct BroadcastWalk {
  using Offsets = std::array<std::int64_t, kOperands>;

  std::int64_t elements = 0;
  Dims sizes;
  std::vector<Offsets> strides;  ///< by axis, then by operand

  BroadcastWalk(const Shape& shape, const std::array<Dims, kOperands>& operands)
      : elements(shape.elements()) {
    for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      Offsets here{};
      for (std::size_t k = 0; k < kOperands; ++k) {
        here[k] = operands[k][static_cast<std::size_t>(axis)];
      }
      append(shape[axis], here);
    }
  }

 private:
  void append(std::int64_t size, const Offsets& here) {
    bool merges = !sizes.empty();
    for (std::size_t k = 0; merges && k < kOperands; ++k) {
      merges = strides.back()[k] == here[k] * size;
    }
    if (merges) {
      sizes.back() *= size;
      strides.back() = here;
    } else {
      sizes.push_back(size);
      strides.push_back(here);
    }
  }
};

}  // namespace triptych
