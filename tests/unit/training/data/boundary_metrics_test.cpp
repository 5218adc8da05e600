// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/boundary_metrics.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "experiments/training/data/distance_transform.h"
#include "tests/unit/training/data/pictures.h"

namespace triptych::segmentation {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

/// By looking at all pairs of pixels.
std::vector<double> squared_distances_of_pairs(const std::vector<std::uint8_t>& set, Size size) {
  std::vector<double> result(set.size(), std::numeric_limits<double>::infinity());
  for (std::int64_t i = 0; i < std::ssize(set); ++i) {
    for (std::int64_t j = 0; j < std::ssize(set); ++j) {
      if (set[static_cast<std::size_t>(j)] == 0) continue;
      const auto dy = i / size.width - j / size.width, dx = i % size.width - j % size.width;
      auto& best = result[static_cast<std::size_t>(i)];
      best = std::min(best, static_cast<double>(dy * dy + dx * dx));
    }
  }
  return result;
}

TEST(SquaredDistances, are_those_of_the_nearest_of_all_pixels) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Size size = {1 + static_cast<std::int64_t>(seed % 7) * 3,
                       1 + static_cast<std::int64_t>(seed % 5) * 4};
    auto set = random_picture(size, seed, 12);
    std::ranges::transform(set, set.begin(), [](auto value) { return value == 0; });
    EXPECT_EQ(squared_distances(set, size), squared_distances_of_pairs(set, size)) << seed;
  }
}

TEST(SquaredDistances, of_an_empty_set_are_infinite) {
  EXPECT_THAT(squared_distances(drawn("...\n..."), {2, 3}),
              Each(std::numeric_limits<double>::infinity()));
  EXPECT_THROW(squared_distances(drawn("..."), {2, 3}), InvalidArgument);
}

TEST(BoundaryOf, runs_inside_and_along_the_picture_s_border_but_not_along_ignored_pixels) {
  const Size size = {5, 5};
  EXPECT_EQ(boundary_of(drawn(".....\n.###.\n.###.\n.###.\n....."), {}, size),
            drawn(".....\n.###.\n.#.#.\n.###.\n....."));
  EXPECT_EQ(boundary_of(drawn("###..\n###..\n###..\n.....\n....."), {}, size),
            drawn("###..\n#.#..\n###..\n.....\n....."));
  const auto all = drawn(".....\n.###.\n.###.\n.###.\n.....");
  const auto ignored = drawn("....#\n....#\n....#\n....#\n....#");
  EXPECT_EQ(boundary_of(all, ignored, size), drawn(".....\n.###.\n.#...\n.###.\n....."));
}

TEST(Percentile, interpolates_between_neighbours_as_numpy_does) {
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 50), 2.5);
  EXPECT_DOUBLE_EQ(percentile({0, 10}, 95), 9.5);
  EXPECT_DOUBLE_EQ(percentile({7}, 95), 7);
  EXPECT_DOUBLE_EQ(percentile({}, 95), 0);
}

TEST(BoundaryScores, of_a_shifted_line_are_the_shift) {
  const Size size = {7, 4};
  const auto truth = drawn("....\n####\n....\n....\n....\n....\n....");
  const auto found = drawn("....\n....\n....\n....\n####\n....\n....");
  const auto scores = boundary_scores(found, truth, size, 1, 2);
  EXPECT_DOUBLE_EQ(scores->hausdorff95, 3);
  EXPECT_DOUBLE_EQ(scores->f1, 0);
  EXPECT_DOUBLE_EQ(boundary_scores(found, truth, size, 1, 3)->f1, 1) << "the tolerance is included";
  EXPECT_DOUBLE_EQ(boundary_scores(truth, truth, size, 1)->hausdorff95, 0);
  EXPECT_DOUBLE_EQ(boundary_scores(truth, truth, size, 1)->f1, 1);
}

TEST(BoundaryScores, precision_is_of_the_prediction_and_recall_of_the_truth) {
  const Size size = {1, 12};
  const auto scores = boundary_scores(drawn("#..........#"), drawn("#..........."), size, 1, 1);
  EXPECT_DOUBLE_EQ(scores->precision, 1.0 / 2);
  EXPECT_DOUBLE_EQ(scores->recall, 1);
  EXPECT_DOUBLE_EQ(scores->f1, 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores->hausdorff95, 0.95 * 11) << "of distances 0 and 11";
}

TEST(BoundaryScores, what_only_one_has_is_a_diagonal_away_and_what_none_has_is_left_out) {
  const Size size = {3, 4};
  const auto none = drawn("....\n....\n....");
  const auto scores = boundary_scores(none, drawn("#...\n....\n...."), size, 1);
  EXPECT_DOUBLE_EQ(scores->hausdorff95, 5);
  EXPECT_DOUBLE_EQ(scores->f1, 0);
  EXPECT_FALSE(boundary_scores(none, none, size, 1));
  EXPECT_FALSE(boundary_scores(drawn("#...\n....\n...."), drawn("?...\n....\n...."), size, 1))
      << "an ignored pixel is of no class";
}

/// The same scores from all pairs of boundary pixels.
BoundaryScores scores_of_pairs(const std::vector<std::uint8_t>& found,
                               const std::vector<std::uint8_t>& there, Size size,
                               double tolerance) {
  const auto one_way = [&](const auto& from, const auto& to) {
    const auto squared = squared_distances_of_pairs(to, size);
    std::vector<double> distances;
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] != 0) distances.push_back(std::sqrt(squared[i]));
    return distances;
  };
  const auto a = one_way(found, there), b = one_way(there, found);
  const auto near = [&](const auto& distances) {
    return static_cast<double>(
               std::ranges::count_if(distances, [&](double d) { return d <= tolerance; })) /
           static_cast<double>(distances.size());
  };
  BoundaryScores scores;
  scores.precision = near(a);
  scores.recall = near(b);
  scores.f1 = 2 * near(a) * near(b) / (near(a) + near(b));
  scores.hausdorff95 = std::max(percentile(a, 95), percentile(b, 95));
  return scores;
}

TEST(BoundaryScores, of_random_pictures_are_those_of_all_pairs) {
  const Size size = {24, 17};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto predicted = random_picture(size, 2 * seed, 3, 4);
    const auto target = random_picture(size, 2 * seed + 1, 3, 5);
    const auto of_class = [&](std::vector<std::uint8_t> picture) {
      std::ranges::transform(picture, picture.begin(), [](auto value) { return value == 2; });
      return boundary_of(picture, {}, size);
    };
    const auto expected = scores_of_pairs(of_class(predicted), of_class(target), size, 2);
    const auto scores = boundary_scores(predicted, target, size, 2, 2);
    ASSERT_TRUE(scores) << seed;
    EXPECT_DOUBLE_EQ(scores->precision, expected.precision);
    EXPECT_DOUBLE_EQ(scores->recall, expected.recall);
    EXPECT_DOUBLE_EQ(scores->f1, expected.f1);
    EXPECT_DOUBLE_EQ(scores->hausdorff95, expected.hausdorff95);
  }
}

TEST(BoundaryScorer, leaves_out_what_says_nothing_and_gives_classes_equal_weight) {
  BoundaryScorer scorer(4, 0);
  EXPECT_FALSE(scorer.mean());
  scorer.add(drawn("1020"), drawn("1000"), {1, 4});
  scorer.add(drawn("0010"), drawn("1000"), {1, 4});
  EXPECT_EQ(scorer.of_class(1).images, 2);
  EXPECT_DOUBLE_EQ(scorer.of_class(1).f1, 0.5);
  EXPECT_DOUBLE_EQ(scorer.of_class(1).hausdorff95, 1);
  EXPECT_EQ(scorer.of_class(2).images, 1);
  EXPECT_EQ(scorer.of_class(3).images, 0);
  EXPECT_DOUBLE_EQ(scorer.mean()->f1, 0.25) << "of classes 1 and 2";
}

TEST(BoundaryScores, refuses_sizes_that_differ) {
  EXPECT_THROW(boundary_scores(drawn("#"), drawn("##"), {1, 2}, 1), InvalidArgument);
}

}  // namespace
}  // namespace triptych::segmentation
