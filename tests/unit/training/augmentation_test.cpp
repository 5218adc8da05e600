// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/augmentation.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "experiments/training/run_config.h"

namespace triptych::training {
namespace {

TEST(Augmentation, words_are_sets_of_changes) {
  const auto text_of = [](std::string_view text) { return Augmentation::from_text(text).text(); };
  for (const auto* text : {"none", "flips", "all", "strong", "noise"})
    EXPECT_EQ(text_of(text), text);
  EXPECT_EQ(text_of("elastic,rotate,flips"), "all");
  EXPECT_EQ(text_of("noise, scale,noise"), "scale,noise");
  EXPECT_EQ(Augmentation::from_text("flips"), Augmentation({Change::Flips}));
  for (const auto& [change, name] : kNamesOf<Change>)
    EXPECT_TRUE(Augmentation::from_text("strong").has(change)) << name;
}

TEST(Augmentation, another_text_is_refused_with_what_there_is) {
  for (const auto* text : {"", "flip", ",flips", "flips,none", "flips noise"}) {
    try {
      Augmentation::from_text(text);
      ADD_FAILURE() << text;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("list with commas of flips, rotate"));
    }
  }
}

TEST(Augmentation, every_change_turns_its_own_switch_on) {
  const auto options_of = [](Augmentation augmentation) {
    RunConfig config;
    config.model = model_preset("unet-s");
    config.augmentation = augmentation;
    return batcher_options(config).augment;
  };
  const auto switches = [&](Augmentation augmentation) {
    const auto options = options_of(augmentation);
    return std::vector<bool>{options.flip_x && options.flip_y && options.transpose,
                             options.max_rotation_degrees == 180,
                             options.elastic_sigma > 0,
                             options.zoom,
                             options.intensity.blur,
                             options.intensity.brightness,
                             options.intensity.contrast,
                             options.intensity.gamma,
                             options.intensity.noise};
  };
  EXPECT_EQ(switches({}), std::vector<bool>(9));
  for (const auto& [change, name] : kNamesOf<Change>) {
    std::vector<bool> expected(9);
    expected[static_cast<std::size_t>(change)] = true;
    EXPECT_EQ(switches({change}), expected) << name;
  }
}

TEST(Augmentation, is_kept_in_the_configuration_of_a_run) {
  RunConfig config;
  config.model = model_preset("unet-s");
  config.augmentation = Augmentation::from_text("flips,gamma");
  EXPECT_EQ(run_config_from_json(to_json(config)).augmentation, config.augmentation);
  auto json = to_json(config);
  json.replace(json.find("flips,gamma"), 11, "flips,gamme");
  EXPECT_THROW(run_config_from_json(json), InvalidArgument);
}

}  // namespace
}  // namespace triptych::training
