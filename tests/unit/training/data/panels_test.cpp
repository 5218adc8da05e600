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

std::vector<std::uint16_t> pixel_of(const Image& image, std::int64_t x) {
  const auto first = image.samples.begin() + 3 * x;
  return {first, first + 3};
}

TEST(Panels, colours_are_shown) {
  Sample sample = {.channels = 3, .height = 1, .width = 2, .image = {1, 1, 0, 1, 1, 0.5F}};
  sample.labels = {0, 1};
  const auto panels = truth_and_prediction(sample, std::vector<std::uint8_t>{0, 1}, 2);
  EXPECT_EQ(panels.channels, 3);
  EXPECT_THAT(pixel_of(panels, 0), ElementsAre(255, 0, 255));
  EXPECT_THAT(pixel_of(panels, 1), ElementsAre(255, 255, 128));
}

TEST(Panels, errors_have_colours_of_their_own) {
  Sample sample = {.channels = 1, .height = 1, .width = 6, .image = {0, 0, 0, 0, 0, 1}};
  sample.labels = {0, 1, 0, 1, 1, kIgnored};
  const std::vector<std::uint8_t> predicted = {0, 1, 1, 0, 2, 1};
  const auto panels = truth_and_prediction(sample, predicted, 3);
  const auto prediction = 2 * (6 + 4);
  EXPECT_THAT(pixel_of(panels, prediction), ElementsAre(0, 0, 0));
  EXPECT_THAT(pixel_of(panels, prediction + 1), ElementsAre(127, 127, 127));
  EXPECT_THAT(pixel_of(panels, prediction + 2), ElementsAre(255, 0, 0));
  EXPECT_THAT(pixel_of(panels, prediction + 3), ElementsAre(0, 0, 255));
  EXPECT_THAT(pixel_of(panels, prediction + 4), ElementsAre(255, 200, 0));
  EXPECT_THAT(pixel_of(panels, prediction + 5), ElementsAre(127, 127, 127)) << "not counted";
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
