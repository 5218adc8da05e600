// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/prediction_files.h"

#include <gmock/gmock.h>

#include <fstream>

#include "core/base/error.h"
#include "core/io/npy.h"
#include "core/io/picture.h"
#include "tests/unit/io/test_files.h"

namespace triptych::training {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

RunConfig model_of(std::int64_t classes, std::string labels) {
  RunConfig config;
  config.model.classes = classes;
  config.data.labels = std::move(labels);
  return config;
}

Image decoded(const std::string& png) { return decode_png(std::as_bytes(std::span(png))); }

/// Two touching classes in addition to the background.
Segmentation predicted() {
  Segmentation result = {.size = {2, 4}, .channels = 3, .probabilities = {}, .classes = {}};
  result.classes = {1, 1, 2, 0, 0, 0, 2, 1};
  result.probabilities.assign(24, 0.25F);
  return result;
}

segmentation::Sample sample() {
  segmentation::Sample picture;
  picture.height = 2;
  picture.width = 4;
  picture.image = {0, 0.5F, 1, 1, 0, 0.25F, 1, 1};
  return picture;
}

TEST(MaskValues, are_levels_numbers_or_those_of_the_training) {
  using enum MaskValues;
  EXPECT_THAT(mask_values(model_of(1, "0,1"), Levels), ElementsAre(0, 255));
  EXPECT_THAT(mask_values(model_of(3, "0,128,255"), Levels), ElementsAre(0, 127, 254));
  EXPECT_THAT(mask_values(model_of(3, "0,128,255"), Classes), ElementsAre(0, 1, 2));
  EXPECT_THAT(mask_values(model_of(3, "255,7,4000"), Labels), ElementsAre(255, 7, 4000));
  EXPECT_THAT(mask_values(model_of(1, "below-half"), Labels), ElementsAre(255, 0));
  EXPECT_THAT(mask_values(model_of(1, "instances"), Labels), ElementsAre(0, 255));
  EXPECT_THAT(mask_values(model_of(1, ""), Labels), ElementsAre(0, 255)) << "nothing is known";
}

TEST(PredictionFiles, a_mask_of_large_values_has_sixteen_bits) {
  const auto mask = [&](const std::string& labels) {
    return decoded(encode(PredictionFile::Mask, sample(), predicted(), model_of(3, labels),
                          {.values = MaskValues::Labels}));
  };
  EXPECT_EQ(mask("0,1,255").bit_depth, 8);
  EXPECT_EQ(mask("0,1,256").bit_depth, 16);
  EXPECT_THAT(mask("0,1,256").samples, ElementsAre(1, 1, 256, 0, 0, 0, 256, 1));
}

TEST(PredictionFiles, instances_are_numbered_and_each_is_of_one_class) {
  const auto image =
      decoded(encode(PredictionFile::Instances, sample(), predicted(), model_of(3, "0,1,2"), {}));
  EXPECT_EQ(image.bit_depth, 16);
  EXPECT_THAT(image.samples, ElementsAre(1, 1, 3, 0, 0, 0, 3, 2));
}

TEST(PredictionFiles, more_objects_than_a_png_numbers_go_into_a_tiff) {
  Segmentation many = {.size = {280, 501}, .channels = 1, .probabilities = {}, .classes = {}};
  for (std::int64_t i = 0; i < many.size.pixels(); ++i)  // a chessboard, as the width is odd
    many.classes.push_back(static_cast<std::uint8_t>(i % 2));
  const auto encoded = [&](PictureFormat format) {
    return encode(PredictionFile::Instances, sample(), many, model_of(1, "0,1"),
                  {.format = format});
  };
  EXPECT_THROW(encoded(PictureFormat::Png), InvalidArgument);
  const test::TemporaryFolder folder;
  std::ofstream(folder / "a.tif", std::ios::binary) << encoded(PictureFormat::Tiff);
  const auto read = PictureFile(folder / "a.tif").read();
  EXPECT_EQ(read.form.bits, 32);
  EXPECT_FALSE(read.form.floating);
  EXPECT_EQ(read.samples.back(), 280 * 501 / 2);
}

TEST(PredictionFiles, a_watershed_parts_objects_that_touch) {
  Segmentation touching = {.size = {1, 5}, .channels = 1, .probabilities = {}, .classes = {}};
  touching.probabilities = {0.95F, 0.7F, 0.6F, 0.8F, 0.99F};
  touching.classes = {1, 1, 1, 1, 1};
  EXPECT_EQ(objects_of(touching, {}).count, 1);
  EXPECT_THAT(objects_of(touching, {.objects = Objects::Watershed}).labels,
              ElementsAre(1, 1, 2, 2, 2));
}

TEST(PredictionFiles, objects_may_be_of_any_class) {
  auto config = model_of(3, "0,1,2");
  config.data.class_names = "outside,membrane,nucleus";
  EXPECT_THAT(parse_object_classes("0,nucleus", config), ElementsAre(0, 2));
  EXPECT_THROW(parse_object_classes("3", config), InvalidArgument);
  EXPECT_THROW(parse_object_classes("cell", config), InvalidArgument);
  EXPECT_THAT(objects_of(predicted(), {.object_classes = {0, 2}}).labels,
              ElementsAre(0, 0, 3, 1, 2, 2, 3, 0));
  Segmentation cells = {.size = {1, 4}, .channels = 1, .probabilities = {}, .classes = {}};
  cells.probabilities = {0.05F, 0.4F, 0.02F, 0.9F};
  cells.classes = {0, 0, 0, 1};
  EXPECT_THAT(objects_of(cells, {.object_classes = {0}}).labels, ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(objects_of(cells, {.objects = Objects::Watershed, .object_classes = {0}}).labels,
              ElementsAre(1, 1, 2, 0));
}

TEST(PredictionFiles, probabilities_are_an_array_that_numpy_reads) {
  const test::TemporaryFolder folder;
  const auto prediction = predicted();
  std::ofstream(folder / "p.npy", std::ios::binary)
      << encode(PredictionFile::Probabilities, sample(), prediction, model_of(3, "0,1,2"), {});
  const auto tensor = load_npy(folder / "p.npy");
  EXPECT_EQ(tensor.spec().shape, (Shape{3, 2, 4}));
  EXPECT_THAT(tensor.as<float>(), ElementsAreArray(prediction.probabilities));
}

TEST(PredictionFiles, an_overlay_is_the_picture_with_outlines_in_a_colour_of_each_class) {
  const auto image = overlay(sample(), predicted());
  EXPECT_EQ(image.channels, 3);
  const auto pixel = [&](std::size_t i) {
    return std::vector(image.samples.begin() + 3 * static_cast<std::ptrdiff_t>(i),
                       image.samples.begin() + 3 * static_cast<std::ptrdiff_t>(i) + 3);
  };
  EXPECT_THAT(pixel(3), Each(255));
  EXPECT_THAT(pixel(4), Each(0));
  EXPECT_THAT(pixel(5), Each(64));
  EXPECT_EQ(pixel(0), pixel(7));
  EXPECT_NE(pixel(0), pixel(2)) << "of another class";
  EXPECT_THAT(pixel(0), ElementsAre(255, 64, 64));
}

TEST(PredictionFiles, tiff_files_hold_the_same) {
  const test::TemporaryFolder folder;
  const auto written = [&](PredictionFile kind) {
    const auto path = folder / std::string(ending_of(kind, PictureFormat::Tiff));
    std::ofstream(path, std::ios::binary)
        << encode(kind, sample(), predicted(), model_of(3, "0,1,256"),
                  {.format = PictureFormat::Tiff, .values = MaskValues::Labels});
    return PictureFile(path).pages() == 1
               ? std::vector{PictureFile(path).read(0)}
               : std::vector{PictureFile(path).read(0), PictureFile(path).read(2)};
  };
  const auto mask = written(PredictionFile::Mask).front();
  EXPECT_EQ(mask.form.bits, 16);
  EXPECT_THAT(mask.samples, ElementsAre(1, 1, 256, 0, 0, 0, 256, 1));
  EXPECT_THAT(written(PredictionFile::Instances).front().samples,
              ElementsAre(1, 1, 3, 0, 0, 0, 3, 2));
  EXPECT_EQ(written(PredictionFile::Overlay).front().form.channels, 3);
  const auto probabilities = written(PredictionFile::Probabilities);
  ASSERT_EQ(probabilities.size(), 2U) << "of three pages the first and the last";
  EXPECT_TRUE(probabilities[1].form.floating);
  EXPECT_THAT(probabilities[1].samples, Each(0.25F));
}

}  // namespace
}  // namespace triptych::training
