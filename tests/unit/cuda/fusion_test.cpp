// Elementwise operators fused into one launch, with each other or with a normalisation: fewer
// launches, the same bits.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/emulation/emulated_device.h"
#include "core/base/random.h"
#include "core/nn/training_graph.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/fused_elementwise.h"
#include "core/ops/pool.h"
#include "core/runtime/executor.h"

namespace triptych::cuda {
namespace {

constexpr int kSteps = 2;

Tensor noise(const TensorSpec& spec) {
  Tensor tensor(spec);
  RandomStream random(3, 0);
  for (auto& value : tensor.as<float>()) value = random.uniform(0, 1);
  return tensor;
}

/// A small U-Net in training, counted. Elementwise operators fused, or each by its own kernel.
struct Training {
  explicit Training(bool fused)
      : device({.threads = 2, .extra = {{"emulation", "counted"}}}), states(device) {
    auto config = model_preset("unet-s");
    config.base = 4;
    config.depth = 2;
    config.size = 16;
    auto graph = build_training_graph(config, {.batch = 1}).graph;
    PlanOptions options;
    if (!fused) options.placement.forced = "elementwise";
    executor.emplace(make_plan(std::move(graph), {&device}, options), states);
    const TensorSpec image = {DType::F32, Shape{1, 1, 16, 16}};
    executor->set_input("x", noise(image));
    executor->set_input("target", noise(image));
    executor->set_input("learning_rate", scalar_tensor(0.01F));
    for (int step = 0; step < kSteps; ++step) executor->run();
  }

  std::uint64_t launches() const {
    std::uint64_t sum = 0;
    for (const auto& [name, counters] : device.kernel_counters()) sum += counters.launches;
    return sum;
  }

  emulation::EmulatedDevice device;
  StateStore states;
  std::optional<Executor> executor;
};

TEST(Fusion, launches_fewer_kernels_and_gives_the_same_bits) {
  Training fused(true), separate(false);
  std::uint64_t spared = 0;
  for (const auto& node : fused.executor->plan().graph.nodes()) {
    const auto* chain = op_cast<FusedElementwise>(*node.op);
    if (chain != nullptr) spared += chain->chain(node.inputs.size()).size() - 1;
    const auto* norm = op_cast<BatchNormalization>(*node.op);
    if (norm != nullptr && !norm->activation.empty()) ++spared;
    const auto* gradient = op_cast<BatchNormalizationGradient>(*node.op);
    if (gradient != nullptr && !gradient->activation.empty()) ++spared;
    constexpr std::size_t with_another = 3;  // inputs of a pooling that adds another gradient
    if (op_cast<MaxPoolIndexGradient>(*node.op) && node.inputs.size() == with_another) ++spared;
  }
  EXPECT_GT(spared, 0U);
  EXPECT_EQ(fused.launches() + kSteps * spared, separate.launches());
  EXPECT_TRUE(std::ranges::equal(fused.executor->output("loss").bytes(),
                                 separate.executor->output("loss").bytes()));
  for (const auto& name : separate.states.names()) {
    EXPECT_TRUE(
        std::ranges::equal(fused.states.read(name).bytes(), separate.states.read(name).bytes()))
        << name;
  }
}

TEST(Fusion, updates_all_parameters_in_one_launch) {
  Training training(true);
  EXPECT_EQ(training.device.kernel_counters().at("adam_update").launches, kSteps);
}

/// y = tanh(x + b) * s, of rows where b broadcasts.
Graph chain_graph() {
  Graph graph;
  const TensorSpec rows = {DType::F32, Shape{64, 32}};
  const ValueId x = graph.add_input("x", rows), s = graph.add_input("s", rows);
  auto y = graph.emit_one(make_op(Binary(BinaryKind::Add)),
                          {x, graph.add_input("b", {DType::F32, Shape{32}})});
  y = graph.emit_one(make_op(Unary(UnaryKind::Tanh)), {y});
  graph.mark_output("y", graph.emit_one(make_op(Binary(BinaryKind::Mul)), {y, s}));
  return graph;
}

TEST(Fusion, moves_only_what_comes_in_and_goes_out) {
  emulation::EmulatedDevice device({.threads = 1, .extra = {{"emulation", "counted"}}});
  StateStore states(device);
  Executor executor(make_plan(chain_graph(), {&device}), states);
  executor.run();
  ASSERT_EQ(device.kernel_counters().size(), 1U);
  const auto& counters = device.kernel_counters().at("fused_fours");
  constexpr std::uint64_t kBytes = 64 * 32 * sizeof(float);
  // x, s and, read by every row, b.
  EXPECT_EQ(counters.total(MemorySpace::Global, MemoryAccess::Load).useful_bytes, 3 * kBytes);
  EXPECT_EQ(counters.total(MemorySpace::Global, MemoryAccess::Store).useful_bytes, kBytes);
}

TEST(Fusion, leaves_operators_whose_kernel_is_asked_for_alone) {
  emulation::EmulatedDevice device({.threads = 1});
  PlanOptions options;
  options.placement.forced_kernels["Tanh"] = "elementwise";
  EXPECT_EQ(make_plan(chain_graph(), {&device}, options).steps.size(), 3U);
  options.placement.forced_kernels.clear();
  options.placement.forced = "elementwise";
  EXPECT_EQ(make_plan(chain_graph(), {&device}, options).steps.size(), 3U);
}

TEST(Fusion, says_which_nodes_it_stands_for) {
  emulation::EmulatedDevice device({.threads = 1});
  const auto plan = make_plan(chain_graph(), {&device});
  ASSERT_EQ(plan.steps.size(), 1U);
  EXPECT_EQ(plan.graph.node(plan.steps[0].node).name, "add+tanh+mul");
  EXPECT_EQ(plan.steps[0].entry->name, "chain");
}

}  // namespace
}  // namespace triptych::cuda
