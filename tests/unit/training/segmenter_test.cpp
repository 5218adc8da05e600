// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/segmenter.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/random.h"
#include "experiments/training/training_run.h"
#include "tests/unit/io/test_files.h"

namespace triptych::training {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

TEST(Oriented, all_eight_differ_and_are_taken_back) {
  const segmentation::Size size = {2, 3};
  const std::vector<float> planes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_THAT(oriented(planes, size, 1), ElementsAre(3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10));
  EXPECT_THAT(oriented(planes, size, 2), ElementsAre(4, 5, 6, 1, 2, 3, 10, 11, 12, 7, 8, 9));
  EXPECT_THAT(oriented(planes, size, 4), ElementsAre(1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12));
  std::set<std::vector<float>> all;
  for (int index = 0; index < 8; ++index) {
    EXPECT_EQ(oriented(size, index), index < 4 ? size : (segmentation::Size{3, 2}));
    all.insert(oriented(planes, size, index));
    EXPECT_EQ(turned_back(oriented(planes, size, index), size, index), planes);
  }
  EXPECT_EQ(all.size(), 8U);
}

/// A model after one step, which treats no two directions equally.
class Segmented : public ::testing::Test {
 protected:
  static SavedRun trained(std::int64_t classes) {
    RunConfig config;
    config.model = model_preset("unet-s");
    config.model.classes = classes;
    config.model.base = 2;
    config.model.depth = 1;
    config.model.size = 16;
    const test::TemporaryFolder folder;
    config.data.synthetic_images = 3;
    config.training.batch = 1;
    config.epochs = 0;
    config.steps = 1;
    const DeviceSet machine({.threads = 1});
    const std::atomic<bool> interrupted = false;
    TrainingRun(machine, config, folder / "run").train({}, interrupted);
    return load_run(folder / "run");
  }

  static segmentation::Sample noise(segmentation::Size size) {
    segmentation::Sample sample;
    sample.height = size.height;
    sample.width = size.width;
    RandomStream random(1, 0);
    for (std::int64_t i = 0; i < size.pixels(); ++i)
      sample.image.push_back(static_cast<float>(random.below(256)) / 255);
    return sample;
  }
};

TEST_F(Segmented, tiles_agree_with_the_whole_in_the_interior) {
  const auto run = trained(2);
  const DeviceSet machine({.threads = 1});
  constexpr std::int64_t view = 12, side = 70;  // tiles evenly spread would start at 11
  Predictor whole(machine, run.config.model, run.states, {.tile = 96});
  Predictor tiled(machine, run.config.model, run.states, {.tile = 48, .margin = view});
  const auto sample = noise({side, side});
  const auto expected = Segmenter(whole, run).segment(sample).probabilities;
  const auto found = Segmenter(tiled, run).segment(sample).probabilities;
  float most = 0;
  for (std::int64_t y = view; y < side - view; ++y) {
    for (std::int64_t x = view; x < side - view; ++x) {
      const auto pixel = static_cast<std::size_t>(y * side + x);
      most = std::max(most, std::abs(expected[pixel] - found[pixel]));
    }
  }
  EXPECT_LT(most, 1e-5F);
}

TEST_F(Segmented, the_mean_over_the_orientations_turns_with_the_image) {
  const auto run = trained(2);
  const DeviceSet machine({.threads = 1});
  Predictor predictor(machine, run.config.model, run.states);
  Segmenter once(predictor, run), mean(predictor, run, {.test_time = TestTime::Flips});
  const segmentation::Size size = {12, 18};
  const auto sample = noise(size);
  const auto expected = mean.segment(sample);
  EXPECT_NE(expected.probabilities, once.segment(sample).probabilities);
  for (const int index : {1, 6}) {
    auto turned = sample;
    turned.image = oriented(sample.image, size, index);
    turned.height = oriented(size, index).height;
    turned.width = oriented(size, index).width;
    const auto found = turned_back(mean.segment(turned).probabilities, size, index);
    EXPECT_THAT(found, Pointwise(FloatNear(1e-5F), expected.probabilities));
  }
}

TEST_F(Segmented, class_1_is_above_the_threshold) {
  const auto run = trained(1);
  const DeviceSet machine({.threads = 1});
  Predictor predictor(machine, run.config.model, run.states);
  const auto sample = noise({16, 16});
  const auto plain = Segmenter(predictor, run).segment(sample);
  EXPECT_EQ(plain.channels, 1);
  const auto threshold = plain.probabilities[100];
  const auto split = Segmenter(predictor, run, {.threshold = threshold}).segment(sample);
  const auto of_class_0 = split.probability_of(0);
  for (std::size_t i = 0; i < 256; ++i) {
    EXPECT_EQ(split.classes[i], plain.probabilities[i] > threshold);
    EXPECT_FLOAT_EQ(of_class_0[i], 1 - plain.probabilities[i]);
  }
}

TEST_F(Segmented, several_classes_have_no_threshold) {
  auto run = trained(2);
  const DeviceSet machine({.threads = 1});
  Predictor predictor(machine, run.config.model, run.states);
  run.config.model.classes = 3;
  EXPECT_THROW(Segmenter(predictor, run, {.threshold = 0.5F}), InvalidArgument);
}

}  // namespace
}  // namespace triptych::training
