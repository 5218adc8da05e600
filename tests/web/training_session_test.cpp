// A page's training run next to `triptych train`'s.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/web/training_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/training/training_run.h"
#include "tests/unit/io/test_files.h"

namespace triptych::web {
namespace {

using testing::ElementsAreArray;

TEST(TrainingSession, has_the_losses_weights_and_masks_of_a_run) {
  constexpr int steps = 3;
  const training::DeviceSet machine({.contract = Contract::Bf16Exact});
  training::RunConfig config;
  config.model = model_preset("unet-s");
  config.training.seed = 5;
  config.training.batch = 2;
  config.epochs = 0;
  config.steps = steps;
  test::TemporaryFolder folder;
  training::TrainingRun run(machine, config, folder / "run");
  run.train({}, false);

  TrainingSession session(machine.device(), {.model = "unet-s", .seed = 5, .batch = 2});
  std::vector<float> losses;
  losses.reserve(steps);
  for (int i = 0; i < steps; ++i) losses.push_back(session.step());
  EXPECT_THAT(losses, ElementsAreArray(run.losses()));
  EXPECT_EQ(session.weights_sha256(), run.trainer().weights_sha256());
  EXPECT_EQ(session.parameters(), run.trainer().parameter_count());
  EXPECT_EQ(session.validation_images(), std::ssize(run.data().validation.samples));
  const auto in_place = run.for_evaluation();
  for (const std::size_t i : {0U, 1U}) {
    const auto& sample = *run.data().validation.whole(i);
    const auto prediction = session.predict(i);
    EXPECT_THAT(prediction.classes, ElementsAreArray(run.predict(sample)));
    EXPECT_THAT(prediction.truth, ElementsAreArray(sample.labels));
  }
}

TEST(TrainingSession, goes_on_after_a_look_as_if_nobody_had_looked) {
  const training::DeviceSet machine({.contract = Contract::Bf16Exact});
  TrainingSession looked(machine.device(), {.batch = 1}), left(machine.device(), {.batch = 1});
  for (int i = 0; i < 2; ++i) {
    looked.step();
    looked.predict(0);
    left.step();
  }
  EXPECT_EQ(looked.weights_sha256(), left.weights_sha256());
}

}  // namespace
}  // namespace triptych::web
