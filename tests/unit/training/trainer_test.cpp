// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/trainer.h"

#include <gtest/gtest.h>

#include <numeric>

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

}  // namespace
}  // namespace triptych::training
