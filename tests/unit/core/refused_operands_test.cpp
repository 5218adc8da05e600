// Operands and attributes that operators refuse, each with its reason.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/ops/attention_gradient.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/concat.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/gather.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/normalization.h"
#include "core/ops/optimizers.h"
#include "core/ops/pad.h"
#include "core/ops/pool.h"
#include "core/ops/recurrent.h"
#include "core/ops/reduce.h"
#include "core/ops/slice.h"

namespace triptych {
namespace {

std::vector<TensorSpec> floats(const std::vector<Shape>& shapes) {
  std::vector<TensorSpec> specs;
  for (const auto& shape : shapes) specs.push_back({DType::F32, shape});
  return specs;
}

void expect_specs_refused(const Op& op, const std::vector<TensorSpec>& inputs, const char* reason) {
  EXPECT_THAT([&] { op.infer(inputs); },
              testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr(reason)))
      << to_string(op);
}

void expect_shapes_refused(const Op& op, const std::vector<Shape>& inputs, const char* reason) {
  expect_specs_refused(op, floats(inputs), reason);
}

TEST(RefusedOperands, of_attention) {
  const auto heads = [](std::int64_t q, std::int64_t kv) {
    Attention op;
    op.q_num_heads = q;
    op.kv_num_heads = kv;
    return op;
  };
  const Shape one = {1, 2, 3, 4};
  EXPECT_NO_THROW(heads(2, 2).infer(floats({one, one, one})));
  EXPECT_NO_THROW(heads(2, 2).infer(floats({{1, 3, 8}, {1, 3, 8}, {1, 3, 8}})));
  expect_shapes_refused(heads(3, 2), std::vector{one, one, one}, "its 2 heads are not 3");
  expect_shapes_refused(heads(0, 2), {{1, 3, 8}, {1, 3, 8}, {1, 3, 8}},
                        "divide the last size, got 0");
  expect_shapes_refused(heads(2, 3), {{1, 3, 8}, {1, 3, 8}, {1, 3, 8}},
                        "divide the last size, got 3");
  const Attention op;
  expect_shapes_refused(op, {{2, 3}, {2, 3}, {2, 3}}, "its rank must be 3 or 4");
  expect_shapes_refused(op, {one, {1, 2, 0, 4}, {1, 2, 0, 4}},
                        "k is [1, 2, 0, 4]; it must not be empty");
  expect_shapes_refused(op, {{2, 2, 3, 4}, one, one}, "q and k differ in batch entries");
  expect_shapes_refused(op, {one, one, {2, 2, 3, 4}}, "k and v differ in batch entries");
  expect_shapes_refused(op, {one, one, {1, 1, 3, 4}}, "k and v differ in heads");
  expect_shapes_refused(op, {{1, 3, 3, 4}, one, one}, "heads of k do not divide those of q");
  expect_shapes_refused(op, {{1, 2, 3, 5}, one, one}, "heads of q and k differ in size");
  expect_shapes_refused(op, {one, one, {1, 2, 5, 4}}, "k and v differ in rows");
}

TEST(RefusedOperands, of_the_gradient_of_attention) {
  const Shape one = {1, 2, 3, 4}, other = {1, 2, 3, 5};
  const AttentionGradient op;
  EXPECT_NO_THROW(op.infer(floats({one, one, other, other, other})));
  EXPECT_NO_THROW(op.infer(floats({one, one, other, other, other, {1, 2, 3}})));
  expect_shapes_refused(op, {one, one, other, one, other}, "input 3 is f32[1, 2, 3, 4]");
  expect_shapes_refused(op, {one, one, other, other, one}, "input 4 is f32[1, 2, 3, 4]");
  expect_shapes_refused(op, {one, one, other, other, other, {1, 3, 2}}, "input 5 is f32[1, 3, 2]");
  expect_shapes_refused(op, {one, one, {1, 1, 3, 5}, other, other}, "k and v differ in heads");
}

TEST(RefusedOperands, of_recurrent_layers) {
  const auto layer = [](std::string cell, std::string activations = "") {
    Recurrent op;
    op.cell = std::move(cell);
    op.activations = std::move(activations);
    return op;
  };
  const Shape x = {5, 2, 12}, r = {12, 3}, bias = {12}, state = {2, 3};
  const std::vector lstm = {x, r, bias, state, state};
  EXPECT_NO_THROW(layer("LSTM").infer(floats(lstm)));
  expect_shapes_refused(layer("GRUR"), lstm, "cell is \"GRUR\"; it must be RNN, GRU or LSTM");
  expect_shapes_refused(layer("LSTM", "Sigmoid, Elu, Tanh"), lstm, "the activation \"Elu\"");
  expect_shapes_refused(layer("LSTM", "Tanh"), lstm, "LSTM has 3 activations, not \"Tanh\"");
  expect_shapes_refused(layer("GRU"), lstm, "4 input");
  expect_shapes_refused(layer("LSTM"), {x, r, bias, state}, "5 to 6 inputs");
  expect_shapes_refused(layer("LSTM"), {{0, 2, 12}, r, bias, state, state}, "must not be empty");
  expect_shapes_refused(layer("LSTM"), {x, {12, 4}, bias, state, state}, "input 1 is [12, 4]");
  expect_shapes_refused(layer("LSTM"), {x, r, {9}, state, state}, "input 2 is [9]");
  expect_shapes_refused(layer("LSTM"), {x, r, bias, state, {1, 3}}, "input 4 is [1, 3]");
  expect_shapes_refused(layer("LSTM"), {x, r, bias, state, state, {12}}, "it must be [9]");
}

TEST(RefusedOperands, of_products) {
  const auto transposed = [](bool a, bool b) {
    MatMul op;
    op.transpose_a = a;
    op.transpose_b = b;
    return op;
  };
  const MatMul op;
  expect_shapes_refused(op, {{}, {2}}, "a is []; it must be a vector or matrices, not empty");
  expect_shapes_refused(op, {{2, 2}, {}}, "b is []; it must be a vector or matrices, not empty");
  expect_shapes_refused(op, {{0, 2}, {2, 2}}, "a is [0, 2]; it must be a vector or matrices");
  expect_shapes_refused(transposed(true, false), {{2}, {2, 2}}, "transpose_a needs rank 2 or more");
  expect_shapes_refused(transposed(false, true), {{2, 2}, {2}}, "transpose_b needs rank 2 or more");
  expect_shapes_refused(op, {{2, 3}, {2, 3}}, "a [2, 3] has 3 columns, b [2, 3] has 2 rows");
  expect_shapes_refused(transposed(true, true), {{2, 3}, {3, 4}},
                        "a [2, 3] transposed has 2 columns, b [3, 4] transposed has 4 rows");
  expect_shapes_refused(Gemm{}, {{2, 3}, {3, 4}, {5, 2, 4}}, "it must broadcast to [2, 4]");
  EXPECT_NO_THROW(Gemm{}.infer(floats({{2, 3}, {3, 4}, {1, 4}})));
}

TEST(MatMulGeometry, makes_one_product_of_a_batch_that_shares_b) {
  const auto merged = [](bool transpose_a, Shape a, Shape b) {
    MatMul op;
    op.transpose_a = transpose_a;
    return MatMulGeometry::merged(op, {DType::F32, std::move(a)}, {DType::F32, std::move(b)});
  };
  const auto one = merged(false, {3, 2, 4}, {4, 5});
  EXPECT_EQ(one.m, 6);
  EXPECT_EQ(one.batch_a.size(), 1U);
  EXPECT_EQ(merged(false, {3, 2, 4}, {1, 4, 5}).m, 6);
  for (const auto& apart : {merged(false, {3, 2, 4}, {3, 4, 5}), merged(true, {3, 4, 2}, {4, 5}),
                            merged(false, {1, 2, 4}, {3, 4, 5})}) {
    EXPECT_EQ(apart.m, 2);
    EXPECT_EQ(apart.batch_a.size(), 3U);
  }
}

TEST(RefusedOperands, of_normalizations) {
  for (const Shape& x : {Shape{3}, Shape{0, 3}}) {
    const char* reason = "it must be [N, C, ...] with no size 0";
    expect_shapes_refused(BatchNormalization{}, {x, {3}, {3}, {3}, {3}}, reason);
    expect_shapes_refused(InstanceNormalization{}, {x, {3}, {3}}, reason);
    expect_shapes_refused(GlobalAveragePool{}, std::vector{x}, reason);
  }
  expect_shapes_refused(GlobalAveragePool{}, {{2, 3}}, "it must be [N, C, ...] with no size 0");
  expect_shapes_refused(LayerNormalization{}, {{0, 3}, {3}}, "x is [0, 3], empty");
  for (const std::int64_t groups : {0, 2}) {
    GroupNormalization op;
    op.num_groups = groups;
    expect_shapes_refused(op, {{1, 3, 2}, {3}, {3}}, "does not divide x's 3 channels");
  }
}

TEST(RefusedOperands, of_losses) {
  expect_shapes_refused(BinaryCrossEntropyWithLogits{}, {{0, 2}, {0, 2}}, "no element to average");
  const TensorSpec labels{DType::I64, {2}};
  const SoftmaxCrossEntropyLoss op;
  expect_specs_refused(op, std::vector{TensorSpec{DType::F32, {2}}, labels},
                       "[N, C, ...] with C >= 1");
  expect_specs_refused(op, std::vector{TensorSpec{DType::F32, {2, 0}}, labels}, "with C >= 1");
  EXPECT_NO_THROW(op.infer(std::vector{TensorSpec{DType::F32, {2, 1}}, labels}));
}

TEST(RefusedOperands, of_windows_and_groups) {
  ConvWeightGradient gradient;
  gradient.kernel_shape = {2};
  for (const std::int64_t group : {0, 3}) {
    gradient.group = group;
    expect_shapes_refused(gradient, {{1, 4, 5}, {1, 3, 4}}, "does not divide x's 4 channels");
  }
  ConvTranspose transposed;
  transposed.output_padding = {0, -1};
  expect_shapes_refused(transposed, {{1, 1, 3, 3}, {1, 1, 2, 2}},
                        "must have 2 entries of at least 0");
  transposed.output_padding = {0};
  expect_shapes_refused(transposed, {{1, 1, 3, 3}, {1, 1, 2, 2}},
                        "must have 2 entries of at least 0");
  MaxPool pool;
  pool.kernel_shape = {2};
  expect_specs_refused(pool, std::vector{TensorSpec{DType::Bool, {1, 1, 4}}},
                       "it must be a number");
  MaxPoolWithIndex indexed;
  indexed.kernel_shape = {16, 17};
  expect_shapes_refused(indexed, {{1, 1, 20, 20}}, "272 taps; an index numbers up to 256");
  indexed.kernel_shape = {16, 16};
  EXPECT_EQ(indexed.infer(floats({{1, 1, 20, 20}}))[1], (TensorSpec{DType::U8, {1, 1, 5, 5}}));
  MaxPoolIndexGradient spread;
  spread.kernel_shape = {2};
  spread.input_shape = {1, 1, 4};
  expect_specs_refused(
      spread, std::vector{TensorSpec{DType::U8, {1, 1, 2}}, TensorSpec{DType::F32, {1, 1, 3}}},
      "its shape must be dy's");
  expect_specs_refused(
      spread,
      std::vector{TensorSpec{DType::U8, {1, 1, 3}}, TensorSpec{DType::F32, {1, 1, 3}},
                  TensorSpec{DType::F32, {1, 1, 3}}},
      "the other gradient is f32[1, 1, 3]; it must be f32[1, 1, 4], as x");
}

TEST(RefusedOperands, of_what_joins_cuts_and_picks) {
  Split split;
  split.num_outputs = 4;
  expect_shapes_refused(split, {{5}}, "is too short for 4 outputs");
  split.num_outputs = 3;
  EXPECT_EQ(split.infer(floats({{5}})).back().shape, Shape{1});
  const Concat concat;
  expect_shapes_refused(concat, {{2, 3}, {2}}, "they may differ only along axis 0");
  const TensorSpec whole{DType::I64, {2, 3}};
  expect_specs_refused(concat, std::vector{TensorSpec{DType::F32, {2, 3}}, whole},
                       "only along axis 0");
  Slice slice;
  slice.starts = slice.ends = {0};
  slice.steps = {1, 1};
  expect_shapes_refused(slice, {{5}}, "they must have equally many");
  Pad pad;
  pad.mode = "edge";
  pad.pads = {0, 1};
  expect_shapes_refused(pad, {{0}}, "has nothing to repeat");
  pad.pads = {0, 0};
  EXPECT_NO_THROW(pad.infer(floats({{0}})));
  const auto taken = [](const Shape& indices) {
    return std::vector{TensorSpec{DType::F32, {0, 2}}, TensorSpec{DType::I64, indices}};
  };
  expect_specs_refused(Gather{}, taken({1}), "nothing can be taken from it");
  EXPECT_EQ(Gather{}.infer(taken({0})).front().shape, (Shape{0, 2}));
  const ArgMax most;
  expect_specs_refused(most, std::vector{TensorSpec{DType::Bool, {2}}}, "Cast it first");
  expect_shapes_refused(most, {{0, 2}}, "no element along axis 0");
  EXPECT_NO_THROW(most.infer(floats({{0, 0}})));
  expect_shapes_refused(most, {{2}, {2}}, "takes 1 inputs, got 2");
}

TEST(RefusedOperands, rates_of_optimizers) {
  const auto refused = [](const Op& op, const char* reason) {
    expect_specs_refused(op, floats({{}, {}, {2}, {2}, {2}, {2}}), reason);
  };
  SgdUpdate sgd;
  sgd.momentum = -0.5F;
  refused(sgd, "momentum is -0.5; it must be at least 0");
  AdamUpdate adam;
  adam.beta1 = 1;
  refused(adam, "beta1 is 1; it must be in [0, 1)");
  adam.beta1 = -0.5F;
  refused(adam, "beta1 is -0.5; it must be in [0, 1)");
}

}  // namespace
}  // namespace triptych
