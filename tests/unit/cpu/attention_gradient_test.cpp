// The gradient of attention on the CPU: its accuracy, its bits, and the memory of a training step.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention_gradient.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/autodiff/autodiff.h"
#include "core/graph/passes/passes.h"
#include "core/graph/reference.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/runtime/executor.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cpu {
namespace {

struct Problem {
  std::int64_t batch, heads, kv_heads, queries, keys, head_size, value_size;
  bool is_causal = false;

  AttentionAttributes attributes() const {
    AttentionAttributes result;
    result.is_causal = is_causal;
    return result;
  }
  std::vector<Tensor> operands() const {
    std::vector<Tensor> tensors;
    tensors.push_back(random_tensor({batch, heads, queries, head_size}, 1, -2, 2));
    tensors.push_back(random_tensor({batch, kv_heads, keys, head_size}, 2, -2, 2));
    tensors.push_back(random_tensor({batch, kv_heads, keys, value_size}, 3));
    return tensors;
  }
  Tensor dy() const { return random_tensor({batch, heads, queries, value_size}, 4); }
  std::string name() const {
    return fmt::format("{}x{}/{} {}x{} {}/{}{}", batch, heads, kv_heads, queries, keys, head_size,
                       value_size, is_causal ? " causal" : "");
  }
};

/// More and less than a block of queries and of keys, of several threads, and odd sizes.
std::vector<Problem> problems() {
  return {{1, 1, 1, 1, 1, 1, 1},
          {2, 3, 3, 50, 37, 16, 16},
          {1, 1, 1, 257, 131, 33, 17},
          {1, 4, 2, 129, 300, 64, 64},
          {1, 2, 1, 300, 300, 20, 40, true},
          {3, 2, 2, 70, 190, 8, 72, true},
          {1, 1, 1, 400, 140, 16, 16, true}};
}

template <class Op>
Op with_attributes_of(const Problem& problem) {
  Op op;
  static_cast<AttentionAttributes&>(op) = problem.attributes();
  return op;
}

/// The inputs of AttentionGradient, by the kernels of the forward pass.
std::vector<Tensor> gradient_inputs(const Problem& problem, int threads = 2) {
  auto inputs = problem.operands();
  auto results =
      run_kernel(with_attributes_of<AttentionWithSums>(problem), inputs, {.threads = threads});
  inputs.push_back(std::move(results[0]));
  inputs.push_back(problem.dy());
  inputs.push_back(std::move(results[1]));
  return inputs;
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

// Much closer than the operator's bound, which holds for the worst operands.
TEST(AttentionGradient, is_that_of_float64) {
  for (const auto& problem : problems()) {
    const auto op = with_attributes_of<AttentionGradient>(problem);
    const auto inputs = gradient_inputs(problem);
    std::vector<RefTensor> references;
    for (const auto& input : inputs) references.push_back(to_reference(input));
    const auto expected = evaluate_reference(op, references);
    const auto actual = run_kernel(op, inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto values = to_doubles(actual[i]);
      const auto allowed = 1e-5 * largest_of(expected[i].values) + 1e-6;
      for (std::size_t j = 0; j < values.size(); ++j) {
        ASSERT_NEAR(values[j], expected[i].values[j], allowed)
            << problem.name() << " output " << i << " element " << j;
      }
    }
  }
}

// With one thread a task owns a head. With more threads than heads tasks own blocks.
TEST(AttentionGradient, has_the_same_bits_on_any_number_of_threads) {
  for (const auto& problem : problems()) {
    for (const auto contract : {Contract::F32, Contract::Bf16}) {
      const auto op = with_attributes_of<AttentionGradient>(problem);
      const auto inputs = gradient_inputs(problem);
      const auto alone = run_kernel(op, inputs, {.threads = 1, .contract = contract});
      const auto several = run_kernel(op, inputs, {.threads = 7, .contract = contract});
      for (std::size_t i = 0; i < alone.size(); ++i) {
        EXPECT_TRUE(std::ranges::equal(alone[i].bytes(), several[i].bytes()))
            << problem.name() << " output " << i;
      }
    }
  }
}

/// Attention of three inputs, a loss, and the gradients as outputs.
Graph training_graph(const Problem& problem, bool expanded) {
  Graph graph;
  std::vector<ValueId> inputs;
  for (const auto& tensor : problem.operands()) {
    inputs.push_back(graph.add_input(fmt::format("x{}", inputs.size()), tensor.spec()));
  }
  const auto y =
      graph.add_node(make_op(with_attributes_of<Attention>(problem)), inputs, "attention").front();
  graph.mark_output("y", y);
  if (expanded) graph = expand_composites(graph);
  const auto weights = graph.add_constant("weights", std::make_shared<const Tensor>(problem.dy()));
  const auto product =
      graph.emit_one(make_op(Binary(BinaryKind::Mul)), {graph.outputs()[0].value, weights});
  const auto loss = graph.emit_one(make_op(Reduce(ReduceKind::Sum, {}, false)), {product});
  const std::vector<ValueId> wanted = {graph.find("x0"), graph.find("x1"), graph.find("x2")};
  const auto gradients = add_gradients(graph, loss, wanted);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    graph.mark_output(fmt::format("d{}", i), gradients[i]);
  }
  return graph;
}

std::vector<Tensor> results_of(const Problem& problem, bool expanded, Device& device,
                               Contract contract) {
  PlanOptions options;
  options.placement.contract = contract;
  StateStore states(device);
  Executor executor(make_plan(training_graph(problem, expanded), {&device}, options), states);
  const auto operands = problem.operands();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    executor.set_input(fmt::format("x{}", i), operands[i]);
  }
  executor.run();
  std::vector<Tensor> results;
  for (const auto& output : executor.plan().graph.outputs()) {
    results.push_back(executor.output(output.name));
  }
  return results;
}

// The expansion is differentiated operator by operator.
TEST(AttentionGradient, has_the_bits_of_the_expansion_under_bf16_exact) {
  const auto device = backend().open({.threads = 2});
  for (const auto& problem : problems()) {
    const auto whole = results_of(problem, false, *device, Contract::Bf16Exact);
    const auto expanded = results_of(problem, true, *device, Contract::Bf16Exact);
    ASSERT_EQ(whole.size(), expanded.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(whole[i].bytes(), expanded[i].bytes()))
          << problem.name() << " output " << i;
    }
  }
}

TEST(AttentionGradient, reads_what_an_expanded_attention_has_computed) {
  const auto device = backend().open({.threads = 1});
  PlanOptions options;
  options.placement.contract = Contract::Bf16Exact;
  const auto exponentials = [&](bool expanded) {
    const auto plan = make_plan(training_graph(problems()[1], expanded), {device.get()}, options);
    return std::ranges::count_if(plan.graph.nodes(),
                                 [](const Node& node) { return node.op->name() == "Softmax"; });
  };
  EXPECT_EQ(exponentials(true), 1);
  EXPECT_EQ(exponentials(false), 1);
}

TEST(AttentionGradient, needs_no_memory_for_scores) {
  const auto device = backend().open({.threads = 2});
  const Problem problem = {2, 4, 4, 1024, 1024, 32, 32};
  const auto arena = [&](bool expanded) {
    return make_plan(training_graph(problem, expanded), {device.get()}).arena_bytes[0];
  };
  const auto scores = static_cast<std::size_t>(2 * 4 * 1024 * 1024) * sizeof(float);
  EXPECT_GE(arena(true), scores);
  EXPECT_LT(arena(false), scores / 3);
}

}  // namespace
}  // namespace triptych::cpu
