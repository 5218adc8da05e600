// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kernel.h"

#include <algorithm>

namespace triptych {

namespace {

std::int64_t dense_outer_stride(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape.elements_between(1, shape.rank());
}

}  // namespace

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
