// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/bench_problems.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backends/all_backends.h"
#include "core/base/list_text.h"
#include "core/base/mapped.h"
#include "core/graph/passes/passes.h"
#include "core/ops/attention_gradient.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/matmul.h"
#include "core/ops/quantized_conv.h"
#include "experiments/measure/int8_graphs.h"

namespace triptych::measure {

bool BenchOptions::counts() const { return !find_backend(machine.backend).emulates().empty(); }

std::vector<Problem> model_problems(const BenchOptions& options, std::int64_t batch) {
  const OptimizerConfig optimizer = {.kind = options.optimizer, .momentum = options.momentum};
  const PlanRequest request = {.model = options.model,
                               .inference = options.inference,
                               .mode = options.mode,
                               .training = {.batch = batch, .optimizer = optimizer},
                               .memory_limit_mib = options.memory_limit};
  return {{fmt::format("{}/{}", options.model.name, name_of(options.mode)), "", batch,
           [request](const DeviceSet& machine) { return plan_model(request, machine).plan; }}};
}

namespace {

constexpr std::string_view kMaterialised = "materialised";

constexpr std::string_view kBest = "best";

/// The kernels asked for. An empty name stands for the best, the plan's own choice.
std::vector<std::string> kernels_of(const BenchOptions& options, const Device& device,
                                    std::string_view op) {
  if (options.kernels != "all") {
    auto names =
        options.kernels.empty() ? std::vector<std::string>{""} : split_list(options.kernels);
    std::ranges::replace(names, kBest, std::string());
    return names;
  }
  std::vector<std::string> names;
  for (const auto& entry : device.kernels()) {
    if (entry.op == op) names.insert(names.begin(), std::string(entry.name));
  }
  return names;
}

/// The plan of a graph of one operator, by the kernel of that name unless it is empty.
Plan plan_by(const std::string& kernel, std::string_view op, Graph graph,
             const DeviceSet& machine) {
  auto options = machine.plan_options();
  if (!kernel.empty()) options.placement.forced_kernels[std::string(op)] = kernel;
  return make_plan(std::move(graph), machine.devices(), options);
}

ValueId add_weight(Graph& graph, const Shape& shape) {
  Tensor weight(TensorSpec{DType::F32, shape});
  std::ranges::fill(weight.as<float>(), 0.01F);
  return graph.add_constant("w", std::make_shared<const Tensor>(std::move(weight)));
}

/// q, k and v [batch, heads, length, head size] of as many heads each, and dy for the gradient.
Graph attention_graph(const BenchOptions& options, std::int64_t batch, std::int64_t length) {
  Graph graph;
  const TensorSpec heads = {DType::F32, Shape{batch, options.heads, length, options.head_size}};
  Attention op;
  op.is_causal = options.causal;
  const std::vector<ValueId> inputs = {graph.add_input("q", heads), graph.add_input("k", heads),
                                       graph.add_input("v", heads)};
  const auto y = graph.add_node(make_op(op), inputs).front();
  graph.mark_output("y", y);
  if (!options.gradient) return graph;
  AttentionGradient gradient;
  static_cast<AttentionAttributes&>(gradient) = op;
  std::vector<ValueId> operands = inputs;
  operands.insert(operands.end(), {y, graph.add_input("dy", heads)});
  const auto gradients = graph.add_node(make_op(gradient), operands);
  for (const std::size_t i : {0, 1, 2}) {
    graph.mark_output(fmt::format("d{}", graph.value(inputs[i]).name), gradients[i]);
  }
  return graph;
}

/// The operator that `bench attention` names kernels of.
std::string_view attention_op(const BenchOptions& options) {
  return options.gradient ? AttentionGradient::kName : Attention::kName;
}

}  // namespace

namespace {

ValueId add_second(Graph& graph, const char* name, const Shape& shape, const Operands& given) {
  return given.second != nullptr ? graph.add_constant(name, given.second)
                                 : add_weight(graph, shape);
}

/// A product of float32 operands: both are inputs, or b is a constant.
Graph product_graph(const ProductOptions& options) {
  const auto& [m, k, n] = options.shape;
  const Shape a = {options.batch, m, k}, b = {options.batch, k, n};
  Graph graph;
  const std::vector<ValueId> inputs = {
      graph.add_input("a", {DType::F32, a}),
      options.constant_b ? add_weight(graph, b) : graph.add_input("b", {DType::F32, b})};
  graph.mark_output("y", graph.add_node(make_op(MatMul{}), inputs).front());
  return graph;
}

/// "/scales-0.5,0.25,2" of int8 operands.
std::string scales_name(const std::vector<double>& scales) {
  return scales.empty() ? "" : fmt::format("/scales-{}", fmt::join(scales, ","));
}

}  // namespace

Problem product_problem(const ProductOptions& options) {
  const auto& [m, k, n] = options.shape;
  const auto plan = [options](const DeviceSet& machine) {
    return options.int8
               ? plan_by(options.kernel, QuantizedConv::kName, int8_product_graph(options), machine)
               : plan_by(options.kernel, MatMul::kName, product_graph(options), machine);
  };
  Problem problem = {
      fmt::format("matmul/{}x{}x{}{}{}", m, k, n, options.constant_b ? "/constant-b" : "",
                  scales_name(options.scales)),
      options.kernel, options.batch, plan};
  if (options.operands.first == nullptr) return problem;
  if (options.int8) {
    problem.given = {{"x", int8_product_input(options)}};
  } else {
    problem.given = {{"a", options.operands.first}, {"b", options.operands.second}};
  }
  return problem;
}

namespace {

bool is_int8(const BenchOptions& options) { return options.machine.contract == Contract::Int8; }

std::string_view product_op(const BenchOptions& options) {
  return is_int8(options) ? QuantizedConv::kName : MatMul::kName;
}

}  // namespace

std::vector<Problem> matmul_problems(const BenchOptions& options, const Device& device,
                                     std::int64_t batch) {
  std::vector<Problem> problems;
  for (const auto n : parse_numbers(options.sizes)) {
    for (const auto& kernel : kernels_of(options, device, product_op(options))) {
      problems.push_back(product_problem({.shape = {n, n, n},
                                          .kernel = kernel,
                                          .batch = batch,
                                          .constant_b = options.constant_b,
                                          .int8 = is_int8(options),
                                          .scales = options.scales}));
      problems.back().optional = options.kernels == "all";
    }
  }
  return problems;
}

std::vector<Problem> attention_problems(const BenchOptions& options, const Device& device,
                                        std::int64_t batch) {
  auto kernels = kernels_of(options, device, attention_op(options));
  if (options.kernels == "all") kernels.insert(kernels.begin(), std::string(kMaterialised));
  std::vector<Problem> problems;
  for (const auto length : parse_numbers(options.lengths)) {
    for (const auto& kernel : kernels) {
      const auto plan = [options, batch, length, kernel](const DeviceSet& machine) {
        Graph graph = attention_graph(options, batch, length);
        if (kernel != kMaterialised) {
          return plan_by(kernel, attention_op(options), std::move(graph), machine);
        }
        return plan_by("", {}, expand_composites(graph), machine);
      };
      problems.push_back(
          {fmt::format("attention/{}x{}x{}{}{}", options.heads, length, options.head_size,
                       options.causal ? "/causal" : "", options.gradient ? "/gradient" : ""),
           kernel, batch, plan, options.kernels == "all"});
    }
  }
  return problems;
}

namespace {

/// A graph of the pass that `options` name: x or dy and the weights in, or x and dy.
Graph conv_graph(const BenchOptions& options, std::int64_t batch) {
  const auto& s = options.shape;
  const auto add_image = [&](Graph& graph, const char* name, std::int64_t channels) {
    return graph.add_input(name, {DType::F32, Shape{batch, channels, s[2], s[3]}});
  };
  const Shape weights = {s[1], s[0], options.window, options.window};
  const auto before = (options.window - 1) / 2, after = options.window / 2;  // keeps the size
  const Dims pads = {before, before, after, after};
  Graph graph;
  OpPtr op;
  std::vector<ValueId> inputs;
  if (options.pass == ConvPass::Weights) {
    ConvWeightGradient gradient;
    gradient.pads = pads;
    gradient.kernel_shape = {options.window, options.window};
    op = make_op(gradient);
    inputs = {add_image(graph, "x", s[0]), add_image(graph, "dy", s[1])};
  } else if (options.pass == ConvPass::Data) {
    ConvTranspose gradient;
    gradient.pads = pads;
    op = make_op(gradient);
    inputs = {add_image(graph, "dy", s[1]), add_second(graph, "w", weights, options.operands)};
  } else {
    Conv conv;
    conv.pads = pads;
    op = make_op(conv);
    inputs = {add_image(graph, "x", s[0]), add_second(graph, "w", weights, options.operands)};
  }
  graph.mark_output("y", graph.add_node(op, inputs).front());
  return graph;
}

std::string_view conv_op(const BenchOptions& options) {
  const bool int8 = is_int8(options);
  switch (options.pass) {
    case ConvPass::Forward:
      return int8 ? QuantizedConv::kName : Conv::kName;
    case ConvPass::Data:
      return int8 ? QuantizedConvTranspose::kName : ConvTranspose::kName;
    case ConvPass::Weights:
      break;
  }
  if (int8) {
    throw InvalidArgument(
        "the contract int8 has no gradient of the weights; give the option pass forward or data");
  }
  return ConvWeightGradient::kName;
}

/// The given inputs of conv_graph or int8_conv_graph.
std::vector<GivenInput> conv_inputs(const BenchOptions& options) {
  const auto& [first, second] = options.operands;
  if (first == nullptr) return {};
  if (options.pass == ConvPass::Weights) return {{"x", first}, {"dy", second}};
  return {{options.pass == ConvPass::Data && !is_int8(options) ? "dy" : "x", first}};
}

}  // namespace

std::string conv_name(const BenchOptions& options) {
  const auto& s = options.shape;
  const bool forward = options.pass == ConvPass::Forward;
  return fmt::format("conv/{}>{}@{}x{}k{}{}{}{}", s[0], s[1], s[2], s[3], options.window,
                     forward ? "" : "/", forward ? "" : name_of(options.pass),
                     scales_name(options.scales));
}

std::pair<Shape, Shape> conv_operand_shapes(const BenchOptions& options, std::int64_t batch) {
  const auto& s = options.shape;
  const Shape x = {batch, s[0], s[2], s[3]}, dy = {batch, s[1], s[2], s[3]};
  const Shape weights = {s[1], s[0], options.window, options.window};
  switch (options.pass) {
    case ConvPass::Forward:
      return {x, weights};
    case ConvPass::Data:
      return {dy, weights};
    case ConvPass::Weights:
      break;
  }
  return {x, dy};
}

Problem conv_problem(const BenchOptions& options, const std::string& kernel, std::int64_t batch) {
  const auto op = conv_op(options);
  const auto plan = [options, batch, kernel, op](const DeviceSet& machine) {
    return plan_by(kernel, op,
                   is_int8(options) ? int8_conv_graph(options, batch) : conv_graph(options, batch),
                   machine);
  };
  return {conv_name(options), kernel, batch, plan, options.kernels == "all", conv_inputs(options)};
}

std::vector<Problem> conv_problems(const BenchOptions& options, const Device& device,
                                   std::int64_t batch) {
  return mapped<Problem>(kernels_of(options, device, conv_op(options)),
                         [&](const auto& kernel) { return conv_problem(options, kernel, batch); });
}

}  // namespace triptych::measure
