// Graphs whose values a plan under bf16 stores channels last. Convolutions give integers that
// bfloat16 holds, so that stored values are those of planes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/graph/graph.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/pool.h"
#include "core/ops/reduce.h"
#include "core/ops/slice.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cuda {

/// Small integers, whose sums bfloat16 holds.
inline Tensor integers(const Shape& shape, std::uint64_t seed, std::int64_t most) {
  RandomStream random(seed, 0);
  Tensor tensor(TensorSpec{DType::F32, shape});
  for (auto& value : tensor.as<float>()) {
    value = static_cast<float>(random.below(2 * most + 1) - most);
  }
  return tensor;
}

/// Builds graphs whose convolutions have integers as results.
class Level {
 public:
  explicit Level(Graph& graph) : graph_(graph) {}

  /// A 1 x 1 convolution of a new input.
  ValueId convolved(const Shape& y) {
    const auto x = graph_.add_constant(name(), share(integers({y[0], 4, y[2], y[3]}, ++seed_, 3)));
    return convolve(x, y[1]);
  }
  ValueId convolve(ValueId x, std::int64_t channels) {
    const Shape w = {channels, graph_.spec(x).shape[1], 1, 1};
    return graph_.emit_one(make_op(Conv{}), {x, constant(integers(w, ++seed_, 3))});
  }
  /// The elements, as results of a convolution.
  ValueId copied(Tensor elements) {
    const auto channels = elements.shape()[1];
    Tensor w(TensorSpec{DType::F32, {channels, channels, 1, 1}});
    for (std::int64_t i = 0; i < channels; ++i) {
      w.as<float>()[static_cast<std::size_t>(i * channels + i)] = 1;
    }
    return graph_.emit_one(make_op(Conv{}),
                           {constant(std::move(elements)), constant(std::move(w))});
  }
  ValueId vector(std::int64_t channels) {
    return constant(cpu::random_tensor({channels}, ++seed_, 0.5F, 1));
  }
  ValueId slice(ValueId x, std::int64_t first, std::int64_t end) {
    Slice op;
    op.starts = {first};
    op.ends = {end};
    op.axes = {1};
    return graph_.emit_one(make_op(op), {x});
  }
  ValueId constant(Tensor tensor) { return graph_.add_constant(name(), share(std::move(tensor))); }

 private:
  std::string name() { return "c" + std::to_string(++names_); }
  static std::shared_ptr<Tensor> share(Tensor tensor) {
    return std::make_shared<Tensor>(std::move(tensor));
  }

  Graph& graph_;
  std::uint64_t seed_ = 0;
  int names_ = 0;
};

/// Which operands of normalised_layer are stored channels last.
struct StoredOperands {
  bool x = true, dy = true, results = true;
};

/// A layer of training and its gradient: x, normalised with the statistics of the batch, convolved.
inline Graph normalised_layer(const Shape& shape, bool relu, const StoredOperands& stored) {
  Graph graph;
  Level level(graph);
  const auto channels = shape[1];
  BatchNormalization normalization;
  normalization.training_mode = true;
  if (relu) normalization.activation = "relu";
  const auto operand = [&](bool is_stored) {
    return is_stored ? level.convolved(shape) : level.constant(integers(shape, 5, 9));
  };
  std::vector<ValueId> inputs = {operand(stored.x), level.vector(channels), level.vector(channels)};
  for (const auto* name : {"mean", "variance"}) {
    inputs.push_back(graph.add_state(name, cpu::random_tensor({channels}, 3, 0.5F, 1)));
  }
  const auto outputs = graph.add_node(make_op(normalization), inputs);
  if (!stored.results) graph.mark_output("y", outputs[0]);
  graph.mark_output("batch_mean", outputs[3]);
  graph.mark_output("deviation", outputs[4]);
  graph.mark_output("z", level.convolve(outputs[0], 3));
  BatchNormalizationGradient gradient;
  gradient.activation = normalization.activation;
  // Given statistics have the same bits for each format of x.
  std::vector<ValueId> operands = {inputs[0], operand(stored.dy), inputs[1], level.vector(channels),
                                   level.vector(channels)};
  if (relu) operands.push_back(inputs[2]);
  const auto gradients = graph.add_node(make_op(gradient), operands);
  graph.mark_output("dscale", gradients[1]);
  graph.mark_output("dbias", gradients[2]);
  graph.mark_output("dx", stored.results ? level.convolve(gradients[0], 3) : gradients[0]);
  return graph;
}

/// The same with running statistics, and without a gradient.
inline Graph running_layer(const Shape& shape, bool y_is_output) {
  Graph graph;
  Level level(graph);
  std::vector<ValueId> inputs = {level.convolved(shape)};
  for (int i = 0; i < 4; ++i) inputs.push_back(level.vector(shape[1]));
  const auto y = graph.add_node(make_op(BatchNormalization{}), inputs).front();
  graph.mark_output("z", y_is_output ? y : level.convolve(y, 3));
  return graph;
}

/// The slices of x: sums of one with another operand, and sums of the channels of the other.
inline Graph slices_and_sums(const Shape& shape) {
  Graph graph;
  Level level(graph);
  const auto channels = shape[1];
  const auto whole = level.convolved({shape[0], channels + 16, shape[2], shape[3]});
  const auto first = level.slice(whole, 0, channels), second = level.slice(whole, channels, 99);
  Binary add(BinaryKind::Add);
  const auto sum = graph.emit_one(make_op(add), {first, level.convolved(shape)});
  graph.mark_output("y", level.convolve(sum, 3));
  for (const auto kind : {ReduceKind::Sum, ReduceKind::Mean}) {
    Reduce reduce(kind, {0, 2, 3}, false);
    graph.mark_output(std::string(reduce.name()), graph.emit_one(make_op(reduce), {second}));
  }
  graph.mark_output("z", level.convolve(second, 3));
  return graph;
}

/// A convolution of 2 x 2 patches that are tiles, its transpose, and a gradient of its weights.
inline Graph patches_of_layers(const Shape& x, std::int64_t channels) {
  Graph graph;
  Level level(graph);
  const auto w = level.constant(integers({channels, x[1], 2, 2}, 5, 2));
  const auto a = level.convolved(x);
  Conv down;
  down.strides = {2, 2};
  const auto b = graph.emit_one(make_op(down), {a, w});
  ConvTranspose up;
  up.strides = {2, 2};
  graph.mark_output("y", level.convolve(graph.emit_one(make_op(up), {b, w}), 3));
  ConvWeightGradient gradient;
  gradient.kernel_shape = gradient.strides = {2, 2};
  graph.mark_output("dw", graph.emit_one(make_op(gradient), {a, b}));
  return graph;
}

/// The first and the last layer of a network, from and to one channel, and their gradients.
inline Graph thin_layers(const Shape& images, std::int64_t channels) {
  Graph graph;
  Level level(graph);
  const auto x = level.constant(integers(images, 7, 3));
  const auto dz = level.constant(integers(images, 8, 3));
  const auto v = level.constant(integers({channels, 1, 3, 3}, 9, 2));
  const auto w = level.constant(integers({1, channels, 1, 1}, 10, 2));
  Conv first;
  first.pads = {1, 1, 1, 1};
  const auto y = graph.emit_one(make_op(first), {x, v});
  graph.mark_output("z", graph.emit_one(make_op(Conv{}), {y, w}));
  ConvWeightGradient of_last;
  of_last.kernel_shape = {1, 1};
  graph.mark_output("dw", graph.emit_one(make_op(of_last), {y, dz}));
  const auto dy = graph.emit_one(make_op(ConvTranspose{}), {dz, w});
  ConvWeightGradient of_first;
  of_first.kernel_shape = {3, 3};
  of_first.pads = first.pads;
  graph.mark_output("dv", graph.emit_one(make_op(of_first), {x, dy}));
  return graph;
}

/// A pooling and its gradient, or the sum of that and of another one.
inline Graph pooling_with_gradient(const Shape& x, const MaxPool& pool, bool is_sum = false) {
  Graph graph;
  Level level(graph);
  const auto y = level.convolved(x);
  const auto p = graph.emit_one(make_op(pool), {y});
  graph.mark_output("z", level.convolve(p, 3));
  MaxPoolGradient gradient;
  static_cast<WindowAttributes&>(gradient) = pool;
  auto dx = graph.emit_one(make_op(gradient), {y, level.convolved(graph.spec(p).shape)});
  if (is_sum) {
    dx = graph.emit_one(make_op(Binary(BinaryKind::Add)), {dx, level.convolved(x)});
  }
  graph.mark_output("dz", level.convolve(dx, 3));
  return graph;
}

/// A convolution with enough channels for wgmma, and one that reads it.
inline Graph wide_convolution(const Shape& shape, std::int64_t channels) {
  Graph graph;
  Level level(graph);
  const auto x = level.constant(integers(shape, 7, 1));
  Conv conv;
  conv.pads = {1, 1, 1, 1};
  conv.activation = "relu";
  const auto w = level.constant(integers({channels, shape[1], 3, 3}, 8, 1));
  const auto y = graph.emit_one(make_op(conv), {x, w, level.constant(integers({channels}, 9, 5))});
  graph.mark_output("z", level.convolve(y, 8));
  return graph;
}

}  // namespace triptych::cuda
