// SPDX-License-Identifier: Apache-2.0
#include "core/ops/strided_view.h"

#include "core/base/error.h"

namespace triptych {

StridedView dense_view(const Shape& shape) { return {shape, shape.strides(), 0}; }

StridedView transposed_view(const StridedView& x, std::span<const std::int64_t> perm) {
  Dims dims;
  Dims strides;
  for (const auto axis : perm) {
    dims.push_back(x.shape[axis]);
    strides.push_back(x.strides[static_cast<std::size_t>(axis)]);
  }
  return {Shape(std::move(dims)), std::move(strides), x.offset};
}

StridedView broadcast_view(const StridedView& x, const Shape& shape) {
  Dims strides(static_cast<std::size_t>(shape.rank()), 0);
  const auto added = strides.size() - x.strides.size();
  for (std::size_t a = 0; a < x.strides.size(); ++a) {
    if (x.shape.dims()[a] != 1) strides[added + a] = x.strides[a];
  }
  return {shape, std::move(strides), x.offset};
}

StridedView section_view(const StridedView& x, std::span<const std::int64_t> starts,
                         std::span<const std::int64_t> steps, const Shape& shape) {
  StridedView section{shape, x.strides, x.offset + flat_index(starts, x.strides)};
  for (std::size_t a = 0; a < section.strides.size(); ++a) section.strides[a] *= steps[a];
  return section;
}

StridedView piece_view(const StridedView& x, std::int64_t axis, std::int64_t start,
                       std::int64_t size) {
  const auto a = static_cast<std::size_t>(axis);
  Dims dims = x.shape.dims();
  dims[a] = size;
  return {Shape(std::move(dims)), x.strides, x.offset + start * x.strides[a]};
}

void copy_view(const StridedView& from, std::span<const double> x, const StridedView& to,
               std::span<double> y) {
  TRIPTYCH_ASSERT(from.shape == to.shape);
  for_each_index(from.shape, [&](const Dims& p) {
    y[static_cast<std::size_t>(to.offset + flat_index(p, to.strides))] =
        x[static_cast<std::size_t>(from.offset + flat_index(p, from.strides))];
  });
}

}  // namespace triptych
