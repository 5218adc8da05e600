// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/int8_graphs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/random.h"
#include "core/graph/passes/quantize.h"
#include "core/ops/quantized_conv.h"
#include "experiments/measure/model_plan.h"

namespace triptych::measure {
namespace {

constexpr std::uint64_t kSeed = 2;

std::shared_ptr<const Tensor> random_weights(const Shape& shape) {
  Tensor weights({DType::I8, shape});
  RandomStream random(kSeed, 0);
  fill_int8(weights, random);
  return std::make_shared<const Tensor>(std::move(weights));
}

ValueId add_numbers(Graph& graph, const char* name, std::int64_t count, std::int32_t value) {
  Tensor numbers({DType::I32, Shape{count}});
  std::ranges::fill(numbers.as<std::int32_t>(), value);
  return graph.add_constant(name, std::make_shared<const Tensor>(std::move(numbers)));
}

/// x through `op`. With scales each result is saturate(round(sum * x * weights / results)).
Graph graph_of(const OpPtr& op, const Shape& x, std::shared_ptr<const Tensor> weights,
               std::int64_t outputs, const std::vector<double>& scales) {
  Graph graph;
  std::vector<ValueId> inputs = {graph.add_input("x", {DType::I8, x}),
                                 graph.add_constant("w", std::move(weights))};
  if (!scales.empty()) {
    const auto [multiplier, shift] = requantization_of(scales[0] * scales[1] / scales[2]);
    inputs.push_back(add_numbers(graph, "bias", outputs, 0));
    inputs.push_back(add_numbers(graph, "multiplier", outputs, multiplier));
    inputs.push_back(add_numbers(graph, "shift", outputs, shift));
  }
  graph.mark_output("y", graph.add_node(op, inputs).front());
  return graph;
}

/// Matrices of `rows` and `columns` one after the other, each transposed, as a tensor of `shape`.
std::shared_ptr<const Tensor> transposed(const Tensor& matrices, std::int64_t rows,
                                         std::int64_t columns, const Shape& shape) {
  Tensor result({DType::I8, shape});
  const auto from = matrices.as<std::int8_t>();
  const auto to = result.as<std::int8_t>();
  for (std::int64_t i = 0; i < std::ssize(from); ++i) {
    const auto column = i % columns, row = i / columns % rows, entry = i / columns / rows;
    to[static_cast<std::size_t>((entry * columns + column) * rows + row)] =
        from[static_cast<std::size_t>(i)];
  }
  return std::make_shared<const Tensor>(std::move(result));
}

}  // namespace

Graph int8_product_graph(const ProductOptions& options) {
  const auto& [m, k, n] = options.shape;
  QuantizedConv op;
  op.group = options.batch;
  const Shape shape = {options.batch * n, k, 1, 1};
  const auto weights = options.operands.second != nullptr
                           ? transposed(*options.operands.second, k, n, shape)
                           : random_weights(shape);
  return graph_of(make_op(op), {1, options.batch * k, m, 1}, weights, options.batch * n,
                  options.scales);
}

std::shared_ptr<const Tensor> int8_product_input(const ProductOptions& options) {
  const auto& [m, k, n] = options.shape;
  return transposed(*options.operands.first, m, k, {1, options.batch * k, m, 1});
}

Graph int8_conv_graph(const BenchOptions& options, std::int64_t batch) {
  const auto before = (options.window - 1) / 2, after = options.window / 2;  // keeps the size
  const Dims pads = {before, before, after, after};
  const auto [x, shape] = conv_operand_shapes(options, batch);
  const auto weights =
      options.operands.second != nullptr ? options.operands.second : random_weights(shape);
  if (options.pass == ConvPass::Data) {
    QuantizedConvTranspose gradient;
    gradient.pads = pads;
    return graph_of(make_op(gradient), x, weights, options.shape[0], options.scales);
  }
  QuantizedConv conv;
  conv.pads = pads;
  return graph_of(make_op(conv), x, weights, options.shape[1], options.scales);
}

}  // namespace triptych::measure
