// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kernel.h"

#include <algorithm>

#include "core/base/checked_math.h"

namespace triptych {

namespace {

std::int64_t dense_outer_stride(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape.elements_between(1, shape.rank());
}

}  // namespace

std::size_t bytes_of(const Shape& shape, const ChannelsLast& format) {
  const auto rows = checked_add(shape[2], checked_mul(2, format.pad));
  const auto columns = checked_add(shape[3], checked_mul(2, format.pad));
  const auto positions =
      checked_add(checked_mul(shape[0], checked_mul(rows, columns)), kSlackPositions);
  return static_cast<std::size_t>(checked_mul(checked_mul(positions, format.pitch),
                                              static_cast<std::int64_t>(dtype_size(format.dtype))));
}

Operand Operand::dense(TensorSpec spec) {
  const auto stride = dense_outer_stride(spec.shape);
  return {std::move(spec), stride};
}

bool Operand::is_dense() const {
  const auto& shape = spec.shape;
  return shape.rank() == 0 || shape[0] <= 1 || outer_stride == dense_outer_stride(shape);
}

bool KernelQuery::dense() const {
  const auto is_dense = [](const Operand& operand) { return operand.is_dense(); };
  return std::ranges::all_of(inputs, is_dense) && std::ranges::all_of(outputs, is_dense);
}

}  // namespace triptych
