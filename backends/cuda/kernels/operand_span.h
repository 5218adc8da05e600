// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/kernel.h"

namespace triptych::cuda {

/// Elements from the first of an operand to its last, the gaps between its images included.
inline std::int64_t span_of(const Operand& operand) {
  const auto& shape = operand.spec.shape;
  if (shape.rank() == 0) return 1;
  if (shape.elements() == 0) return 0;
  return (shape[0] - 1) * operand.outer_stride + shape.elements() / shape[0];
}

}  // namespace triptych::cuda
