// SPDX-License-Identifier: Apache-2.0
#include "experiments/cli/bench_problems.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/all_backends.h"
#include "core/graph/passes/passes.h"
#include "core/ops/attention.h"
#include "core/ops/conv.h"
#include "core/ops/matmul.h"

namespace triptych::cli {

bool BenchOptions::counts() const { return !find_backend(machine.backend).emulates().empty(); }

std::vector<Problem> model_problems(const BenchOptions& options, std::int64_t batch) {
  const PlanRequest request = {.model = options.model.config(),
                               .mode = mode_from_string(options.mode),
                               .training = {.batch = batch},
                               .memory_limit_mib = options.memory_limit};
  return {{fmt::format("{}/{}", options.model.model, options.mode), "", batch,
           [request](const Machine& machine) { return plan_model(request, machine).plan; }}};
}

namespace {

constexpr std::string_view kMaterialised = "materialised";

/// The kernels asked for; an empty name stands for the best.
std::vector<std::string> kernels_of(const BenchOptions& options, const Device& device,
                                    std::string_view op) {
  if (options.kernels != "all") {
    return options.kernels.empty() ? std::vector<std::string>{""}
                                   : CLI::detail::split(options.kernels, ',');
  }
  std::vector<std::string> names;
  for (const auto& entry : device.kernels()) {
    if (entry.op == op) names.insert(names.begin(), std::string(entry.name));
  }
  return names;
}

/// The plan of a graph of one operator, by the kernel of that name unless it is empty.
Plan plan_by(const std::string& kernel, std::string_view op, Graph graph, const Machine& machine) {
  auto options = machine.plan_options();
  if (!kernel.empty()) options.placement.forced_kernels[std::string(op)] = kernel;
  return make_plan(std::move(graph), machine.devices(), options);
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

std::vector<Problem> matmul_problems(const BenchOptions& options, const Device& device,
                                     std::int64_t batch) {
  std::vector<Problem> problems;
  for (const auto n : parse_numbers(options.sizes)) {
    for (const auto& kernel : kernels_of(options, device, MatMul::kName)) {
      const auto plan = [batch, n, kernel](const Machine& machine) {
        Graph graph;
        const TensorSpec matrix = {DType::F32, Shape{batch, n, n}};
        const std::vector<ValueId> inputs = {graph.add_input("a", matrix),
                                             graph.add_input("b", matrix)};
        graph.mark_output("y", graph.add_node(make_op(MatMul{}), inputs).front());
        return plan_by(kernel, MatMul::kName, std::move(graph), machine);
      };
      const bool optional = options.kernels == "all";
      problems.push_back({fmt::format("matmul/{0}x{0}x{0}", n), kernel, batch, plan, optional});
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
      const auto plan = [options, batch, length, kernel](const Machine& machine) {
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

std::vector<Problem> conv_problems(const BenchOptions& options, std::int64_t batch) {
  const auto plan = [options, batch](const Machine& machine) {
    const auto& s = options.shape;
    Graph graph;
    Conv conv;
    conv.pads = Dims(4, options.kernel / 2);
    Tensor weight(TensorSpec{DType::F32, Shape{s[1], s[0], options.kernel, options.kernel}});
    std::ranges::fill(weight.as<float>(), 0.01F);
    const std::vector<ValueId> inputs = {
        graph.add_input("x", {DType::F32, Shape{batch, s[0], s[2], s[3]}}),
        graph.add_constant("w", std::make_shared<const Tensor>(std::move(weight)))};
    graph.mark_output("y", graph.add_node(make_op(conv), inputs).front());
    return make_plan(std::move(graph), machine.devices(), machine.plan_options());
  };
  const auto& s = options.shape;
  return {{fmt::format("conv/{}>{}@{}x{}k{}", s[0], s[1], s[2], s[3], options.kernel), "", batch,
           plan}};
}

}  // namespace triptych::cli
