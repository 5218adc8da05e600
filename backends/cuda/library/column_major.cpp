// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/library/column_major.h"

#include <optional>

namespace triptych::cuda {
namespace {

/// The one distance between neighbours, where there is one.
std::optional<std::int64_t> common_stride(const std::vector<std::int64_t>& offsets) {
  if (offsets.size() < 2) return 0;
  const auto stride = offsets[1] - offsets[0];
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] - offsets[i - 1] != stride) return std::nullopt;
  }
  return stride;
}

}  // namespace

BlasProduct blas_product(const MatMul& op, const MatMulGeometry& g) {
  const auto of_a = common_stride(g.batch_a), of_b = common_stride(g.batch_b);
  if (!of_a || !of_b) return {.problem = "batch axes of an operand repeat between others"};
  return {.m = g.n,
          .n = g.m,
          .k = g.k,
          .batch = static_cast<std::int64_t>(g.batch_a.size()),
          .left = {op.transpose_b, op.transpose_b ? g.k : g.n, op.transpose_b ? g.n : g.k, *of_b},
          .right = {op.transpose_a, op.transpose_a ? g.m : g.k, op.transpose_a ? g.k : g.m, *of_a},
          .problem = ""};
}

}  // namespace triptych::cuda
