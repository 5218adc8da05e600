// A rank that computes is no rank that has stopped.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/parallel/faulty_transport.h"
#include "tests/unit/parallel/rank_training.h"

namespace triptych::parallel {
namespace {

/// Counts the signs of life.
class Listener : public FaultyTransport {
 public:
  Listener(std::unique_ptr<Transport> inner, std::ptrdiff_t& signs)
      : FaultyTransport(std::move(inner), {.world_size = 1, .culprit = -1}), signs_(signs) {}
  void tell_busy(const char*) override { ++signs_; }

 private:
  std::ptrdiff_t& signs_;
};

TEST(SignsOfLife, come_after_each_node) {
  ThreadGroup group(1, CommunicatorOptions().timeout);
  std::ptrdiff_t signs = 0;
  Communicator communicator(std::make_unique<Listener>(group.transport(0), signs));
  RankCollectives collectives(communicator);
  const auto device = open_device("cpu", {.threads = 1});
  PlanOptions options;
  options.placement.collectives = &collectives;
  auto plan =
      make_plan(build_training_graph(small_model(), {.batch = 1}).graph, {device.get()}, options);
  const auto kernels =
      std::ranges::count_if(plan.steps, [](const Step& step) { return step.kernel != nullptr; });
  StateStore states(*device);
  Executor executor(std::move(plan), states);
  for (const auto input : executor.plan().graph.values_of(ValueKind::Input)) {
    const auto& value = executor.plan().graph.value(input);
    executor.set_input(value.name, Tensor(value.spec));
  }
  signs = 0;
  executor.run();
  EXPECT_GE(signs, kernels);
  EXPECT_GT(kernels, 20);
}

}  // namespace
}  // namespace triptych::parallel
