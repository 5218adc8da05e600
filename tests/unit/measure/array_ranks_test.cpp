// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/array_ranks.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "experiments/measure/array_all_reduce.h"
#include "experiments/measure/bench_problems.h"
#include "systolic/driver/driver.h"

namespace triptych::measure {
namespace {

/// A small step of four images on ranks with an array each.
BenchOptions options_of(int ranks, std::uint32_t arrays) {
  auto machine = mmu::find_machine("mmu4-vector");
  machine.arrays = arrays;
  BenchOptions options;
  options.model = model_preset("unet-s");
  options.model.base = 2;
  options.model.depth = 1;
  options.model.size = 16;
  options.mode = Mode::Train;
  options.machine.backend = "systolic";
  options.machine.machine = mmu::to_json(machine);
  options.machine.contract = Contract::Bf16Exact;
  options.machine.parallel.ranks = ranks;
  return options;
}

/// The step of one of the ranks.
struct Step {
  explicit Step(const BenchOptions& options)
      : machine(options.machine),
        states(machine.device()),
        executor(plan_of(options, machine), states) {
    fill_inputs(executor);
  }
  static Plan plan_of(const BenchOptions& options, const DeviceSet& machine) {
    return model_problems(options, batch_of_a_rank(options.machine, 4)).front().plan(machine);
  }

  DeviceSet machine;
  StateStore states;
  Executor executor;
};

TEST(ArrayRanks, a_step_has_the_cycles_of_its_nodes_and_of_the_all_reduce) {
  Step step(options_of(2, 2));
  const ArrayRanks found = time_array_ranks(step.executor, step.machine);
  EXPECT_EQ(found.ranks, 2);
  EXPECT_EQ(static_cast<double>(found.compute_cycles),
            step.machine.device().counters().at("mmu_cycles"));
  EXPECT_GT(found.wait_cycles, 0U);
  EXPECT_LT(found.wait_cycles, found.compute_cycles);
  std::size_t parameters = 0;
  for (const auto& name : step.states.names())
    if (!name.starts_with("optimizer.") && name.find("running") == std::string::npos)
      parameters += step.states.read(name).bytes().size();
  EXPECT_EQ(found.all_reduce_bytes, static_cast<std::int64_t>(parameters));
  auto machine = mmu::find_machine("mmu4-vector");
  machine.arrays = 2;
  const auto sum =
      simulate_all_reduce(machine, parallel::Algorithm::Ring, 2, found.all_reduce_bytes);
  EXPECT_EQ(found.all_reduce_cycles, sum.cycles);
  EXPECT_DOUBLE_EQ(found.seconds(),
                   static_cast<double>(found.compute_cycles + sum.cycles) / (700.0 * 1e6));
}
TEST(ArrayRanks, more_arrays_take_less_time_than_one_and_more_than_their_share) {
  Step one(options_of(1, 1));
  one.executor.run();
  const double alone = one.machine.device().counters().at("mmu_cycles");
  Step four(options_of(4, 4));
  const auto shared = static_cast<double>(time_array_ranks(four.executor, four.machine).cycles());
  EXPECT_LT(shared, alone);
  EXPECT_GT(shared, alone / 4);
}
TEST(ArrayRanks, ranks_without_arrays_or_with_unequal_batches_are_refused) {
  EXPECT_THROW(batch_of_a_rank(options_of(2, 1).machine, 4), InvalidArgument);
  EXPECT_THROW(batch_of_a_rank(options_of(2, 2).machine, 3), InvalidArgument);
  EXPECT_EQ(batch_of_a_rank(options_of(2, 2).machine, 6), 3);
}

}  // namespace
}  // namespace triptych::measure
