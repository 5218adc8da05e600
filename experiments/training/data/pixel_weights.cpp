// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/pixel_weights.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/range.h"
#include "core/base/wide_math.h"
#include "experiments/training/data/components.h"
#include "experiments/training/data/distance_transform.h"

namespace triptych::segmentation {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

/// Rectangle of an image.
struct Box {
  Range rows, columns;

  Size size() const { return {rows.size(), columns.size()}; }
};

/// The boxes of the objects, each `margin` wider on every side.
std::vector<Box> boxes_of(const Components& objects, Size size, std::int64_t margin) {
  std::vector<Box> boxes(static_cast<std::size_t>(objects.count),
                         {{size.height, 0}, {size.width, 0}});
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      const auto object = objects.labels[static_cast<std::size_t>(y * size.width + x)];
      if (object == 0) continue;
      auto& box = boxes[static_cast<std::size_t>(object - 1)];
      box.rows = {std::min(box.rows.begin, y), std::max(box.rows.end, y + 1)};
      box.columns = {std::min(box.columns.begin, x), std::max(box.columns.end, x + 1)};
    }
  }
  for (auto& box : boxes) {
    box.rows = {std::max<std::int64_t>(0, box.rows.begin - margin),
                std::min(size.height, box.rows.end + margin)};
    box.columns = {std::max<std::int64_t>(0, box.columns.begin - margin),
                   std::min(size.width, box.columns.end + margin)};
  }
  return boxes;
}

/// Squared distances of each pixel to the nearest two objects, as far as `reach`.
std::vector<std::array<double, 2>> nearest_two(const Components& objects, Size size,
                                               std::int64_t reach) {
  std::vector<std::array<double, 2>> nearest(objects.labels.size(), {kFar, kFar});
  const auto boxes = boxes_of(objects, size, reach);
  std::vector<std::uint8_t> inside;
  for (std::int32_t object = 1; object <= objects.count; ++object) {
    const auto& box = boxes[static_cast<std::size_t>(object - 1)];
    const auto pixel = [&](std::int64_t i) {
      const auto y = box.rows.begin + i / box.columns.size();
      return static_cast<std::size_t>(y * size.width + box.columns.begin + i % box.columns.size());
    };
    inside.resize(static_cast<std::size_t>(box.size().pixels()));
    for (std::int64_t i = 0; i < std::ssize(inside); ++i)
      inside[static_cast<std::size_t>(i)] = objects.labels[pixel(i)] == object ? 1 : 0;
    const auto squared = squared_distances(inside, box.size());
    for (std::int64_t i = 0; i < std::ssize(inside); ++i) {
      auto& [first, second] = nearest[pixel(i)];
      second = std::min(second, std::max(first, squared[static_cast<std::size_t>(i)]));
      first = std::min(first, squared[static_cast<std::size_t>(i)]);
    }
  }
  return nearest;
}

void add_border_weights(Sample& sample, const WeightOptions& options) {
  std::vector<std::uint8_t> set;
  for (const auto label : sample.labels) set.push_back(label != 0 && label != kIgnored ? 1 : 0);
  const Size size = {sample.height, sample.width};
  const auto reach = static_cast<std::int64_t>(std::ceil(5 * options.border_sigma));
  const auto nearest = nearest_two(connected_components(set, size), size, reach);
  const double narrow = 2 * options.border_sigma * options.border_sigma;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const auto [first, second] = nearest[i];
    if (sample.labels[i] != 0 || second > static_cast<double>(reach * reach)) continue;
    const double sum = std::sqrt(first) + std::sqrt(second);
    sample.weights[i] += static_cast<float>(options.border * wide::exp(-sum * sum / narrow));
  }
}

std::vector<double> balanced_weights(const Dataset& dataset, std::int64_t classes) {
  std::vector<std::int64_t> pixels(static_cast<std::size_t>(classes));
  std::int64_t all = 0;
  for (std::size_t i = 0; i < dataset.samples.size(); ++i) {
    const auto sample = dataset.whole(i);
    for (const auto label : sample->labels) {
      if (label == kIgnored) continue;
      ++pixels[label];
      ++all;
    }
  }
  std::vector<double> weights;
  weights.reserve(pixels.size());
  for (const auto count : pixels)
    weights.push_back(count == 0 ? 0 : static_cast<double>(all) / static_cast<double>(count));
  return weights;
}

}  // namespace

std::vector<double> parse_class_weights(std::string_view text, std::int64_t classes) {
  std::vector<double> weights;
  const auto wanted = std::max<std::int64_t>(2, classes);
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    const auto [next, error] = std::from_chars(at, end, weights.emplace_back());
    const bool goes_on = next != end && *next == ',' && next + 1 != end;
    if (error != std::errc() || (next != end && !goes_on)) {
      throw InvalidArgument(fmt::format(
          "class weights \"{}\" are neither \"{}\" nor numbers like 1,4", text, kBalanced));
    }
    at = goes_on ? next + 1 : next;
  }
  if (std::ssize(weights) != wanted) {
    throw InvalidArgument(fmt::format("class weights \"{}\" are {}; there are {} classes", text,
                                      weights.size(), wanted));
  }
  const bool sane =
      std::ranges::all_of(weights, [](double weight) { return weight >= 0 && weight <= 1e6; });
  if (!sane || std::ranges::max(weights) == 0) {
    throw InvalidArgument(
        fmt::format("class weights \"{}\" must be from 0 to 1000000, and one above 0", text));
  }
  return weights;
}

void set_pixel_weights(Dataset& dataset, const WeightOptions& options) {
  const auto classes = std::max<std::int64_t>(2, dataset.classes);
  const auto by_class =
      options.classes.empty()        ? std::vector<double>(static_cast<std::size_t>(classes), 1)
      : options.classes == kBalanced ? balanced_weights(dataset, classes)
                                     : parse_class_weights(options.classes, classes);
  dataset.change([by_class, options](Sample& sample) {
    sample.weights.clear();
    sample.weights.reserve(sample.labels.size());
    for (const auto label : sample.labels)
      sample.weights.push_back(label == kIgnored ? 0 : static_cast<float>(by_class[label]));
    if (options.border > 0) add_border_weights(sample, options);
  });
  double sum = 0;
  std::int64_t pixels = 0;
  for (std::size_t i = 0; i < dataset.samples.size(); ++i) {
    const auto sample = dataset.whole(i);
    for (const auto weight : sample->weights) sum += weight;
    pixels += sample->pixels();
  }
  if (sum == 0)
    throw InvalidArgument("no pixel counts in the loss: all are ignored or of weight 0");
  const auto scale = static_cast<float>(static_cast<double>(pixels) / sum);
  dataset.change([scale](Sample& sample) {
    for (auto& weight : sample.weights) weight *= scale;
  });
}

}  // namespace triptych::segmentation
