// The elementwise operators as functions of rows, for the kernels that run one operator and for the
// kernel that runs a chain of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/kernels/elementwise.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace triptych::cpu {

/// y[i] = f(x[i]) for a piece of a row. y may be x.
using UnaryRow = void (*)(const std::byte* x, std::byte* y, std::int64_t count,
                          const scalar::UnaryParameters& parameters);

UnaryRow row_of(const Unary& op, DType dtype);
/// Simple operations in the time of an element (backends/cpu/grain.h).
std::int64_t operations_of(const Unary& op);

/// y[i] = f(a[i * a_stride], b[i * b_stride]). y may be an operand of stride 1.
struct RowOperands {
  const std::byte* a;
  const std::byte* b;
  std::byte* y;
  std::int64_t a_stride, b_stride;  ///< 1, or 0 for one element
};

using BinaryRow = void (*)(const RowOperands& row, std::int64_t count);

/// The operator for inputs of `dtype`.
BinaryRow row_of(BinaryKind kind, DType dtype);

}  // namespace triptych::cpu
