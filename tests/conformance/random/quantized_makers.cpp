// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantize.h"
#include "core/ops/quantized_conv.h"
#include "tests/conformance/random/makers.h"
#include "tests/conformance/random/windows.h"

namespace triptych::conformance {
namespace {

void add_quantize_linear(Grower& g) {
  const auto x = g.operand({.dtypes = {DType::F32}});
  g.add(make_op(QuantizeLinear{}), {x, g.constant({DType::F32, {}}, 0.01, 0.3)});
}

void add_dequantize_linear(Grower& g) {
  const auto x = g.operand({.dtypes = {DType::I8, DType::I32}, .limit = 1e6});
  const Shape shape = g.shape_of(x);
  DequantizeLinear op;
  Shape scales;
  if (shape.rank() > 0 && g.chance(0.5)) {
    op.axis = some_axis(g, shape.rank());
    scales = {shape.dim(op.axis)};
  }
  g.add(make_op(op), {x, g.constant({DType::F32, scales}, 1e-6, 1e-5)});
}

/// Appends bias, multiplier and shift, or some of them, and the node.
template <class Op>
void add_finished(Grower& g, Op op, std::vector<ValueId> inputs, std::int64_t channels) {
  const TensorSpec vector{DType::I32, {channels}};
  if (g.chance(0.4)) op.activation = "relu";
  if (g.chance(0.8)) inputs.push_back(g.leaf(vector, -20000, 20000));
  if (inputs.size() == 3 && g.chance(0.8)) {
    inputs.push_back(g.leaf(vector, 0x40000000, 0x7FFFFF00));
    inputs.push_back(g.leaf(vector, 34, 42));
  }
  g.add(make_op(std::move(op)), inputs);
}

ValueId some_image(Grower& g, Shape& shape) {
  const auto rank = g.chance(0.2) ? 3 : 4;
  const auto x =
      g.operand({.dtypes = {DType::I8}, .min_rank = rank, .max_rank = rank, .limit = 128});
  shape = g.shape_of(x);
  return x;
}

void add_quantized_conv(Grower& g) {
  Shape shape;
  const auto x = some_image(g, shape);
  if (shape.elements() == 0) return;
  QuantizedConv op;
  const auto kernel = some_window(g, spatial_sizes(shape), false, op);
  if (g.chance(0.2)) op.group = shape[1];
  Dims w = {op.group * g.between(1, op.group > 1 ? 2 : 8), shape[1] / op.group};
  w.insert(w.end(), kernel.begin(), kernel.end());
  const auto channels = w[0];
  const auto weight = g.leaf({DType::I8, Shape(std::move(w))}, -127, 127);
  add_finished(g, std::move(op), {x, weight}, channels);
}

void add_quantized_conv_transpose(Grower& g) {
  Shape shape;
  const auto x = some_image(g, shape);
  if (shape.elements() == 0) return;
  QuantizedConvTranspose op;
  if (g.chance(0.2)) op.group = shape[1];
  Dims w = {shape[1], g.between(1, op.group > 1 ? 2 : 6)};
  for (std::size_t i = 0; i < spatial_sizes(shape).size(); ++i) {
    w.push_back(g.between(1, 3));
    op.strides.push_back(g.between(1, 3));
  }
  const auto channels = w[1] * op.group;
  const auto weight = g.leaf({DType::I8, Shape(std::move(w))}, -127, 127);
  add_finished(g, std::move(op), {x, weight}, channels);
}

}  // namespace

void add_quantized_makers(std::vector<Maker>& makers) {
  makers.insert(makers.end(), {{add_quantize_linear, 1, false},
                               {add_dequantize_linear, 1, false},
                               {add_quantized_conv, 1, false},
                               {add_quantized_conv_transpose, 1, false}});
}

}  // namespace triptych::conformance
