// SPDX-License-Identifier: Apache-2.0
#include "tests/ptx/more_cases.h"

#include <fmt/core.h>

#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/dropout.h"
#include "core/ops/gather.h"
#include "core/ops/losses.h"
#include "core/ops/pool.h"
#include "core/ops/reduce.h"
#include "core/ops/resize.h"
#include "core/ops/unary.h"

namespace triptych::conformance {
namespace {

constexpr DType kDTypes[] = {DType::I8,  DType::U8,   DType::I32, DType::I64,
                             DType::F16, DType::BF16, DType::F32};

void add_arg_max(std::vector<OpCase>& cases, DType dtype) {
  ArgMax op;
  const auto x = of(dtype, {7, 5}, 0, 5);
  cases.push_back({fmt::format("first_{}", to_string(dtype)), make_op(op), {x}, false});
  op.axis = 1;
  cases.push_back({fmt::format("last_{}", to_string(dtype)), make_op(op), {x}, false});
}

void add_max_pool(std::vector<OpCase>& cases, DType dtype) {
  const auto x = of(dtype, {1, 2, 6, 8}, 0, 5);
  for (const std::int64_t size : {2, 3}) {
    MaxPool op;
    op.kernel_shape = {size, size};
    op.strides = {2, 2};
    cases.push_back({fmt::format("{}_of_{}", to_string(dtype), size), make_op(op), {x}, false});
  }
}

/// Columns of one block of the stated tree, and of several.
void add_reductions(std::vector<OpCase>& cases) {
  for (const auto kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min}) {
    for (const auto dtype : {DType::I32, DType::I64}) {
      const auto op = make_op(Reduce(kind, {0}, false));
      const auto name = std::string(to_string(dtype));
      cases.push_back({name + "_columns", op, {of(dtype, {9, 12}, -50, 50)}, false});
      cases.push_back({name + "_long_columns", op, {of(dtype, {1100, 12}, -50, 50)}, false});
    }
  }
}

void add_gathers(std::vector<OpCase>& cases) {
  const auto add = [&](std::string name, DType dtype, Shape shape, DType indices) {
    cases.push_back({std::move(name),
                     make_op(Gather()),
                     {of(dtype, std::move(shape), 0, 5), of(indices, {4}, 0, 2)},
                     false});
  };
  add("bytes_by_i32", DType::U8, {3, 5}, DType::I32);
  add("pairs_by_i32", DType::BF16, {3, 5}, DType::I32);
  add("wide_by_i64", DType::F32, {3, 8}, DType::I64);
}

/// Linear along the last `count` of eight axes.
void add_resize(std::vector<OpCase>& cases, int count) {
  Resize op;
  op.mode = "linear";
  op.sizes = std::vector<std::int64_t>(8, 2);
  for (int axis = 8 - count; axis < 8; ++axis) op.sizes[static_cast<std::size_t>(axis)] = 3;
  cases.push_back({fmt::format("axes_{}", count), make_op(op), {f32({2, 2, 2, 2, 2, 2, 2, 2})}});
}

/// More than four classes side by side across their lines, and one image, which starts anywhere in
/// a concatenation.
void add_losses(std::vector<OpCase>& cases) {
  const std::vector<InputRule> inputs = {f32({2, 9, 6}, -3, 3), of(DType::I64, {2, 6}, 0, 8)};
  cases.push_back({"nine_classes", make_op(SoftmaxCrossEntropyLoss()), inputs, false});
  auto with_gradient = inputs;
  with_gradient.push_back(f32({}));
  cases.push_back(
      {"nine_classes", make_op(SoftmaxCrossEntropyLossGradient()), with_gradient, false});
  cases.push_back({"one_image",
                   make_op(BinaryCrossEntropyWithLogitsGradient()),
                   {f32({1, 3, 7}, -3, 3), f32({1, 3, 7}, 0, 1), f32({})},
                   false});
}

/// Blocks of 64 x 64 weights for every multiprocessor of an H100, and two steps of positions. Tiles
/// of 128 x 256 weights.
void add_many_weights(std::vector<OpCase>& cases) {
  ConvWeightGradient op;
  op.kernel_shape = {1, 1};
  cases.push_back({"many_weights", make_op(op), {f32({2, 704, 2, 3}), f32({2, 768, 2, 3})}, false});
  // Rows that fill one tile and a half, in one step and in two, which blocks share.
  op.kernel_shape = {2, 2};
  op.pads = {1, 1, 0, 0};
  for (const std::int64_t images : {1, 2}) {
    cases.push_back({fmt::format("steps_{}", images),
                     make_op(op),
                     {f32({images, 64, 8, 8}), f32({images, 192, 8, 8})},
                     false});
  }
}

/// From one channel with 1 and 9 taps, to one channel with 1, and the gradients of the weights. The
/// many channels lie in planes.
void add_thin_layers(std::vector<OpCase>& cases) {
  const auto thin = f32({2, 1, 5, 6}), wide = f32({2, 16, 5, 6});
  for (const std::int64_t size : {1, 3}) {
    Conv conv;
    conv.pads = {size / 2, size / 2, size / 2, size / 2};
    conv.activation = "relu";
    ConvTranspose transposed;
    transposed.pads = conv.pads;
    ConvWeightGradient gradient;
    gradient.kernel_shape = {size, size};
    gradient.pads = conv.pads;
    const auto name = fmt::format("from_one_channel_{}", size);
    const auto bias = f32({16});
    cases.push_back({name, make_op(conv), {thin, f32({16, 1, size, size}), bias}, false});
    cases.push_back({name, make_op(transposed), {thin, f32({1, 16, size, size}), bias}, false});
    cases.push_back({name, make_op(gradient), {thin, wide}, false});
  }
  cases.push_back({"to_one_channel", make_op(Conv{}), {wide, f32({1, 16, 1, 1})}, false});
  cases.push_back({"to_one_channel", make_op(ConvTranspose{}), {wide, f32({16, 1, 1, 1})}, false});
  ConvWeightGradient gradient;
  gradient.kernel_shape = {1, 1};
  cases.push_back({"to_one_channel", make_op(gradient), {wide, thin}, false});
}

}  // namespace

void add_more_cases(std::vector<OpCase>& cases) {
  for (const auto dtype : kDTypes) {
    add_arg_max(cases, dtype);
    add_max_pool(cases, dtype);
  }
  add_reductions(cases);
  add_gathers(cases);
  for (int count = 4; count <= 8; ++count) add_resize(cases, count);
  add_losses(cases);
  add_many_weights(cases);
  add_thin_layers(cases);
  // One image, with a dense slice of a concatenation that starts anywhere.
  Dropout dropout;
  dropout.training_mode = true;
  cases.push_back(
      {"one_image", make_op(dropout), {f32({1, 3, 7}), of(DType::I64, {}, 3, 3)}, false});
  Unary gelu(UnaryKind::Gelu);
  gelu.approximate = "tanh";
  cases.push_back({"tanh_f16", make_op(gelu), {of(DType::F16, {3, 5})}, false});
  // So deep that blocks share a tile's sums.
  Conv conv;
  conv.pads = {1, 1, 1, 1};
  cases.push_back(
      {"shared_sums", make_op(conv), {f32({1, 128, 4, 4}), f32({3, 128, 3, 3})}, false});
}

}  // namespace triptych::conformance
