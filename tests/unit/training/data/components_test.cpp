// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/components.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/base/error.h"
#include "tests/unit/training/data/pictures.h"

namespace triptych::segmentation {
namespace {

using ::testing::ElementsAre;

std::vector<std::int32_t> numbers(std::string_view rows) {
  const auto pixels = drawn(rows);
  return {pixels.begin(), pixels.end()};
}

TEST(ConnectedComponents, are_numbered_row_by_row) {
  const auto set = drawn("#.#\n#.#\n..#\n#..");
  EXPECT_EQ(connected_components(set, {4, 3}).labels, numbers("1.2\n1.2\n..2\n3.."));
  EXPECT_EQ(connected_components(set, {4, 3}).count, 3);
  const auto diagonal = drawn("#..\n.#.\n..#");
  EXPECT_EQ(connected_components(diagonal, {3, 3}).count, 3);
  EXPECT_EQ(connected_components(diagonal, {3, 3}, Neighbours::Eight).count, 1);
  EXPECT_EQ(connected_components(drawn("..."), {1, 3}).count, 0);
  EXPECT_THROW(connected_components(drawn("..."), {2, 3}), InvalidArgument);
}

TEST(Watershed, parts_what_touches_along_the_least_probable_line) {
  const std::vector<float> probability = {0.6F, 0.95F, 0.7F, 0.55F, 0.8F, 0.99F, 0.6F};
  const auto set = drawn("#######");
  EXPECT_EQ(watershed(probability, set, {1, 7}, 0.9F).labels, numbers("1112222"))
      << "0.8 was taken before 0.7, and reached 0.55 first";
  EXPECT_EQ(watershed(probability, set, {1, 7}, 0.5F).count, 1) << "all is one seed";
}

TEST(Watershed, keeps_parts_without_a_seed_and_numbers_by_first_pixels) {
  const std::vector<float> probability = {0.6F, 0.6F, 0.1F, 0.7F, 0.95F};
  const auto found = watershed(probability, drawn("##.##"), {1, 5}, 0.9F);
  EXPECT_EQ(found.labels, numbers("11.22"));
  EXPECT_EQ(found.count, 2);
}

TEST(Watershed, covers_the_set_and_nothing_else) {
  const Size size = {20, 30};
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto levels = random_picture(size, seed, 100, 2);
    std::vector<float> probability;
    std::vector<std::uint8_t> set;
    for (const auto level : levels) {
      probability.push_back(static_cast<float>(level) / 100);
      set.push_back(level > 40);
    }
    const auto found = watershed(probability, set, size, 0.8F);
    for (std::size_t i = 0; i < set.size(); ++i) EXPECT_EQ(found.labels[i] != 0, set[i] != 0);
    EXPECT_EQ(std::ranges::max(found.labels), found.count);
    EXPECT_GE(found.count, connected_components(set, size).count);
  }
}

TEST(Thinned, a_thick_line_becomes_its_middle_and_goes_on_to_the_border) {
  EXPECT_EQ(thinned(drawn(".....\n#####\n#####\n#####\n....."), {5, 5}),
            drawn(".....\n.....\n#####\n.....\n....."));
  const auto thin = drawn("..#..\n..#..\n.#...\n.#...\n.#...");
  EXPECT_EQ(thinned(thin, {5, 5}), thin) << "it reaches the border";
  EXPECT_EQ(thinned(drawn("...."), {2, 2}), drawn("...."));
}

TEST(Thinned, lines_part_the_same_regions_as_before) {
  const Size size = {40, 40};
  const auto reverse = [](std::vector<std::uint8_t> set) {
    std::ranges::transform(set, set.begin(), [](auto in) { return in == 0; });
    return set;
  };
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto set = random_picture(size, seed, 2, 1 + static_cast<std::int64_t>(seed % 4));
    const auto lines = thinned(set, size);
    for (std::size_t i = 0; i < set.size(); ++i) EXPECT_LE(lines[i], set[i]);
    EXPECT_EQ(connected_components(reverse(lines), size).count,
              connected_components(reverse(set), size).count)
        << seed;
    EXPECT_EQ(thinned(lines, size), lines) << seed;
  }
}

}  // namespace
}  // namespace triptych::segmentation
