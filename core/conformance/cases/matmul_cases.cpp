// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

OpPtr product(bool transpose_a, bool transpose_b) {
  MatMul op;
  op.transpose_a = transpose_a;
  op.transpose_b = transpose_b;
  return make_op(op);
}

void add_matrix_cases(std::vector<OpCase>& cases) {
  const auto add = [&](std::string name, Shape a, Shape b) {
    cases.push_back({std::move(name), product(false, false), {f32(a), f32(b)}});
  };
  add("one_by_one", {1, 1}, {1, 1});
  add("k1", {5, 1}, {1, 7});
  add("single_row", {1, 33}, {33, 17});
  add("single_column", {19, 23}, {23, 1});
  add("tiles_exact", {32, 64}, {64, 32});
  add("tiles_ragged", {37, 53}, {53, 41});
  add("k300", {9, 300}, {300, 11});
  add("wide", {3, 5}, {5, 131});
  add("tall", {131, 5}, {5, 3});
  add("deep", {5, 1100}, {1100, 3});  // where blocks of a GPU share a chain
}

void add_transposed_operand_cases(std::vector<OpCase>& cases) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      const std::string name = std::string(a ? "t" : "n") + (b ? "t" : "n");
      const Shape shape_a = a ? Shape{29, 13} : Shape{13, 29};
      const Shape shape_b = b ? Shape{18, 29} : Shape{29, 18};
      cases.push_back({"transposes_" + name, product(a, b), {f32(shape_a), f32(shape_b)}});
      const Shape stack_a = a ? Shape{2, 6, 5} : Shape{2, 5, 6};
      const Shape stack_b = b ? Shape{2, 7, 6} : Shape{2, 6, 7};
      cases.push_back({"batch_transposes_" + name, product(a, b), {f32(stack_a), f32(stack_b)}});
      // More than a tile of the kernels for large matrices, and no whole number of them.
      const Shape large_a = a ? Shape{48, 132} : Shape{132, 48};
      const Shape large_b = b ? Shape{196, 48} : Shape{48, 196};
      cases.push_back(
          {"large_transposes_" + name, product(a, b), {f32(large_a), f32(large_b)}, false});
    }
  }
}

void add_batched_matmul_cases(std::vector<OpCase>& cases) {
  const auto add = [&](std::string name, Shape a, Shape b) {
    cases.push_back({std::move(name), product(false, false), {f32(a), f32(b)}});
  };
  add("batch", {3, 4, 5}, {3, 5, 6});
  add("batch_two_axes", {2, 3, 4, 5}, {2, 3, 5, 6});
  add("shared_right", {3, 4, 5}, {5, 6});
  add("shared_left", {4, 5}, {3, 5, 6});
  add("broadcast_right", {3, 4, 5}, {1, 5, 6});
  add("broadcast_both", {2, 1, 4, 5}, {1, 3, 5, 6});
  add("vector_vector", {37}, {37});
  add("vector_matrix", {11}, {11, 13});
  add("matrix_vector", {13, 11}, {11});
  add("vector_batch", {5}, {3, 5, 6});
  add("batch_vector", {3, 4, 5}, {5});
  cases.push_back({"shared_right_transposed", product(false, true), {f32({3, 4, 5}), f32({6, 5})}});
  auto weights = f32({24, 20});
  weights.constant = true;
  cases.push_back({"constant_right", product(false, false), {f32({7, 24}), weights}});
}

void add_gemm_cases(std::vector<OpCase>& cases) {
  const auto add = [&](std::string name, Gemm op, std::vector<InputRule> inputs) {
    cases.push_back({std::move(name), make_op(op), std::move(inputs)});
  };
  Gemm op;
  add("plain", op, {f32({6, 9}), f32({9, 7})});
  add("row_bias", op, {f32({6, 9}), f32({9, 7}), f32({7})});
  add("column_bias", op, {f32({6, 9}), f32({9, 7}), f32({6, 1})});
  add("scalar_bias", op, {f32({6, 9}), f32({9, 7}), f32({})});
  op.transB = true;
  add("linear_layer", op, {f32({17, 31}), f32({19, 31}), f32({19})});
  op.transA = true;
  op.alpha = 0.5F;
  op.beta = 2;
  add("scaled_both_transposed", op, {f32({9, 6}), f32({7, 9}), f32({6, 7})});
  op.alpha = -1;
  add("negative_alpha", op, {f32({9, 6}), f32({7, 9}), f32({6, 7})});
}

}  // namespace

void add_matmul_cases(std::vector<OpCase>& cases) {
  add_matrix_cases(cases);
  add_transposed_operand_cases(cases);
  add_batched_matmul_cases(cases);
  add_gemm_cases(cases);
}

}  // namespace triptych::conformance
