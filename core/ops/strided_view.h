// Part of a tensor seen as a tensor of its own, without moving data. Transpose, Expand, Slice,
// Concat and the inside of Pad are each one copy between two views.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "core/tensor/shape.h"

namespace triptych {

/// Position p lies at element offset + sum of p[a] * strides[a] of the memory. Strides may be 0
/// (broadcast) or negative (backwards).
struct StridedView {
  Shape shape;
  Dims strides;
  std::int64_t offset = 0;
};

/// The whole of a dense row-major tensor.
StridedView dense_view(const Shape& shape);

/// Axis a of the result is x's axis perm[a]. `perm` is a permutation.
StridedView transposed_view(const StridedView& x, std::span<const std::int64_t> perm);

/// x repeated along the axes that `shape` adds or widens. x.shape broadcasts to `shape`.
StridedView broadcast_view(const StridedView& x, const Shape& shape);

/// `shape` positions of x: the first at `starts`, neighbours `steps` apart, all inside x.
StridedView section_view(const StridedView& x, std::span<const std::int64_t> starts,
                         std::span<const std::int64_t> steps, const Shape& shape);

/// `size` positions from `start` along one axis of x.
StridedView piece_view(const StridedView& x, std::int64_t axis, std::int64_t start,
                       std::int64_t size);

/// Copies elements between views of equal shapes, one by one: the reference of all data movement.
void copy_view(const StridedView& from, std::span<const double> x, const StridedView& to,
               std::span<double> y);

}  // namespace triptych
