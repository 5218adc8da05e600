// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/panels.h"

#include <gmock/gmock.h>

#include "tests/unit/training/data/pictures.h"

namespace triptych::segmentation {
namespace {

using ::testing::ElementsAre;

TEST(Panels, classes_are_grey_levels_and_ignored_pixels_no_grey_at_all) {
  EXPECT_THAT(label_panel(drawn("012\n???\n???"), 3, 3),
              ElementsAre(0, 127, 254, 255, 0, 255, 0, 255, 0));
}

std::vector<std::uint16_t> shown(std::vector<float> image) {
  Sample sample;
  sample.channels = 1;
  sample.height = 1;
  sample.width = std::ssize(image);
  sample.image = std::move(image);
  return image_panel(sample, 0);
}

TEST(Panels, a_picture_of_few_levels_of_many_is_not_black) {
  EXPECT_THAT(shown({0, 0.5F, 0.8F}), ElementsAre(0, 128, 204)) << "as it is";
  EXPECT_THAT(shown({0, 0.03125F, 0.0625F}), ElementsAre(0, 128, 255)) << "12 bits of 16";
  EXPECT_THAT(shown({0, 0}), ElementsAre(0, 0));
  EXPECT_THAT(shown({-2, 0, 2}), ElementsAre(0, 128, 255)) << "no range is known";
}

TEST(Panels, colours_are_shown_by_their_luma) {
  Sample sample = {.channels = 3, .height = 1, .width = 2, .image = {1, 1, 0, 1, 1, 1}};
  sample.labels = {0, 1};
  const std::vector<std::uint8_t> predicted = {0, 1};
  const auto panels = truth_and_prediction(sample, predicted, 2);
  EXPECT_EQ(panels.samples[0], 105) << "magenta";
  EXPECT_EQ(panels.samples[1], 255);
}

TEST(Panels, a_hot_pixel_leaves_the_others_as_bright_as_they_are) {
  std::vector<float> values(2000, 3);
  values[1] = 2;
  values[5] = 60000;
  values[6] = -4;
  values[7] = 5;
  EXPECT_EQ(shown(values)[5], 255);
  EXPECT_EQ(shown(values)[6], 0);
  values.assign(2000, 0.1F);
  values[3] = 1;
  EXPECT_EQ(shown(values)[0], 255) << "a dark picture with one white pixel";
  EXPECT_EQ(shown(values)[3], 255);
}

}  // namespace
}  // namespace triptych::segmentation
