// Data sets larger than the memory that they may have: the same samples, never more than the limit,
// and files that change or go.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/sample_cache.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "core/io/picture.h"
#include "experiments/training/data/batcher.h"
#include "experiments/training/data/pixel_weights.h"
#include "tests/unit/io/test_files.h"
#include "tests/unit/training/data/pictures.h"

namespace triptych::segmentation::sample_cache_tests {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kImages = 5, kSide = 8;
constexpr std::int64_t kBytes = kSide * kSide * 9;  ///< of an image with labels and weights
constexpr std::int64_t kLimit = 2 * kBytes;

class SampleCacheTest : public ::testing::Test {
 protected:
  SampleCacheTest() {
    for (const auto* name : {"images", "masks"}) std::filesystem::create_directory(folder / name);
    for (std::int64_t i = 0; i < kImages; ++i) {
      put(file("images", i), 200, static_cast<std::uint64_t>(i));
      put(file("masks", i), 2, static_cast<std::uint64_t>(i));
    }
  }

  std::filesystem::path file(const std::string& kind, std::int64_t i) const {
    return folder / kind / (std::to_string(i) + ".tif");
  }
  static void put(const std::filesystem::path& path, std::int64_t values, std::uint64_t seed) {
    const auto pixels = random_picture({kSide, kSide}, seed, values);
    const Picture picture = {{kSide, kSide, 1, 8, false}, {pixels.begin(), pixels.end()}};
    save_tiff(path, {&picture, 1});
  }
  Dataset load(std::int64_t cache_bytes) const {
    DatasetOptions options;
    options.images = folder / "images";
    options.masks = folder / "masks";
    options.cache_bytes = cache_bytes;
    return load_dataset(options);
  }
  static std::string refusal(const Dataset& dataset, std::size_t i) {
    try {
      dataset.whole(i);
      return "read";
    } catch (const IoError& error) {
      return error.what();
    }
  }

  test::TemporaryFolder folder;
};

void expect_same(const Dataset& a, const Dataset& b) {
  ASSERT_EQ(a.samples.size(), b.samples.size());
  for (std::size_t i = 0; i < a.samples.size(); ++i) {
    const auto one = a.whole(i), other = b.whole(i);
    EXPECT_EQ(one->name, other->name);
    EXPECT_EQ(one->image, other->image);
    EXPECT_EQ(one->labels, other->labels);
    EXPECT_EQ(one->weights, other->weights);
  }
}

TEST_F(SampleCacheTest, a_set_above_the_limit_is_the_one_in_memory) {
  auto held = load(0), read = load(kLimit);
  ASSERT_EQ(held.cache, nullptr);
  ASSERT_NE(read.cache, nullptr);
  EXPECT_THAT(read.note, HasSubstr("read when they are drawn"));
  EXPECT_TRUE(read.samples[0].image.empty());
  EXPECT_EQ(read.labelling, held.labelling);
  const auto held_part = take_fraction(held, 0.4, 3), read_part = take_fraction(read, 0.4, 3);
  const auto normalization = normalization_of(held);
  EXPECT_EQ(normalization_of(read).mean, normalization.mean);
  EXPECT_EQ(normalization_of(read).deviation, normalization.deviation);
  for (auto* dataset : {&held, &read})
    set_pixel_weights(*dataset, {.classes = std::string(kBalanced), .border = 3});
  expect_same(held, read);
  expect_same(held_part, read_part);
  EXPECT_TRUE(read_part.whole(0)->weights.empty());
  const BatcherOptions options = {.augment = {.height = 8, .width = 8}};
  const auto one = Batcher(held, normalization, options).draw(0, 6);
  const auto other = Batcher(read, normalization, options).draw(0, 6);
  EXPECT_TRUE(std::ranges::equal(one.x.bytes(), other.x.bytes()));
  EXPECT_TRUE(std::ranges::equal(one.y.bytes(), other.y.bytes()));
}

TEST_F(SampleCacheTest, what_is_held_stays_within_the_limit_and_is_not_read_twice) {
  const auto dataset = load(kLimit);
  auto& cache = *dataset.cache;
  for (const std::size_t i : {0, 1, 0, 4, 3, 4, 2, 1, 0}) {
    dataset.whole(i);
    const auto reads = cache.reads();
    dataset.whole(i);
    EXPECT_EQ(cache.reads(), reads);
    EXPECT_LE(cache.held_bytes(), kLimit);
  }
  EXPECT_LE(cache.most_bytes(), kLimit);
  EXPECT_GT(cache.held_bytes(), 0);
}

TEST_F(SampleCacheTest, weights_to_come_count) {
  DatasetOptions options;
  options.images = folder / "images";
  options.masks = folder / "masks";
  options.cache_bytes = kImages * kSide * kSide * 5;
  EXPECT_EQ(load_dataset(options).cache, nullptr);
  options.weighted = true;
  EXPECT_NE(load_dataset(options).cache, nullptr);
}

TEST_F(SampleCacheTest, a_sample_beyond_the_limit_is_read_each_time_and_never_held) {
  const auto dataset = load(kBytes - 1);
  const auto reads = dataset.cache->reads();
  dataset.whole(0);
  dataset.whole(0);
  EXPECT_EQ(dataset.cache->reads(), reads + 2);
  EXPECT_EQ(dataset.cache->most_bytes(), 0);
}

TEST_F(SampleCacheTest, a_file_that_changed_or_went_is_named) {
  const auto dataset = load(kBytes);
  dataset.whole(4);
  put(file("masks", 1), 2, 77);
  EXPECT_THAT(refusal(dataset, 1), HasSubstr("masks/1.tif\" was changed"));
  std::filesystem::remove(file("images", 2));
  EXPECT_THAT(refusal(dataset, 2), HasSubstr("images/2.tif\" was removed"));
  EXPECT_EQ(refusal(dataset, 3), "read");
}

TEST_F(SampleCacheTest, a_broken_file_is_refused_at_once) {
  test::put_file(file("images", 3), test::get_file(file("images", 3)).substr(0, 100));
  EXPECT_THROW(load(kLimit), IoError);
}

}  // namespace
}  // namespace triptych::segmentation::sample_cache_tests
