// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/rand_metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "experiments/training/data/components.h"

namespace triptych::segmentation {
namespace {

/// Pixels of each pair of a predicted and a true region. Those that the prediction leaves to the
/// boundary are counted apart.
struct Contingency {
  std::map<std::pair<std::int32_t, std::int32_t>, double> both;
  std::map<std::int32_t, double> predicted, target;
  double alone = 0, all = 0;
};

Contingency count(std::span<const std::int32_t> predicted, std::span<const std::int32_t> target) {
  Contingency pixels;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == 0) continue;
    ++pixels.all;
    ++pixels.target[target[i]];
    if (predicted[i] == 0) {
      ++pixels.alone;
    } else {
      ++pixels.both[{predicted[i], target[i]}];
      ++pixels.predicted[predicted[i]];
    }
  }
  return pixels;
}

/// Sum of term(share) over the shares of `all`, with `alone` single pixels among them.
template <class Counts, class Term>
double sum_of(const Counts& counts, double alone, double all, const Term& term) {
  double sum = alone > 0 ? alone * term(1 / all) : 0;
  for (const auto& [key, pixels] : counts) sum += term(pixels / all);
  return sum;
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 1; }

}  // namespace

std::optional<RegionScores> region_scores(std::span<const std::int32_t> predicted,
                                          std::span<const std::int32_t> target) {
  if (predicted.size() != target.size()) {
    throw_invalid("region scores", fmt::format("{} pixels predicted, the target has {}",
                                               predicted.size(), target.size()));
  }
  const auto pixels = count(predicted, target);
  if (pixels.all == 0) return std::nullopt;
  const auto sums = [&](const auto& term) {
    return std::array{sum_of(pixels.both, pixels.alone, pixels.all, term),
                      sum_of(pixels.predicted, pixels.alone, pixels.all, term),
                      sum_of(pixels.target, 0, pixels.all, term)};
  };
  const auto [p2, s2, t2] = sums([](double share) { return share * share; });
  const auto [h_both, h_s, h_t] = sums([](double share) { return -share * std::log(share); });
  const auto information = std::max(0.0, h_s + h_t - h_both);
  return RegionScores{.rand_split = p2 / t2,
                      .rand_merge = p2 / s2,
                      .rand = 2 * p2 / (s2 + t2),
                      .info_split = ratio(information, h_s),
                      .info_merge = ratio(information, h_t),
                      .info = ratio(2 * information, h_s + h_t)};
}

std::vector<std::int32_t> predicted_regions(std::span<const std::uint8_t> is_region, Size size) {
  const auto reverse = [](std::vector<std::uint8_t> set) {
    std::ranges::transform(set, set.begin(), [](auto in) { return in == 0; });
    return set;
  };
  const auto boundary = thinned(reverse({is_region.begin(), is_region.end()}), size);
  return connected_components(reverse(boundary), size).labels;
}

std::optional<RegionScores> RegionScorer::add(std::span<const std::uint8_t> predicted,
                                              std::span<const float> probability,
                                              std::span<const std::uint8_t> target, Size size) {
  if (predicted.size() != target.size() || probability.size() != target.size()) {
    throw_invalid("region scores", "pictures of different sizes");
  }
  std::vector<std::uint8_t> regions(target.size());
  const auto select = [&](const auto& values, const auto& in) {
    std::ranges::transform(values, regions.begin(), in);
    return std::span<const std::uint8_t>(regions);
  };
  const auto is_region = [&](std::uint8_t label) { return label == region_class_; };
  const auto truth = connected_components(select(target, is_region), size).labels;
  const auto scores = region_scores(predicted_regions(select(predicted, is_region), size), truth);
  if (!scores) return scores;
  ++images_;
  sum_.rand_split += scores->rand_split;
  sum_.rand_merge += scores->rand_merge;
  sum_.rand += scores->rand;
  sum_.info_split += scores->info_split;
  sum_.info_merge += scores->info_merge;
  sum_.info += scores->info;
  for (std::size_t i = 0; i < kThresholds; ++i) {
    const auto threshold = static_cast<float>(i + 1) / 10;
    const auto above = select(probability, [&](float p) { return p > threshold; });
    const auto at = region_scores(predicted_regions(above, size), truth);
    by_threshold_[i].rand += at->rand;
    by_threshold_[i].info += at->info;
  }
  return scores;
}

RegionScores RegionScorer::mean() const {
  const auto n = static_cast<double>(std::max<std::int64_t>(images_, 1));
  return {sum_.rand_split / n, sum_.rand_merge / n, sum_.rand / n,
          sum_.info_split / n, sum_.info_merge / n, sum_.info / n};
}

RegionScorer::Best RegionScorer::best() const {
  const auto n = static_cast<double>(std::max<std::int64_t>(images_, 1));
  const auto rand = std::ranges::max_element(by_threshold_, {}, &Sums::rand);
  const auto info = std::ranges::max_element(by_threshold_, {}, &Sums::info);
  const auto threshold = [&](auto at) {
    return static_cast<double>(at - by_threshold_.begin() + 1) / 10;
  };
  return {rand->rand / n, threshold(rand), info->info / n, threshold(info)};
}

}  // namespace triptych::segmentation
