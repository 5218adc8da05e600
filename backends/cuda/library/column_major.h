// A MatMul as BLAS wants it: column by column. A row-major matrix is its transpose there, so
// y = a b is computed as y' = b' a'.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/ops/matmul.h"

namespace triptych::cuda {

/// One factor of a product as it lies in memory: `rows` x `columns`, column-major and dense, so
/// that a column is `rows` elements from the next.
struct BlasFactor {
  bool transposed = false;
  std::int64_t rows = 1, columns = 1;
  std::int64_t batch_stride = 0;  ///< elements to the next batch entry. 0: all share one
};

/// result [m, n] = op(left) [m, k] op(right) [k, n], all column-major. `left` is MatMul's b,
/// `right` its a, and the result its y.
struct BlasProduct {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t batch = 1;
  BlasFactor left, right;
  std::string problem;  ///< why the product cannot be written so. Empty where it can
};

BlasProduct blas_product(const MatMul& op, const MatMulGeometry& geometry);

}  // namespace triptych::cuda
