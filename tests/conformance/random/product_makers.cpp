// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/attention_gradient.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/matmul.h"
#include "core/ops/recurrent.h"
#include "core/ops/unary.h"
#include "tests/conformance/random/makers.h"
#include "tests/conformance/random/windows.h"

namespace triptych::conformance {
namespace {

/// Keeps, drops or broadcasts the leading axes. The caller provides the last two.
Shape matrix_shape(Grower& g, const Shape& like, std::int64_t rows, std::int64_t columns) {
  Dims dims(like.dims().begin(), like.dims().end() - 2);
  dims = g.broadcast_variant(Shape(std::move(dims))).dims();
  dims.push_back(rows);
  dims.push_back(columns);
  return Shape(std::move(dims));
}

void add_mat_mul(Grower& g) {
  const auto a = g.operand({.min_rank = 1});
  const Shape shape = g.shape_of(a);
  MatMul op;
  op.transpose_a = shape.rank() >= 2 && g.chance(0.3);
  const auto k = shape.dim(op.transpose_a ? -2 : -1);
  if (g.chance(0.15)) {
    g.add(make_op(op), {a, g.operand_of(Shape{k})});
    return;
  }
  op.transpose_b = g.chance(0.3);
  const auto n = g.between(1, 9);
  const Shape like = shape.rank() == 1 ? Shape{1, 1} : shape;
  const auto b =
      g.operand_of(op.transpose_b ? matrix_shape(g, like, n, k) : matrix_shape(g, like, k, n));
  g.add(make_op(op), {a, b});
}

void add_gemm(Grower& g) {
  const auto a = g.operand({.min_rank = 2, .max_rank = 2, .limit = 1});
  Gemm op;
  op.alpha = g.one_of<float>({1, 1, 0.5F, -2});
  op.beta = g.one_of<float>({1, 1, 0.25F, -1});
  op.transA = g.chance(0.4);
  op.transB = g.chance(0.4);
  const auto m = g.shape_of(a)[op.transA ? 1 : 0], k = g.shape_of(a)[op.transA ? 0 : 1];
  const auto n = g.between(1, 9);
  std::vector<ValueId> inputs = {a, g.operand_of(op.transB ? Shape{n, k} : Shape{k, n}, 1)};
  if (g.chance(0.7)) inputs.push_back(g.operand_of(g.broadcast_variant({m, n}), 1));
  g.add(make_op(op), inputs);
}

/// Rank 3 or 4, like the operand. Operands up to 1, for which its bound holds.
template <class Op>
void add_attention(Grower& g) {
  const auto q = g.operand({.min_rank = 3, .max_rank = 4, .limit = 1});
  const Shape shape = g.shape_of(q);
  Op op;
  op.is_causal = g.chance(0.4);
  op.scale = g.one_of<float>({0, 0, 0.5F, 1});
  const auto keys = g.between(1, 9), value_size = g.between(1, 9);
  if (shape.rank() == 4) {
    const auto heads = g.chance(0.3) ? 1 : shape[1];
    const auto k = g.operand_of(Shape{shape[0], heads, keys, shape[3]}, 1);
    g.add(make_op(op), {q, k, g.operand_of(Shape{shape[0], heads, keys, value_size}, 1)});
    return;
  }
  op.q_num_heads = shape[2] % 2 == 0 ? 2 : 1;
  op.kv_num_heads = g.chance(0.5) ? op.q_num_heads : 1;
  const auto size = shape[2] / op.q_num_heads * op.kv_num_heads;
  const auto k = g.operand_of(Shape{shape[0], keys, size}, 1);
  g.add(make_op(op), {q, k, g.operand_of(Shape{shape[0], keys, value_size * op.kv_num_heads}, 1)});
}

/// Rows of the weights sum to 1 at most, for which its bound holds.
void add_recurrent(Grower& g) {
  Recurrent op;
  op.cell = g.one_of<std::string>({"RNN", "GRU", "LSTM"});
  op.reverse = g.chance(0.3);
  op.linear_before_reset = g.chance(0.5);
  const bool is_lstm = op.cell == "LSTM";
  const auto steps = g.between(1, 4), batch = g.between(1, 3), hidden = g.between(1, 5);
  const auto rows = hidden * recurrent_rule(op.cell).gates;
  const Shape state = {batch, hidden};
  std::vector<ValueId> inputs = {g.operand_of(Shape{steps, batch, rows}, 1),
                                 g.operand_of(Shape{rows, hidden}, 1 / static_cast<double>(hidden)),
                                 g.operand_of(Shape{rows}, 1), g.operand_of(state, 1)};
  if (is_lstm) inputs.push_back(g.operand_of(state, 1));
  if (is_lstm && g.chance(0.3)) inputs.push_back(g.operand_of(Shape{3 * hidden}, 1));
  g.add(make_op(op), inputs);
}

/// A divisor of `channels`, mostly 1.
std::int64_t some_group(Grower& g, std::int64_t channels) {
  if (g.chance(0.7)) return 1;
  const auto group = g.between(1, channels);
  return channels % group == 0 ? group : channels;
}

/// Weights of a convolution over x. Fills the window of `op`.
template <class Op>
Shape some_weights(Grower& g, const Shape& x, Op& op) {
  op.group = some_group(g, x[1]);
  const auto kernel = some_window(g, spatial_sizes(x), false, op);
  Dims w = {op.group * g.between(1, op.group > 1 ? 2 : 8), x[1] / op.group};
  w.insert(w.end(), kernel.begin(), kernel.end());
  return Shape(std::move(w));
}

void add_conv(Grower& g) {
  const auto x = g.image();
  Conv op;
  const Shape w = some_weights(g, g.shape_of(x), op);
  std::vector<ValueId> inputs = {x, g.operand_of(w)};
  if (g.chance(0.5)) inputs.push_back(g.operand_of(Shape{w[0]}));
  if (!g.smooth() && g.chance(0.2)) op.activation = "relu";
  const auto y = g.add_one(make_op(op), inputs);
  if (g.chance(0.3)) g.add(make_op(Unary(UnaryKind::Relu)), {y});
}

/// Chains that the inference passes fuse: a convolution, then a normalisation or a bias, then Relu.
void add_conv_block(Grower& g) {
  const auto x = g.image(4);
  Conv op;
  const Shape w = some_weights(g, g.shape_of(x), op);
  auto y = g.add_one(make_op(op), {x, g.constant({DType::F32, w}, -1, 1)});
  const TensorSpec vector{DType::F32, {w[0]}};
  if (g.chance(0.5)) {
    y = g.add_one(make_op(BatchNormalization{}),
                  {y, g.constant(vector, 0.5, 1), g.constant(vector, -1, 1),
                   g.constant(vector, -1, 1), g.constant(vector, 0.5, 2)});
  } else {
    Dims dims(static_cast<std::size_t>(w.rank()) - 1, 1);
    dims[0] = w[0];
    const auto bias = g.constant({DType::F32, Shape(std::move(dims))}, -1, 1);
    y = g.add_one(make_op(Binary(BinaryKind::Add)), {y, bias});
  }
  g.add(make_op(Unary(UnaryKind::Relu)), {y});
}

void add_conv_weight_gradient(Grower& g) {
  const auto x = g.image();
  Conv forward;
  const Shape shape = g.shape_of(x);
  const Shape w = some_weights(g, shape, forward);
  const auto y =
      forward.infer(std::vector<TensorSpec>{{DType::F32, shape}, {DType::F32, w}}).front();
  ConvWeightGradient op;
  static_cast<WindowAttributes&>(op) = forward;
  op.kernel_shape = spatial_sizes(w);
  op.group = forward.group;
  g.add(make_op(op), {x, g.operand_of(y)});
}

void add_conv_transpose(Grower& g) {
  const auto x = g.image();
  const Shape shape = g.shape_of(x);
  ConvTranspose op;
  op.group = some_group(g, shape[1]);
  Dims w = {shape[1], g.between(1, op.group > 1 ? 2 : 6)};
  const auto spatial = spatial_sizes(shape);
  op.pads.resize(2 * spatial.size());
  for (std::size_t i = 0; i < spatial.size(); ++i) {
    const auto kernel = g.between(1, 3), stride = g.between(1, 3);
    const auto dilation = g.chance(0.2) ? 2 : 1;
    w.push_back(kernel);
    op.strides.push_back(stride);
    op.dilations.push_back(dilation);
    op.output_padding.push_back(g.between(0, stride - 1));
    const auto covered = stride * (spatial[i] - 1) + (kernel - 1) * dilation + 1;
    op.pads[i] = g.between(0, std::min<std::int64_t>(covered - 1, 2));
    op.pads[i + spatial.size()] = g.between(0, std::min<std::int64_t>(covered - 1 - op.pads[i], 2));
  }
  if (g.chance(0.3)) op.output_padding.clear();
  if (g.chance(0.2)) {
    op.pads.clear();
    op.output_padding.clear();
    op.auto_pad = g.one_of<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID"});
  }
  const auto channels = w[1] * op.group;
  std::vector<ValueId> inputs = {x, g.operand_of(Shape(std::move(w)))};
  if (g.chance(0.5)) inputs.push_back(g.operand_of(Shape{channels}));
  g.add(make_op(op), inputs);
}

}  // namespace

void change_one_number(Grower& g, std::vector<std::int64_t>& kernel, WindowAttributes& window) {
  const auto axis = static_cast<std::size_t>(g.between(0, std::ssize(kernel) - 1));
  const auto change = [&](std::int64_t& number) { number += number > 1 && g.chance(0.5) ? -1 : 1; };
  switch (g.between(0, 3)) {
    case 0:
      return change(kernel[axis]);
    case 1:
      return change(window.strides[axis]);
    case 2:
      return change(window.dilations[axis]);
    default:
      window.pads[axis + (g.chance(0.5) ? kernel.size() : 0)] += 1;
  }
}

namespace {

/// A window that kernels are specialised for, or one that differs from it in one number.
std::vector<std::int64_t> special_window(Grower& g, std::size_t axes, bool pooling,
                                         WindowAttributes& window) {
  const auto size = pooling ? 2 : g.between(1, 3);
  std::vector<std::int64_t> kernel(axes, size);
  window.strides.assign(axes, size == 2 ? 2 : 1);
  window.dilations.assign(axes, 1);
  window.pads.assign(2 * axes, size == 3 ? 1 : 0);
  if (g.chance(0.5)) change_one_number(g, kernel, window);
  if (pooling || g.chance(0.3)) window.kernel_shape = kernel;
  return kernel;
}

}  // namespace

std::vector<std::int64_t> some_window(Grower& g, const std::vector<std::int64_t>& spatial,
                                      bool pooling, WindowAttributes& window) {
  if (*std::ranges::min_element(spatial) >= 3 && g.chance(0.3)) {
    return special_window(g, spatial.size(), pooling, window);
  }
  std::vector<std::int64_t> kernel, ends;
  for (const auto size : spatial) {
    auto taps = g.between(1, 3);
    const auto dilation = g.chance(0.2) ? 2 : 1;
    if ((taps - 1) * dilation + 1 > size) taps = 1;
    const auto most = pooling ? std::min<std::int64_t>((taps - 1) * dilation, 1) : 2;
    kernel.push_back(taps);
    window.strides.push_back(g.one_of<std::int64_t>({1, 1, 2, 3}));
    window.dilations.push_back(dilation);
    window.pads.push_back(g.chance(0.5) ? g.between(0, most) : 0);
    ends.push_back(g.chance(0.5) ? g.between(0, most) : 0);
  }
  window.pads.insert(window.pads.end(), ends.begin(), ends.end());
  if (pooling || g.chance(0.3)) window.kernel_shape = kernel;
  if (g.chance(0.2)) {
    window.pads.clear();
    window.auto_pad = g.one_of<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID"});
  }
  if (g.chance(0.2)) window.strides.clear();
  return kernel;
}

void add_product_makers(std::vector<Maker>& makers) {
  makers.insert(makers.end(), {{add_mat_mul, 3},
                               {add_gemm},
                               {add_attention<Attention>},
                               {add_attention<AttentionWithSums>, 1, false},
                               {add_recurrent},
                               {add_conv, 3},
                               {add_conv_block, 2},
                               {add_conv_weight_gradient, 1, false},
                               {add_conv_transpose, 2}});
}

}  // namespace triptych::conformance
