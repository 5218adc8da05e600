// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/batch_statistics.h"

#include <gmock/gmock.h>

#include "core/base/random.h"

namespace triptych::training {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::Pointwise;

constexpr std::int64_t kSide = 8;

ModelConfig tiny_model() {
  auto model = model_preset("unet-s");
  model.base = 2;
  model.depth = 1;
  model.size = kSide;
  return model;
}

Tensor random_images(std::int64_t count, std::uint64_t stream) {
  Tensor x({DType::F32, {count, 1, kSide, kSide}});
  RandomStream random(7, stream);
  for (auto& value : x.as<float>()) value = static_cast<float>(random.normal());
  return x;
}

/// A model in training on one machine.
class BatchStatisticsTest : public ::testing::Test {
 protected:
  BatchStatisticsTest() {
    for (int step = 0; step < 3; ++step) {
      Tensor target({DType::F32, {2, 1, kSide, kSide}});
      trainer_.step(random_images(2, 100), target, 0.01F);
    }
  }

  TensorMap states() {
    TensorMap all;
    for (const auto& name : trainer_.states().names())
      all.emplace(name, trainer_.states().read(name));
    return all;
  }
  /// Statistics of so many batches of so many images: always the same images.
  TensorMap estimate(std::int64_t batches, std::int64_t batch) {
    BatchStatistics statistics(machine_, tiny_model(), batch, trainer_);
    return statistics.estimate(
        batches,
        [&](std::int64_t i) {
          Tensor x({DType::F32, {batch, 1, kSide, kSide}});
          for (std::int64_t b = 0; b < batch; ++b) {
            const auto image = random_images(1, static_cast<std::uint64_t>(i * batch + b));
            std::ranges::copy(image.as<float>(), x.as<float>().begin() + b * kSide * kSide);
          }
          return segmentation::Batch{std::move(x), {}};
        },
        [] { return true; });
  }

  DeviceSet machine_{{.threads = 1}};
  Trainer trainer_{machine_, {.model = tiny_model(), .options = {.batch = 2}}};
};

TEST_F(BatchStatisticsTest, states_stay_what_they_were) {
  const auto before = states();
  EXPECT_FALSE(estimate(2, 2).empty());
  for (const auto& [name, state] : states())
    EXPECT_TRUE(std::ranges::equal(state.bytes(), before.at(name).bytes())) << name;
}

// The first layer's input does not depend on how images are cut into batches. Deeper ones do.
TEST_F(BatchStatisticsTest, are_those_of_all_images_however_they_are_cut) {
  const auto one = estimate(1, 8), four = estimate(4, 2);
  for (const auto* name : {"down1.bn0.running_mean", "down1.bn0.running_var"}) {
    EXPECT_THAT(four.at(name).as<float>(),
                Pointwise(testing::FloatNear(1e-5F), one.at(name).as<float>()))
        << name;
    EXPECT_THAT(four.at(name).as<float>(),
                testing::Not(Pointwise(testing::FloatNear(1e-3F), states().at(name).as<float>())))
        << name;
  }
}

TEST_F(BatchStatisticsTest, are_the_same_however_often_they_are_asked_for) {
  const auto first = estimate(3, 2), second = estimate(3, 2);
  for (const auto& [name, value] : first)
    EXPECT_THAT(second.at(name).as<float>(), ElementsAreArray(value.as<float>())) << name;
}

TEST_F(BatchStatisticsTest, are_none_when_interrupted) {
  BatchStatistics statistics(machine_, tiny_model(), 2, trainer_);
  int batches = 0;
  EXPECT_THAT(statistics.estimate(
                  5,
                  [](std::int64_t i) {
                    return segmentation::Batch{random_images(2, static_cast<std::uint64_t>(i)), {}};
                  },
                  [&] { return ++batches < 3; }),
              IsEmpty());
}

TEST(ReplacedStates, are_put_back) {
  const DeviceSet machine({.threads = 1});
  StateStore store(machine.device());
  store.require("a", scalar_tensor(1.0F));
  TensorMap values;
  values.emplace("a", scalar_tensor(2.0F));
  {
    const ReplacedStates replaced(store, values);
    EXPECT_EQ(store.read("a").as<float>()[0], 2);
  }
  EXPECT_EQ(store.read("a").as<float>()[0], 1);
}

}  // namespace
}  // namespace triptych::training
