// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/panels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace triptych::segmentation {
namespace {

constexpr std::int64_t kGap = 4;

using Colour = std::array<std::uint16_t, 3>;

constexpr Colour kAdded = {255, 0, 0}, kMissed = {0, 0, 255}, kConfused = {255, 200, 0};

/// Panels in colours, [height, width, 3], side by side with white lines between.
Image side_by_side(const std::vector<std::vector<std::uint16_t>>& panels, std::int64_t height,
                   std::int64_t width) {
  const auto count = std::ssize(panels);
  Image image;
  image.channels = 3;
  image.height = height;
  image.width = count * width + (count - 1) * kGap;
  image.samples.assign(static_cast<std::size_t>(3 * image.pixels()), 255);
  for (std::int64_t p = 0; p < count; ++p) {
    for (std::int64_t row = 0; row < height; ++row) {
      const auto& panel = panels[static_cast<std::size_t>(p)];
      std::copy_n(panel.begin() + 3 * row * width, 3 * width,
                  image.samples.begin() + 3 * (row * image.width + p * (width + kGap)));
    }
  }
  return image;
}

/// The least and greatest value except one in a thousand on either side: hot pixels would leave the
/// others dark.
std::pair<float, float> bulk_of(std::vector<float> values) {
  const auto left_out = values.size() / 1000;
  const auto low = values.begin() + static_cast<std::ptrdiff_t>(left_out);
  const auto high = values.end() - 1 - static_cast<std::ptrdiff_t>(left_out);
  std::ranges::nth_element(values, low);
  const auto least = *low;
  std::ranges::nth_element(values, high);
  return {least, *high};
}

}  // namespace

std::vector<std::uint16_t> label_panel(std::span<const std::uint8_t> labels, std::int64_t width,
                                       std::int64_t classes) {
  const auto step = 255 / std::max<std::int64_t>(1, classes - 1);
  std::vector<std::uint16_t> panel;
  panel.reserve(labels.size());
  for (std::int64_t i = 0; i < std::ssize(labels); ++i) {
    const auto label = labels[static_cast<std::size_t>(i)];
    const bool white = (i / width + i % width) % 2 == 1;
    panel.push_back(static_cast<std::uint16_t>(label != kIgnored ? label * step : white ? 255 : 0));
  }
  return panel;
}

std::vector<std::uint16_t> image_panel(const Sample& sample, std::int64_t channel) {
  const auto plane = std::span(sample.image)
                         .subspan(static_cast<std::size_t>(channel * sample.pixels()),
                                  static_cast<std::size_t>(sample.pixels()));
  const auto [low, high] = bulk_of(sample.image);
  const bool known = low >= 0 && high <= 1, dark = known && high > 0 && high < 0.5F;
  const float from = known ? 0 : low;
  const float range = dark ? high : known || low == high ? 1 : high - low;
  std::vector<std::uint16_t> panel(plane.size());
  std::ranges::transform(plane, panel.begin(), [&](float value) {
    const auto level = std::clamp((value - from) / range, 0.0F, 1.0F);
    return static_cast<std::uint16_t>(std::lround(level * 255));
  });
  return panel;
}

namespace {

/// [height, width, 3] of three planes.
std::vector<std::uint16_t> interleaved(const std::array<std::vector<std::uint16_t>, 3>& planes) {
  std::vector<std::uint16_t> panel(3 * planes[0].size());
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = 0; i < planes[c].size(); ++i) panel[3 * i + c] = planes[c][i];
  }
  return panel;
}

/// The colours of an image with three channels, else its first channel.
std::vector<std::uint16_t> input_panel(const Sample& sample) {
  const bool colours = sample.channels == 3;
  return interleaved({image_panel(sample, 0), image_panel(sample, colours ? 1 : 0),
                      image_panel(sample, colours ? 2 : 0)});
}

std::vector<std::uint16_t> grey_panel(std::span<const std::uint8_t> labels, std::int64_t width,
                                      std::int64_t classes) {
  const auto levels = label_panel(labels, width, classes);
  return interleaved({levels, levels, levels});
}

/// grey_panel(predicted) with the errors in colours.
std::vector<std::uint16_t> error_panel(const Sample& sample,
                                       std::span<const std::uint8_t> predicted,
                                       std::int64_t classes) {
  auto panel = grey_panel(predicted, sample.width, classes);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const auto truth = sample.labels[i];
    if (truth == predicted[i] || truth == kIgnored) continue;
    const auto& colour = truth == 0 ? kAdded : predicted[i] == 0 ? kMissed : kConfused;
    std::ranges::copy(colour, panel.begin() + static_cast<std::ptrdiff_t>(3 * i));
  }
  return panel;
}

Image picture(std::vector<std::uint16_t> samples, std::int64_t channels, std::int64_t height,
              std::int64_t width) {
  Image image;
  image.channels = channels;
  image.height = height;
  image.width = width;
  image.samples = std::move(samples);
  return image;
}

}  // namespace

Image input_picture(const Sample& sample) {
  if (sample.channels == 3) return picture(input_panel(sample), 3, sample.height, sample.width);
  return picture(image_panel(sample, 0), 1, sample.height, sample.width);
}

Image label_picture(std::span<const std::uint8_t> labels, std::int64_t height, std::int64_t width,
                    std::int64_t classes) {
  return picture(label_panel(labels, width, classes), 1, height, width);
}

Image truth_and_prediction(const Sample& sample, std::span<const std::uint8_t> predicted,
                           std::int64_t classes) {
  return side_by_side({input_panel(sample), grey_panel(sample.labels, sample.width, classes),
                       error_panel(sample, predicted, classes)},
                      sample.height, sample.width);
}

}  // namespace triptych::segmentation
