// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/training_run.h"

#include <gmock/gmock.h>

#include "core/io/picture.h"
#include "experiments/training/data/sample_cache.h"
#include "tests/unit/io/test_files.h"
#include "tests/unit/training/data/pictures.h"
#include "tests/unit/training/tiny_run.h"

namespace triptych::training {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Interrupted : public ::testing::Test {
 protected:
  /// Interrupts `run` when its so manieth step is done. Never when 0.
  static End train(TrainingRun& run, std::int64_t at) {
    std::atomic<bool> interrupted = false;
    Observer observer;
    observer.on_step = [&](const StepReport& step) { interrupted = step.step == at; };
    return run.train(observer, interrupted);
  }

  test::TemporaryFolder folder_;
};

bool same(const TensorMap& a, const TensorMap& b) {
  return std::ranges::equal(a, b, [](const auto& one, const auto& other) {
    return one.first == other.first && std::ranges::equal(one.second.bytes(), other.second.bytes());
  });
}

/// By the number of ranks.
class InterruptedRanks : public Interrupted, public ::testing::WithParamInterface<int> {
 protected:
  InterruptedRanks() : machine_({.threads = 1, .parallel = {.ranks = GetParam()}}) {}

  DeviceSet machine_;
};

INSTANTIATE_TEST_SUITE_P(Ranks, InterruptedRanks, ::testing::Values(1, 2));

TEST_P(InterruptedRanks, stop_at_once_in_evaluation_and_evaluate_when_they_go_on) {
  TrainingRun whole(machine_, tiny_run(), folder_ / "whole");
  EXPECT_EQ(train(whole, 0), End::Finished);
  const auto estimates = load_run(folder_ / "whole").statistics;
  EXPECT_FALSE(estimates.empty());
  for (const std::int64_t at : {1, 2, 3, 4}) {
    const auto folder = folder_ / std::to_string(at);
    {
      TrainingRun run(machine_, tiny_run(), folder);
      EXPECT_EQ(train(run, at), End::Interrupted);
      EXPECT_EQ(std::ssize(run.losses()), at);
      EXPECT_EQ(std::ssize(run.epochs()), (at - 1) / 2) << "the last one is not evaluated";
    }
    TrainingRun rest(machine_, load_run(folder), folder);
    EXPECT_EQ(train(rest, 0), End::Finished);
    EXPECT_EQ(rest.losses(), whole.losses());
    EXPECT_EQ(rest.trainer().weights_sha256(), whole.trainer().weights_sha256());
    for (const auto& run : {load_run(folder), load_run(folder_ / "whole")}) {
      ASSERT_EQ(run.epochs.size(), 2U);
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(run.epochs[i].scores.mean_dice, whole.epochs()[i].scores.mean_dice);
        EXPECT_EQ(run.epochs[i].loss, whole.epochs()[i].loss);
        EXPECT_EQ(run.epochs[i].validation_loss, whole.epochs()[i].validation_loss);
        ASSERT_EQ(run.epochs[i].scores.classes.size(), 1U);
        EXPECT_EQ(run.epochs[i].scores.classes[0].iou, whole.epochs()[i].scores.classes[0].iou);
      }
      EXPECT_TRUE(same(run.statistics, estimates));
    }
    EXPECT_EQ(std::ranges::count(test::get_file(folder / "metrics.csv"), '\n'), 3);
  }
}

void put_random_tiff(const std::filesystem::path& path, std::int64_t values, std::uint64_t seed) {
  const auto pixels = segmentation::random_picture({160, 160}, seed, values, 4);
  const Picture picture = {{160, 160, 1, 8, false}, {pixels.begin(), pixels.end()}};
  save_tiff(path, {&picture, 1});
}

TEST_F(Interrupted, images_beyond_the_memory_give_the_same_weights) {
  for (const auto* name : {"images", "masks"}) std::filesystem::create_directory(folder_ / name);
  for (std::uint64_t i = 0; i < 12; ++i) {
    const auto name = std::to_string(i) + ".tif";
    put_random_tiff(folder_ / "images" / name, 200, i);
    put_random_tiff(folder_ / "masks" / name, 2, i);
  }
  const DeviceSet machine({.threads = 1});
  auto config = tiny_run();
  config.data.source = folder_.path().string();
  config.weights.border = 2;
  config.data.validation_fraction = 0.2;
  std::vector<std::string> hashes;
  for (const std::int64_t mib : {0, 1}) {
    config.data.cache_mib = mib;
    TrainingRun run(machine, config, folder_ / ("run" + std::to_string(mib)));
    EXPECT_EQ(run.data().train.cache != nullptr, mib == 1);
    EXPECT_EQ(train(run, 0), End::Finished);
    hashes.push_back(run.trainer().weights_sha256());
    const auto& cache = run.data().train.cache;
    EXPECT_LE(cache == nullptr ? 0 : cache->most_bytes(), mib << 20);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

/// It ends early at this learning rate.
RunConfig patient_run() {
  auto config = tiny_run();
  config.keep = Keep::Loss;
  config.patience = 2;
  config.learning_rate = 0.5F;
  config.epochs = 20;
  return config;
}

void expect_same(const SavedRun& run, const SavedRun& expected) {
  EXPECT_EQ(run.losses, expected.losses);
  EXPECT_EQ(run.epochs.size(), expected.epochs.size());
  for (const auto& [name, tensor] : expected.states)
    EXPECT_TRUE(std::ranges::equal(run.states.at(name).bytes(), tensor.bytes())) << name;
}

TEST_P(InterruptedRanks, keep_the_same_best_and_end_as_early_when_they_go_on) {
  TrainingRun whole(machine_, patient_run(), folder_ / "whole");
  EXPECT_EQ(train(whole, 0), End::Finished);
  ASSERT_TRUE(whole.stopped_early());
  const auto best = load_run(folder_ / "whole/best"), last = load_run(folder_ / "whole");
  EXPECT_EQ(last.epochs.size(), best.epochs.size() + 2);
  const auto steps = std::ssize(whole.losses());
  for (const std::int64_t at : {std::ssize(best.losses), std::ssize(best.losses) + 1, steps}) {
    const auto folder = folder_ / std::to_string(at);
    {
      TrainingRun run(machine_, patient_run(), folder);
      EXPECT_EQ(train(run, at), End::Interrupted);
    }
    TrainingRun rest(machine_, load_run(folder), folder);
    EXPECT_EQ(train(rest, 0), End::Finished);
    expect_same(load_run(folder), last);
    expect_same(load_run(folder / "best"), best);
  }
  const auto ended = folder_ / std::to_string(steps);
  TrainingRun again(machine_, load_run(ended), ended);
  EXPECT_EQ(train(again, 0), End::Finished);
  EXPECT_EQ(std::ssize(again.losses()), steps) << "it has ended already";
}

TEST_F(Interrupted, the_learning_rate_rises_in_the_warm_up_and_falls_along_the_cosine) {
  const DeviceSet machine({.threads = 1});
  auto config = tiny_run();
  config.learning_rate = 1;
  config.warmup = 2;
  config.schedule = Schedule::Cosine;
  const TrainingRun run(machine, config, folder_ / "run");
  EXPECT_EQ(run.learning_rate(0), 0.5F);
  EXPECT_EQ(run.learning_rate(1), 1);
  EXPECT_EQ(run.learning_rate(2), 1);
  EXPECT_NEAR(run.learning_rate(3), 0.5F, 1e-7F);
  config.warmup = 5;
  EXPECT_THROW(TrainingRun(machine, config, folder_ / "short"), InvalidArgument);
}

/// The message that `act` is refused with.
template <class Act>
std::string refusal(const Act& act) {
  try {
    act();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return {};
}

TEST_P(InterruptedRanks, go_on_past_the_end_of_a_cosine_by_a_new_run_alone) {
  auto config = tiny_run();
  config.schedule = Schedule::Cosine;
  config.learning_rate = 0.1F;
  const auto folder = folder_ / "run";
  TrainingRun(machine_, config, folder).train({}, false);
  auto longer = load_run(folder);
  EXPECT_EQ(longer.config.schedule_steps, 4);
  longer.config.epochs = 3;
  EXPECT_THAT(refusal([&] { TrainingRun(machine_, std::move(longer), folder); }),
              AllOf(HasSubstr("0 after step 4"), HasSubstr("6 steps"), HasSubstr("option init")));
  EXPECT_EQ(TrainingRun(machine_, load_run(folder), folder).train({}, false), End::Finished);
  config.init = folder;
  config.epochs = 3;
  TrainingRun next(machine_, config, folder_ / "next");
  const auto before = next.trainer().weights_sha256();
  EXPECT_EQ(next.train({}, false), End::Finished);
  EXPECT_NE(next.trainer().weights_sha256(), before);
}

TEST_F(Interrupted, a_schedule_that_ends_before_its_run_is_refused) {
  const DeviceSet machine({.threads = 1});
  auto config = tiny_run();
  config.schedule = Schedule::Cosine;
  for (const auto& [warmup, steps, end] : {std::array{0, 3, 3}, {2, 3, 3}, {2, 1, 3}}) {
    config.warmup = warmup;
    config.schedule_steps = steps;
    EXPECT_THAT(refusal([&] { TrainingRun(machine, config, folder_ / "run"); }),
                AllOf(HasSubstr("0 after step " + std::to_string(end)),
                      HasSubstr("option schedule-steps 4")));
  }
  config.steps = 3;
  config.schedule_steps = 3;
  TrainingRun run(machine, config, folder_ / "run");
  EXPECT_GT(run.learning_rate(2), 0);
  EXPECT_EQ(run.learning_rate(3), 0);
}

TEST_P(InterruptedRanks, begin_with_the_weights_of_another_run) {
  TrainingRun first(machine_, tiny_run(), folder_ / "first");
  EXPECT_EQ(train(first, 0), End::Finished);
  auto config = tiny_run();
  config.training.seed = 1;
  config.init = folder_ / "first";
  TrainingRun second(machine_, config, folder_ / "second");
  EXPECT_EQ(second.trainer().weights_sha256(), first.trainer().weights_sha256());
  EXPECT_EQ(second.config().init_sha256.size(), 64U);
  EXPECT_EQ(load_run(folder_ / "second").config.init_sha256, second.config().init_sha256);
}

TEST_F(Interrupted, a_best_evaluation_needs_images_to_judge_by) {
  const DeviceSet machine({.threads = 1});
  auto config = patient_run();
  config.data.validation_fraction = 0;
  EXPECT_THROW(TrainingRun(machine, config, folder_ / "run"), InvalidArgument);
}

TEST_F(Interrupted, an_image_ends_before_its_next_tile) {
  const DeviceSet machine({.threads = 1});
  TrainingRun run(machine, tiny_run(), folder_ / "run");
  Predictor predictor(machine, run.config().model, run.trainer(), {.tile = 16, .margin = 4});
  const std::vector<float> image(40 * 40, 0.5F);
  int tiles = 0;
  EXPECT_THAT(predictor.logits(image, {40, 40}, [&] { return ++tiles < 3; }), IsEmpty());
  EXPECT_EQ(tiles, 3);
  EXPECT_EQ(predictor.logits(image, {40, 40}).size(), image.size());
}

TEST(TrainingRun, weights_that_overflow_behind_a_good_loss_replace_no_checkpoint) {
  const test::TemporaryFolder folder;
  const DeviceSet machine({.threads = 1});
  auto config = tiny_run();
  config.training.optimizer.kind = OptimizerKind::Sgd;
  config.training.optimizer.weight_decay = 1;
  config.learning_rate = 1000;
  config.epochs = 0;
  config.steps = config.steps_per_epoch = 100;
  config.checkpoint_every = 1;
  TrainingRun run(machine, config, folder / "run");
  EXPECT_THROW(run.train({}, false), NumericError);
  EXPECT_EQ(load_run(folder / "run").notes.size(), 0U);
}

}  // namespace
}  // namespace triptych::training
