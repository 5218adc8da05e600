// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/class_folders.h"

#include <gmock/gmock.h>

#include <numeric>

#include "core/base/error.h"
#include "core/io/image.h"
#include "experiments/training/data/batcher.h"
#include "tests/unit/io/test_files.h"

namespace triptych::segmentation {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ClassFolders : public ::testing::Test {
 protected:
  /// A picture with `value` in all pixels.
  void put(const std::string& name, std::uint8_t value, std::int64_t width = 8,
           std::int64_t height = 8) {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    Image image;
    image.width = width;
    image.height = height;
    image.channels = 1;
    image.samples.assign(static_cast<std::size_t>(width * height), value);
    test::put_file(path, encode_png(image));
  }
  Dataset load(const std::string& labels = "", std::int64_t classes = 2,
               std::int64_t cache_bytes = 0) const {
    return load_class_folders(
        {.images = folder_.path(),
         .classes = classes,
         .labels = labels,
         .cache_bytes = cache_bytes},
        4, classes == 1 ? TensorSpec{DType::F32, {1, 1}} : TensorSpec{DType::I64, {1}});
  }

  test::TemporaryFolder folder_;
};

std::vector<std::int64_t> classes_of(const Dataset& dataset) {
  const auto values = dataset.arrays->target.as<std::int64_t>();
  return {values.begin(), values.end()};
}

TEST_F(ClassFolders, number_the_classes_by_the_order_of_their_names) {
  put("dog/a.png", 10);
  put("cat/z.png", 20);
  put("cat/a.png", 30);
  put(".hidden/a.png", 0);
  const auto dataset = load();
  EXPECT_EQ(dataset.labels, "cat,dog");
  EXPECT_EQ(dataset.labelling, "cat is class 0 (2 images), dog is class 1 (1 image)");
  ASSERT_EQ(dataset.samples.size(), 3U);
  EXPECT_EQ(dataset.samples[0].name, "cat/a");
  EXPECT_EQ(dataset.samples[2].name, "dog/a");
  EXPECT_THAT(classes_of(dataset), ElementsAre(0, 0, 1));
  EXPECT_THAT(dataset.samples[1].image, Each(FloatNear(20.0F / 255, 1e-6F)));
}

TEST_F(ClassFolders, keep_the_numbers_of_a_trained_model) {
  put("dog/a.png", 10);
  EXPECT_THAT(classes_of(load("cat,dog,owl", 3)), ElementsAre(1));
  EXPECT_THAT([&] { load("cat,owl"); },
              ThrowsMessage<IoError>(HasSubstr("dog\" is no class of the model")));
}

TEST_F(ClassFolders, of_another_number_than_the_network_has_are_refused) {
  put("dog/a.png", 10);
  EXPECT_THAT([&] { load(); }, ThrowsMessage<IoError>(HasSubstr("1 folders (dog)")));
  put("a,b/a.png", 10);
  EXPECT_THAT([&] { load(); }, ThrowsMessage<IoError>(HasSubstr("no comma")));
}

TEST_F(ClassFolders, of_one_output_are_zero_and_one) {
  put("no/a.png", 10);
  put("yes/a.png", 10);
  const auto dataset = load("", 1);
  EXPECT_EQ(dataset.arrays->target.spec(), (TensorSpec{DType::F32, {2, 1}}));
  EXPECT_THAT(dataset.arrays->target.as<float>(), ElementsAre(0, 1));
}

TEST_F(ClassFolders, give_the_same_batches_from_memory_and_from_files) {
  for (int i = 0; i < 6; ++i)
    put((i % 2 == 0 ? "cat/" : "dog/") + std::to_string(i) + ".png",
        static_cast<std::uint8_t>(40 * i), 8 + i, 9);
  const auto held = load(), read = load("", 2, 200);
  EXPECT_TRUE(read.cache);
  const BatcherOptions options = {.augment = {.height = 4, .width = 4}, .seed = 5};
  const auto one = Batcher(held, {{0.5F}, {2}}, options).draw(2, 5);
  const auto other = Batcher(read, {{0.5F}, {2}}, options).draw(2, 5);
  EXPECT_EQ(one.x.spec(), (TensorSpec{DType::F32, {5, 1, 4, 4}}));
  EXPECT_TRUE(std::ranges::equal(one.x.bytes(), other.x.bytes()));
  EXPECT_TRUE(std::ranges::equal(one.y.bytes(), other.y.bytes()));
  const Batcher batcher(held, {{0.5F}, {2}}, options);
  for (std::int64_t b = 0; b < 5; ++b) {
    const auto i = batcher.element(2 + b);
    EXPECT_EQ(one.y.as<std::int64_t>()[static_cast<std::size_t>(b)], classes_of(held)[i]);
  }
}

TEST(Scaled, halves_by_weighted_means_and_keeps_the_sides_proportion) {
  Sample ramp{"ramp", "", 1, 4, 8, {}, {}};
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 8; ++x) ramp.image.push_back(static_cast<float>(x));
  const auto half = scaled(ramp, 2);
  EXPECT_EQ(half.height, 2);
  EXPECT_EQ(half.width, 4);
  // A triangle over four pixels, cut at the border: (3 x 0 + 3 x 1 + 1 x 2) / 7.
  EXPECT_THAT(std::span(half.image).first(4),
              ElementsAre(FloatNear(5.0F / 7, 1e-6F), FloatNear(2.5F, 1e-6F),
                          FloatNear(4.5F, 1e-6F), FloatNear(7 - 5.0F / 7, 1e-6F)));
  EXPECT_EQ(scaled(ramp, 4).image, ramp.image);
  const auto twice = scaled(ramp, 8);
  EXPECT_EQ(twice.width, 16);
  EXPECT_THAT(twice.image[3], FloatNear(1.25F, 1e-6F));
}

TEST(Rows, of_arrays_go_together) {
  Dataset dataset;
  Arrays arrays;
  std::vector<std::int64_t> ids(12), targets(6);
  std::iota(ids.begin(), ids.end(), 0);
  std::iota(targets.begin(), targets.end(), 100);
  arrays.inputs.emplace_back(Shape{6, 2}, ids);
  arrays.inputs.emplace_back(Shape{6}, targets);
  arrays.target = Tensor(Shape{6}, targets);
  dataset.arrays = std::make_shared<const Arrays>(std::move(arrays));
  for (std::size_t i = 0; i < 6; ++i) {
    auto& sample = dataset.samples.emplace_back();
    sample.name = std::to_string(i);
    sample.place = i;
  }
  auto validation = take_fraction(dataset, 0.5, 1);
  ASSERT_EQ(validation.samples.size(), 3U);
  for (const auto* part : {&dataset, &validation}) {
    const auto batch = Batcher(*part, {}, {}).draw(1, 7);
    ASSERT_EQ(batch.others.size(), 1U);
    for (std::size_t b = 0; b < 7; ++b) {
      const auto row = batch.y.as<std::int64_t>()[b] - 100;
      EXPECT_EQ(batch.x.as<std::int64_t>()[2 * b], 2 * row);
      EXPECT_EQ(batch.others[0].as<std::int64_t>()[b], 100 + row);
    }
    EXPECT_EQ(batch_of(*part, 2, {}, 1).y.as<std::int64_t>()[0],
              100 + static_cast<std::int64_t>(part->samples[2].place));
  }
}

}  // namespace
}  // namespace triptych::segmentation
