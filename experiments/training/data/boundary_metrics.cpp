// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/boundary_metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "experiments/training/data/dataset.h"
#include "experiments/training/data/distance_transform.h"

namespace triptych::segmentation {
namespace {

/// Distances from each pixel of `from` to the nearest of `to`, which is not empty.
std::vector<double> directed_distances(std::span<const std::uint8_t> from,
                                       std::span<const std::uint8_t> to, Size size) {
  const auto squared = squared_distances(to, size);
  std::vector<double> distances;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != 0) distances.push_back(std::sqrt(squared[i]));
  return distances;
}

double share_within(const std::vector<double>& distances, double tolerance) {
  const auto near = std::ranges::count_if(distances, [&](double d) { return d <= tolerance; });
  return static_cast<double>(near) / static_cast<double>(distances.size());
}

}  // namespace

std::vector<std::uint8_t> boundary_of(std::span<const std::uint8_t> set,
                                      std::span<const std::uint8_t> ignored, Size size) {
  std::vector<std::uint8_t> boundary(set.size());
  const auto ends_at = [&](std::int64_t y, std::int64_t x) {
    if (y < 0 || x < 0 || y >= size.height || x >= size.width) return true;
    const auto i = static_cast<std::size_t>(y * size.width + x);
    return set[i] == 0 && (ignored.empty() || ignored[i] == 0);
  };
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      const auto i = static_cast<std::size_t>(y * size.width + x);
      boundary[i] = set[i] != 0 && (ends_at(y - 1, x) || ends_at(y + 1, x) || ends_at(y, x - 1) ||
                                    ends_at(y, x + 1));
    }
  }
  return boundary;
}

double percentile(std::vector<double> values, double percent) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto place = percent / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (place - static_cast<double>(below));
}

std::optional<BoundaryScores> boundary_scores(std::span<const std::uint8_t> predicted,
                                              std::span<const std::uint8_t> target, Size size,
                                              std::uint8_t label, double tolerance) {
  if (predicted.size() != target.size() || std::ssize(target) != size.pixels()) {
    throw_invalid("boundary scores",
                  fmt::format("{} pixels predicted and {} true are not {} x {}", predicted.size(),
                              target.size(), size.height, size.width));
  }
  std::vector<std::uint8_t> ignored(target.size()), found(target.size()), there(target.size());
  for (std::size_t i = 0; i < target.size(); ++i) {
    ignored[i] = target[i] == kIgnored;
    found[i] = predicted[i] == label && ignored[i] == 0;
    there[i] = target[i] == label && ignored[i] == 0;
  }
  found = boundary_of(found, ignored, size);
  there = boundary_of(there, ignored, size);
  const bool any_found = std::ranges::count(found, 1) > 0;
  const bool any_there = std::ranges::count(there, 1) > 0;
  if (!any_found && !any_there) return std::nullopt;
  BoundaryScores scores;
  if (any_found != any_there) {
    scores.hausdorff95 =
        std::hypot(static_cast<double>(size.height), static_cast<double>(size.width));
    return scores;
  }
  const auto to_truth = directed_distances(found, there, size);
  const auto to_found = directed_distances(there, found, size);
  scores.precision = share_within(to_truth, tolerance);
  scores.recall = share_within(to_found, tolerance);
  const auto sum = scores.precision + scores.recall;
  scores.f1 = sum > 0 ? 2 * scores.precision * scores.recall / sum : 0;
  scores.hausdorff95 = std::max(percentile(to_truth, 95), percentile(to_found, 95));
  return scores;
}

void BoundaryScorer::add(std::span<const std::uint8_t> predicted,
                         std::span<const std::uint8_t> target, Size size) {
  for (std::int64_t label = 1; label <= std::ssize(sums_); ++label) {
    const auto scores =
        boundary_scores(predicted, target, size, static_cast<std::uint8_t>(label), tolerance_);
    if (scores) add(label, *scores);
  }
}

void BoundaryScorer::add(std::int64_t label, const BoundaryScores& scores) {
  auto& sum = sums_.at(static_cast<std::size_t>(label - 1));
  ++sum.images;
  sum.f1 += scores.f1;
  sum.hausdorff95 += scores.hausdorff95;
}

BoundaryScorer::Means BoundaryScorer::of_class(std::int64_t label) const {
  const auto& sum = sums_.at(static_cast<std::size_t>(label - 1));
  const auto n = static_cast<double>(std::max<std::int64_t>(sum.images, 1));
  return {{sum.f1 / n, sum.hausdorff95 / n}, sum.images};
}

std::optional<BoundaryScorer::Means> BoundaryScorer::mean() const {
  Means mean;
  double classes = 0;
  for (std::int64_t label = 1; label <= std::ssize(sums_); ++label) {
    const auto one = of_class(label);
    if (one.images == 0) continue;
    ++classes;
    mean.images = std::max(mean.images, one.images);
    mean.f1 += one.f1;
    mean.hausdorff95 += one.hausdorff95;
  }
  if (classes == 0) return std::nullopt;
  return Means{{mean.f1 / classes, mean.hausdorff95 / classes}, mean.images};
}

}  // namespace triptych::segmentation
