// SPDX-License-Identifier: Apache-2.0
#include "core/nn/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "core/graph/passes/passes.h"
#include "core/nn/initializers.h"
#include "core/nn/training_graph.h"

namespace triptych {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::int64_t parameter_elements(const ModelConfig& config) {
  const auto graph = build_inference_graph(config, 1, config.size, config.size);
  std::int64_t count = 0;
  for (const auto& name : parameter_names(config)) {
    count += graph.spec(graph.find(name)).shape.elements();
  }
  return count;
}

TEST(Models, presets_have_the_published_number_of_parameters) {
  EXPECT_EQ(parameter_elements(model_preset("unet-s")), 121033);
  EXPECT_EQ(parameter_elements(model_preset("unet-m")), 7762465);
  EXPECT_EQ(parameter_elements(model_preset("unet-l")), 31036481);
}

TEST(Models, every_preset_maps_images_to_logits_of_the_same_size) {
  for (const auto& preset : model_presets()) {
    auto config = preset;
    config.classes = 3;
    const auto graph = build_inference_graph(config, 2, config.size, config.size);
    verify(graph);
    EXPECT_EQ(graph.spec(graph.find("x")).shape, (Shape{2, 1, config.size, config.size}));
    EXPECT_EQ(graph.spec(graph.outputs()[0].value).shape, (Shape{2, 3, config.size, config.size}))
        << config.name;
  }
}

TEST(Models, names_of_parameters_tell_the_place_in_the_network) {
  const auto names = parameter_names(model_preset("unet-s"));
  EXPECT_THAT(names,
              testing::IsSupersetOf({"down1.conv0.weight", "down3.bn1.bias", "bottom.conv1.weight",
                                     "up3.transpose.bias", "up1.conv0.weight", "head.bias"}));
}

TEST(Models, refuses_sizes_that_cannot_be_halved) {
  auto config = model_preset("unet-s");
  config.size = 60;
  EXPECT_THAT(
      [&] { validate(config); },
      ThrowsMessage<InvalidArgument>(HasSubstr("the option size 60 must be a multiple of 8")));
}

TEST(Models, unknown_names_list_the_known_ones) {
  EXPECT_THAT([] { model_preset("unet-xxl"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("unet-s, unet-m, unet-l, cnn, mlp")));
}

TEST(TrainingGraph, verifies_for_every_preset_loss_and_optimiser) {
  for (const auto& preset : model_presets()) {
    for (const auto optimizer : {OptimizerKind::Sgd, OptimizerKind::Adam, OptimizerKind::AdamW}) {
      auto config = preset;
      if (config.name == "unet-l") config.base = 4;
      auto training = build_training_graph(config, {.batch = 2, .optimizer = {.kind = optimizer}});
      verify(training.graph);
      EXPECT_EQ(training.parameters.size(), training.parameter_gradients.size());
    }
  }
  auto classes = model_preset("unet-s");
  classes.classes = 4;
  verify(build_training_graph(classes, {}).graph);
  verify(build_training_graph(model_preset("unet-s"), {.loss = LossKind::Dice}).graph);
}

TEST(Initializers, depend_on_seed_and_name_only) {
  const auto a = uniform_fan_in({4, 5}, 20, 1, "w");
  const auto b = uniform_fan_in({4, 5}, 20, 1, "w");
  const auto c = uniform_fan_in({4, 5}, 20, 1, "v");
  EXPECT_TRUE(std::ranges::equal(a.bytes(), b.bytes()));
  EXPECT_FALSE(std::ranges::equal(a.bytes(), c.bytes()));
}

TEST(Initializers, draw_the_numbers_of_a_stream) {
  for (const std::int64_t size : {1, 4, 11}) {
    const auto weights = uniform_fan_in({size}, 16, 1, "w");
    RandomStream random(1, stream_of("w"));
    for (const float weight : weights.as<float>()) EXPECT_EQ(weight, random.uniform(-0.25F, 0.25F));
  }
}

TEST(Initializers, stay_within_one_over_the_root_of_fan_in) {
  const auto weights = uniform_fan_in({1000}, 25, 3, "w");
  const auto [low, high] = std::ranges::minmax(weights.as<float>());
  EXPECT_GE(low, -0.2F);
  EXPECT_LE(high, 0.2F);
  EXPECT_LT(low, -0.19F);
  EXPECT_GT(high, 0.19F);
}

TEST(Initializers, stratified_weights_fall_into_different_intervals_in_random_order) {
  bool ascending = true;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto tensor = stratified_fan_in({2, 8}, 8, seed, "head");
    for (const std::size_t output : {0U, 1U}) {
      std::vector<float> weights;
      for (std::size_t i = 0; i < 8; ++i) weights.push_back(tensor.as<float>()[8 * output + i]);
      ascending = ascending && std::ranges::is_sorted(weights);
      std::ranges::sort(weights);
      const float bound = 1 / std::sqrt(8.0F);
      for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_GE(weights[i], bound * (2 * static_cast<float>(i) / 8 - 1));
        EXPECT_LE(weights[i], bound * (2 * static_cast<float>(i + 1) / 8 - 1));
      }
    }
  }
  EXPECT_FALSE(ascending);
}

}  // namespace
}  // namespace triptych
