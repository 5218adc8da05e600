// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/trainer.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "core/base/error.h"
#include "systolic/isa/machine.h"

namespace triptych::training {
namespace {

TrainerConfig small_training() {
  TrainerConfig config{.model = model_preset("unet-s")};
  config.model.base = 2;
  config.model.depth = 1;
  config.model.size = 16;
  config.options.batch = 2;
  return config;
}

/// Timing decides a pipeline's cut. A run that is resumed must not depend on it.
TEST(Trainer, cuts_a_pipeline_as_it_was_cut_before) {
  ExecutionConfig options{.threads = 1};
  options.parallel.ranks = 2;
  options.parallel.strategy = parallel::strategy_from_string("pipeline:2");
  const DeviceSet machine(options);
  auto config = small_training();
  const auto measured = Trainer(machine, config).cut();
  ASSERT_EQ(measured.size(), 2);
  const auto nodes = std::accumulate(measured.begin(), measured.end(), std::int64_t{0});
  for (const std::int64_t first : {std::int64_t{1}, nodes - 1}) {
    config.cut = {first, nodes - first};
    EXPECT_EQ(Trainer(machine, config).cut(), config.cut);
  }
  config.cut = {1, 1, nodes - 2};
  EXPECT_EQ(Trainer(machine, config).cut().size(), 2) << "it was of three stages";
}

ExecutionConfig ranks_on_arrays(std::uint32_t arrays, int ranks) {
  auto array = mmu::find_machine("mmu4-vector");
  array.arrays = arrays;
  ExecutionConfig options{.backend = "systolic", .threads = 1, .contract = Contract::Bf16Exact};
  options.machine = mmu::to_json(array);
  options.parallel.ranks = ranks;
  return options;
}

struct Outcome {
  std::vector<float> losses;
  std::map<std::string, double> counters;  ///< of rank 0
};
Outcome train_on_arrays(std::uint32_t arrays, int ranks) {
  const DeviceSet machine(ranks_on_arrays(arrays, ranks));
  Trainer trainer(machine, small_training());
  Tensor x({DType::F32, {2, 1, 16, 16}}), target({DType::F32, {2, 1, 16, 16}});
  std::iota(x.as<float>().begin(), x.as<float>().end(), -200.0F);
  Outcome outcome;
  for (int step = 0; step < 3; ++step) outcome.losses.push_back(trainer.step(x, target, 0.01F));
  outcome.counters = machine.device().counters();
  return outcome;
}

TEST(Trainer, ranks_on_arrays_of_one_memory_keep_their_bits_and_wait_for_each_other) {
  const auto own = train_on_arrays(1, 2), shared = train_on_arrays(2, 2);
  EXPECT_EQ(shared.losses, own.losses);
  EXPECT_EQ(own.counters.count("mmu_arbiter_wait_cycles"), 0);
  EXPECT_GT(shared.counters.at("mmu_arbiter_wait_cycles"), 0);
  EXPECT_GT(shared.counters.at("mmu_cycles"), own.counters.at("mmu_cycles"));
  EXPECT_LT(shared.counters.at("mmu_arbiter_wait_cycles"), shared.counters.at("mmu_cycles"));
  for (const char* same : {"mmu_macs", "mmu_dram_load_bytes", "mmu_vector_fmas", "runs"})
    EXPECT_EQ(shared.counters.at(same), own.counters.at(same)) << same;
}
TEST(Trainer, one_rank_on_a_machine_with_several_arrays_has_the_memory_for_itself) {
  const auto one = train_on_arrays(1, 1), several = train_on_arrays(4, 1);
  EXPECT_EQ(several.losses, one.losses);
  EXPECT_EQ(several.counters, one.counters);
}
TEST(Trainer, arrays_of_one_memory_are_for_ranks_with_the_same_programs) {
  EXPECT_THROW(DeviceSet(ranks_on_arrays(2, 3)), InvalidArgument);
  auto options = ranks_on_arrays(2, 2);
  options.simulate = mmu::Simulation::Both;
  EXPECT_THROW(DeviceSet{options}, InvalidArgument);
  options = ranks_on_arrays(2, 2);
  auto config = small_training();
  config.options.batch = 3;
  EXPECT_THROW(Trainer(DeviceSet(options), config), InvalidArgument);
  options.parallel.strategy = parallel::strategy_from_string("pipeline:2");
  EXPECT_THROW(Trainer(DeviceSet(options), small_training()), InvalidArgument);
}

}  // namespace
}  // namespace triptych::training
