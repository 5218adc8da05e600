// A MatMul turned column-major gives the same numbers, with any operand transposed, repeated or
// batched.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/library/column_major.h"

#include <gmock/gmock.h>

#include "core/graph/reference.h"

namespace triptych::cuda {
namespace {

using testing::HasSubstr;

RefTensor numbered(const Shape& shape, double step) {
  RefTensor tensor = {{DType::F32, shape}, {}};
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    tensor.values.push_back(static_cast<double>(i % 17) * step - 3);
  }
  return tensor;
}

/// op(factor)[row, column] of a batch entry.
double at(const BlasFactor& f, const std::vector<double>& values, std::int64_t entry,
          std::int64_t row, std::int64_t column) {
  if (f.transposed) std::swap(row, column);
  EXPECT_LT(row, f.rows);
  EXPECT_LT(column, f.columns);
  return values.at(static_cast<std::size_t>(entry * f.batch_stride + column * f.rows + row));
}

/// Product as a BLAS computes it, column by column, one batch entry after another.
std::vector<double> compute(const BlasProduct& p, const RefTensor& a, const RefTensor& b) {
  std::vector<double> y;
  for (std::int64_t entry = 0; entry < p.batch; ++entry) {
    for (std::int64_t column = 0; column < p.n; ++column) {
      for (std::int64_t row = 0; row < p.m; ++row) {
        double sum = 0;
        for (std::int64_t k = 0; k < p.k; ++k) {
          sum += at(p.left, b.values, entry, row, k) * at(p.right, a.values, entry, k, column);
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

struct Case {
  Shape a, b;
  bool transpose_a = false, transpose_b = false;
};

BlasProduct product_of(const Case& test) {
  MatMul op;
  op.transpose_a = test.transpose_a;
  op.transpose_b = test.transpose_b;
  return blas_product(op, MatMulGeometry::of(op, {DType::F32, test.a}, {DType::F32, test.b}));
}

TEST(ColumnMajor, computes_what_matmul_does) {
  const std::vector<Case> cases = {
      {{2, 3}, {3, 5}},
      {{3, 2}, {3, 5}, true, false},
      {{2, 3}, {5, 3}, false, true},
      {{3, 2}, {5, 3}, true, true},
      {{4, 2, 3}, {4, 3, 5}},
      {{4, 2, 3}, {3, 5}},
      {{2, 3}, {4, 5, 3}, false, true},
      {{2, 4, 2, 3}, {2, 4, 3, 5}},
      {{2, 4, 3, 2}, {1, 1, 3, 5}, true, false},
      {{3}, {3, 5}},
      {{2, 3}, {3}},
      {{3}, {3}},
      {{1, 1, 3}, {7, 3, 1}},
  };
  for (const auto& test : cases) {
    MatMul op;
    op.transpose_a = test.transpose_a;
    op.transpose_b = test.transpose_b;
    const std::vector<RefTensor> inputs = {numbered(test.a, 1), numbered(test.b, 0.5)};
    const auto product = product_of(test);
    ASSERT_EQ(product.problem, "");
    EXPECT_EQ(compute(product, inputs[0], inputs[1]), evaluate_reference(op, inputs)[0].values)
        << to_string(test.a) << " " << to_string(test.b) << " " << to_string(op);
  }
}

TEST(ColumnMajor, says_what_one_stride_cannot_reach) {
  EXPECT_THAT(product_of({{2, 1, 2, 3}, {2, 4, 3, 5}}).problem, HasSubstr("repeat"));
}

}  // namespace
}  // namespace triptych::cuda
