// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/bench_problems.h"

#include <fmt/core.h>

#include <algorithm>

#include "backends/all_backends.h"
#include "core/base/list_text.h"
#include "core/graph/passes/passes.h"
#include "core/ops/attention.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/matmul.h"

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

/// q, k and v [batch, heads, length, head size] of as many heads each.
Graph attention_graph(const BenchOptions& options, std::int64_t batch, std::int64_t length) {
  Graph graph;
  const TensorSpec heads = {DType::F32, Shape{batch, options.heads, length, options.head_size}};
  Attention op;
  op.is_causal = options.causal;
  const std::vector<ValueId> inputs = {graph.add_input("q", heads), graph.add_input("k", heads),
                                       graph.add_input("v", heads)};
  graph.mark_output("y", graph.add_node(make_op(op), inputs).front());
  return graph;
}

}  // namespace

Problem product_problem(const ProductShape& shape, const std::string& kernel, std::int64_t batch,
                        bool constant_b) {
  const auto& [m, k, n] = shape;
  const auto plan = [a = Shape{batch, m, k}, b = Shape{batch, k, n}, kernel,
                     constant_b](const DeviceSet& machine) {
    Graph graph;
    const std::vector<ValueId> inputs = {
        graph.add_input("a", {DType::F32, a}),
        constant_b ? add_weight(graph, b) : graph.add_input("b", {DType::F32, b})};
    graph.mark_output("y", graph.add_node(make_op(MatMul{}), inputs).front());
    return plan_by(kernel, MatMul::kName, std::move(graph), machine);
  };
  return {fmt::format("matmul/{}x{}x{}{}", m, k, n, constant_b ? "/constant-b" : ""), kernel, batch,
          plan};
}

std::vector<Problem> matmul_problems(const BenchOptions& options, const Device& device,
                                     std::int64_t batch) {
  std::vector<Problem> problems;
  for (const auto n : parse_numbers(options.sizes)) {
    for (const auto& kernel : kernels_of(options, device, MatMul::kName)) {
      problems.push_back(product_problem({n, n, n}, kernel, batch, options.constant_b));
      problems.back().optional = options.kernels == "all";
    }
  }
  return problems;
}

std::vector<Problem> attention_problems(const BenchOptions& options, const Device& device,
                                        std::int64_t batch) {
  auto kernels = kernels_of(options, device, Attention::kName);
  if (options.kernels == "all") kernels.insert(kernels.begin(), std::string(kMaterialised));
  std::vector<Problem> problems;
  for (const auto length : parse_numbers(options.lengths)) {
    for (const auto& kernel : kernels) {
      const auto plan = [options, batch, length, kernel](const DeviceSet& machine) {
        Graph graph = attention_graph(options, batch, length);
        if (kernel != kMaterialised) {
          return plan_by(kernel, Attention::kName, std::move(graph), machine);
        }
        return plan_by("", Attention::kName, expand_composites(graph), machine);
      };
      problems.push_back({fmt::format("attention/{}x{}x{}{}", options.heads, length,
                                      options.head_size, options.causal ? "/causal" : ""),
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
    inputs = {add_image(graph, "dy", s[1]), add_weight(graph, weights)};
  } else {
    Conv conv;
    conv.pads = pads;
    op = make_op(conv);
    inputs = {add_image(graph, "x", s[0]), add_weight(graph, weights)};
  }
  graph.mark_output("y", graph.add_node(op, inputs).front());
  return graph;
}

std::string_view conv_op(ConvPass pass) {
  return pass == ConvPass::Forward ? Conv::kName
         : pass == ConvPass::Data  ? ConvTranspose::kName
                                   : ConvWeightGradient::kName;
}

}  // namespace

std::string conv_name(const BenchOptions& options) {
  const auto& s = options.shape;
  const bool forward = options.pass == ConvPass::Forward;
  return fmt::format("conv/{}>{}@{}x{}k{}{}{}", s[0], s[1], s[2], s[3], options.window,
                     forward ? "" : "/", forward ? "" : name_of(options.pass));
}

std::vector<Problem> conv_problems(const BenchOptions& options, const Device& device,
                                   std::int64_t batch) {
  const auto op = conv_op(options.pass);
  std::vector<Problem> problems;
  for (const auto& kernel : kernels_of(options, device, op)) {
    const auto plan = [options, batch, kernel, op](const DeviceSet& machine) {
      return plan_by(kernel, op, conv_graph(options, batch), machine);
    };
    problems.push_back({conv_name(options), kernel, batch, plan, options.kernels == "all"});
  }
  return problems;
}

}  // namespace triptych::measure
