// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/rand_metrics.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/unit/training/data/pictures.h"

namespace triptych::segmentation {
namespace {

using Regions = std::vector<std::int32_t>;

TEST(RegionScores, equal_regions_score_one_whatever_their_numbers) {
  const auto scores = region_scores(Regions{7, 7, 3, 3}, Regions{1, 1, 2, 2});
  EXPECT_DOUBLE_EQ(scores->rand, 1);
  EXPECT_DOUBLE_EQ(scores->info, 1);
}

TEST(RegionScores, a_merge_and_a_split_have_the_scores_of_the_formulas) {
  // p = 1/2, 1/2, s = 1, t = 1/2, 1/2.
  const auto merged = region_scores(Regions{1, 1, 1, 1}, Regions{1, 1, 2, 2});
  EXPECT_DOUBLE_EQ(merged->rand_split, 1);
  EXPECT_DOUBLE_EQ(merged->rand_merge, 0.5);
  EXPECT_DOUBLE_EQ(merged->rand, 0.5 / 0.75);
  EXPECT_DOUBLE_EQ(merged->info_split, 1) << "nothing was split";
  EXPECT_DOUBLE_EQ(merged->info_merge, 0);
  EXPECT_DOUBLE_EQ(merged->info, 0);
  const auto split = region_scores(Regions{1, 1, 2, 2}, Regions{1, 1, 1, 1});
  EXPECT_DOUBLE_EQ(split->rand_split, 0.5);
  EXPECT_DOUBLE_EQ(split->rand_merge, 1);
  EXPECT_DOUBLE_EQ(split->info_merge, 1);
  // Shares 1/2, 1/4, 1/4 of pairs, s = 1/2, 1/2, t = 3/4, 1/4. H(S) = log 2, H(S, T) = 1.5 log 2.
  const auto mixed = region_scores(Regions{1, 1, 2, 2}, Regions{1, 1, 1, 2});
  EXPECT_DOUBLE_EQ(mixed->rand, 0.375 / (0.25 + 0.3125));
  const auto h_t = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));
  const auto information = h_t - 0.5 * std::log(2);
  EXPECT_NEAR(mixed->info_split, information / std::log(2), 1e-12);
  EXPECT_NEAR(mixed->info, 2 * information / (std::log(2) + h_t), 1e-12);
}

TEST(RegionScores, only_true_regions_count_and_boundary_pixels_in_them_are_alone) {
  // Two of the four pixels of truth are in one region and two on the predicted boundary.
  const auto scores = region_scores(Regions{1, 1, 0, 0, 1, 0}, Regions{1, 1, 1, 1, 0, 0});
  EXPECT_DOUBLE_EQ(scores->rand_split, 0.25 + 2.0 / 16);
  EXPECT_DOUBLE_EQ(scores->rand_merge, 1);
  EXPECT_FALSE(region_scores(Regions{1, 1}, Regions{0, 0}));
  EXPECT_THROW(region_scores(Regions{1}, Regions{1, 1}), InvalidArgument);
}

/// By looking at all pairs of pixels: "same" with itself, too.
double rand_of_pairs(const Regions& predicted, const Regions& target) {
  double both = 0, found = 0, there = 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    for (std::size_t j = 0; j < target.size(); ++j) {
      if (target[i] == 0 || target[j] == 0) continue;
      const bool same_s = i == j || (predicted[i] != 0 && predicted[i] == predicted[j]);
      const bool same_t = target[i] == target[j];
      both += same_s && same_t;
      found += same_s;
      there += same_t;
    }
  }
  return both / (found / 2 + there / 2);
}

/// By the conditional entropies, of each pixel alone.
double info_of_pixels(const Regions& predicted, const Regions& target) {
  const auto entropy = [&](const auto& same) {
    double sum = 0, all = 0;
    for (std::size_t i = 0; i < target.size(); ++i) {
      if (target[i] == 0) continue;
      double like = 0, n = 0;
      for (std::size_t j = 0; j < target.size(); ++j) {
        if (target[j] == 0) continue;
        ++n;
        like += same(i, j);
      }
      sum -= std::log(like / n);
      ++all;
    }
    return sum / all;
  };
  const auto same_s = [&](std::size_t i, std::size_t j) {
    return i == j || (predicted[i] != 0 && predicted[i] == predicted[j]);
  };
  const auto same_t = [&](std::size_t i, std::size_t j) { return target[i] == target[j]; };
  const auto h_s = entropy(same_s), h_t = entropy(same_t);
  const auto h_st = entropy([&](auto i, auto j) { return same_s(i, j) && same_t(i, j); });
  return 2 * (h_s + h_t - h_st) / (h_s + h_t);
}

TEST(RegionScores, of_random_regions_are_those_of_all_pairs_of_pixels) {
  const Size size = {12, 10};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto s = random_picture(size, 2 * seed, 5, 2),
               t = random_picture(size, 2 * seed + 1, 4, 3);
    const Regions predicted(s.begin(), s.end()), target(t.begin(), t.end());
    const auto scores = region_scores(predicted, target);
    EXPECT_NEAR(scores->rand, rand_of_pairs(predicted, target), 1e-12) << seed;
    EXPECT_NEAR(scores->info, info_of_pixels(predicted, target), 1e-12) << seed;
  }
}

TEST(RegionScorer, thins_the_predicted_boundary_and_finds_the_best_threshold) {
  const Size size = {5, 9};
  // Class 0 are the cells. The true membrane is one column wide, the predicted one three.
  const auto truth = drawn("....#....\n....#....\n....#....\n....#....\n....#....");
  const auto found = drawn("...###...\n...###...\n...###...\n...###...\n...###...");
  std::vector<float> probability;  // of a cell: a hole in the membrane below 0.35
  for (std::size_t i = 0; i < truth.size(); ++i)
    probability.push_back(truth[i] == 0 ? 0.9F : i == 22 ? 0.35F : 0.05F);
  RegionScorer scorer(0);
  const auto scores = scorer.add(found, probability, truth, size);
  EXPECT_DOUBLE_EQ(scores->rand, 1) << "thinned, the membrane is where the true one is";
  const auto best = scorer.best();
  EXPECT_DOUBLE_EQ(best.rand, 1);
  EXPECT_DOUBLE_EQ(best.rand_threshold, 0.4) << "the first without the hole";
  EXPECT_DOUBLE_EQ(best.info, 1);
  EXPECT_FALSE(scorer.add(found, probability, std::vector<std::uint8_t>(45, kIgnored), size));
  EXPECT_EQ(scorer.images(), 1);
  EXPECT_DOUBLE_EQ(scorer.mean().rand, 1);
  const auto merged = scorer.add(std::vector<std::uint8_t>(45), probability, truth, size);
  EXPECT_DOUBLE_EQ(merged->rand_merge, 0.5);
  EXPECT_DOUBLE_EQ(scorer.mean().rand, (1 + 2.0 / 3) / 2);
}

}  // namespace
}  // namespace triptych::segmentation
