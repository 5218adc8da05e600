// Options of a run that say how pictures and masks are read: kept, checked and applied.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/io/picture.h"
#include "experiments/training/data/batcher.h"
#include "experiments/training/run_config.h"
#include "tests/unit/io/test_files.h"

namespace triptych::training::picture_options_tests {
namespace {

using ::testing::HasSubstr;

class PictureOptionsTest : public ::testing::Test {
 protected:
  PictureOptionsTest() {
    std::filesystem::create_directory(folder / "images");
    std::filesystem::create_directory(folder / "masks");
    for (const auto* name : {"a", "b"}) {
      const Picture image = {{4, 4, 1, 8, false}, ramp()};
      const Picture mask = {{4, 4, 1, 8, false}, stripes()};
      save_tiff(folder / "images" / (std::string(name) + ".tif"), {&image, 1});
      save_tiff(folder / "masks" / (std::string(name) + ".tif"), {&mask, 1});
    }
    config.model = model_preset("unet-s");
    config.model.depth = 1;
    config.model.size = 4;
    config.data.source = folder.path().string();
  }

  static std::vector<float> ramp() {
    std::vector<float> values;
    for (int i = 0; i < 16; ++i) values.push_back(static_cast<float>(10 * i));
    return values;
  }
  /// Columns 0, 1, 1 and 255.
  static std::vector<float> stripes() {
    std::vector<float> values;
    for (int i = 0; i < 4; ++i) values.insert(values.end(), {0, 1, 1, 255});
    return values;
  }
  void list(const std::string& text) {
    test::put_file(folder / "list.csv", text);
    config.data.list = folder / "list.csv";
  }
  std::string refusal() const {
    try {
      load_data(config);
      return "loaded";
    } catch (const Error& error) {
      return error.what();
    }
  }

  test::TemporaryFolder folder;
  RunConfig config;
};

TEST_F(PictureOptionsTest, they_are_kept_also_with_their_defaults) {
  const auto usual = to_json(config);
  for (const auto* name :
       {"mask_pattern", "ignore_label", "class_names", "normalize", "cache_mib", "accumulate"}) {
    EXPECT_NE(usual.find(name), std::string::npos) << name << ": Python sets fields by name";
  }
  config.data.labels = "0,1";
  config.data.mask_pattern = "{name}_m";
  config.data.ignore_label = 255;
  config.data.class_names = "background,nucleus";
  config.data.normalize = segmentation::NormalizeBy::Image;
  const auto text = to_json(config);
  EXPECT_EQ(to_json(run_config_from_json(text)), text);
  EXPECT_NE(text, usual);
  config.data.class_names = "background";
  EXPECT_THROW(run_config_from_json(to_json(config)), InvalidArgument);
}

TEST_F(PictureOptionsTest, the_meaning_of_masks_is_kept) {
  config.data.palette = "0=000000,1=ff0000";
  config.data.shares = {0.75, 0.25};
  const auto read = run_config_from_json(to_json(config));
  EXPECT_EQ(read.data.palette, config.data.palette);
  EXPECT_EQ(read.data.shares, config.data.shares);
  EXPECT_EQ(read.data.normalization().channels, segmentation::NormalizeChannels::Each);
}

TEST_F(PictureOptionsTest, ignored_pixels_weigh_nothing_in_training) {
  config.data.ignore_label = 255;
  EXPECT_TRUE(training_options(config).weighted);
  const auto data = load_data(config);
  const auto& sample = data.train.samples.at(0);
  EXPECT_EQ(sample.labels[3], segmentation::kIgnored);
  ASSERT_EQ(sample.weights.size(), 16u);
  EXPECT_EQ(sample.weights[3], 0);
  EXPECT_GT(sample.weights[0], 1);
  segmentation::Batcher(data.train, data.normalization, batcher_options(config)).draw(0, 1);
}

TEST_F(PictureOptionsTest, a_class_that_nothing_teaches_is_named) {
  config.data.ignore_label = 255;
  config.data.labels = "0,1";
  EXPECT_EQ(load_data(config).train.note, "");
  config.data.ignore_label = -1;
  config.data.labels = "0,1,9,255";
  config.data.class_names = "rest,cell,wall,edge";
  config.model.classes = 4;
  EXPECT_THAT(load_data(config).train.note,
              HasSubstr("no image to train on has a pixel of class 2 (wall); "));
  // An image that validates teaches nothing.
  const Picture mask = {{4, 4, 1, 8, false}, std::vector<float>(16, 9)};
  save_tiff(folder / "masks/b.tif", {&mask, 1});
  list("id,split\na,train\nb,validation\n");
  EXPECT_THAT(load_data(config).train.note, HasSubstr("class 2 (wall)"));
  list("id,split\nb,train\na,validation\n");
  EXPECT_THAT(load_data(config).train.note, HasSubstr("class 0 (rest), 1 (cell), 3 (edge)"));
}

TEST_F(PictureOptionsTest, a_value_is_a_class_or_ignored) {
  config.data.ignore_label = 255;
  config.data.labels = "0,255";
  EXPECT_THROW(validate(config), InvalidArgument);
  config.data.labels = "0,1";
  EXPECT_NO_THROW(validate(config));
  config.data.labels = "above-half";
  EXPECT_NO_THROW(validate(config));
}

TEST_F(PictureOptionsTest, images_are_normalised_each_by_itself_when_asked_for) {
  config.data.ignore_label = 255;
  EXPECT_NEAR(load_data(config).normalization.mean[0], 75.0 / 255, 1e-6);
  config.data.normalize = segmentation::NormalizeBy::Image;
  const auto data = load_data(config);
  EXPECT_EQ(data.normalization.mean[0], 0);
  EXPECT_EQ(data.normalization.deviation[0], 1);
  for (const auto* part : {&data.train, &data.validation}) {
    for (const auto& sample : part->samples) EXPECT_NEAR(sample.image[0], -1.627, 1e-3);
  }
}

TEST_F(PictureOptionsTest, splits_that_a_list_has_not_are_named_with_those_it_has) {
  config.data.ignore_label = 255;
  list("image, set\na.tif, train\nb.tif, val\n");
  EXPECT_THAT(refusal(), HasSubstr("no split \"validation\", but one \"val\""));
  config.data.validation_split = "val";
  EXPECT_EQ(load_data(config).validation.samples.at(0).name, "b");
  config.data.train_split = "fit";
  EXPECT_THAT(refusal(), HasSubstr("train, val"));
}

TEST_F(PictureOptionsTest, labels_that_are_not_given_stay_to_be_derived_from_the_masks) {
  config.data.labels = "";
  EXPECT_EQ(run_config_from_json(to_json(config)).data.labels, "");
}

}  // namespace
}  // namespace triptych::training::picture_options_tests
