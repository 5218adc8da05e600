// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/panels.h"

#include <algorithm>
#include <cmath>

namespace triptych::segmentation {
namespace {

constexpr std::int64_t kGap = 4;
constexpr std::uint16_t kIgnoredGrey = 128;

/// Grey panels beside each other with white lines between.
Image side_by_side(const std::vector<std::vector<std::uint16_t>>& panels, std::int64_t height,
                   std::int64_t width) {
  const auto count = std::ssize(panels);
  Image image;
  image.height = height;
  image.width = count * width + (count - 1) * kGap;
  image.samples.assign(static_cast<std::size_t>(image.pixels()), 255);
  for (std::int64_t p = 0; p < count; ++p) {
    for (std::int64_t row = 0; row < height; ++row) {
      const auto& panel = panels[static_cast<std::size_t>(p)];
      std::copy_n(panel.begin() + row * width, width,
                  image.samples.begin() + row * image.width + p * (width + kGap));
    }
  }
  return image;
}

}  // namespace

std::vector<std::uint16_t> label_panel(std::span<const std::uint8_t> labels, std::int64_t classes) {
  const auto step = 255 / std::max<std::int64_t>(1, classes - 1);
  std::vector<std::uint16_t> panel;
  panel.reserve(labels.size());
  for (const auto label : labels)
    panel.push_back(label == kIgnored ? kIgnoredGrey : static_cast<std::uint16_t>(label * step));
  return panel;
}

std::vector<std::uint16_t> image_panel(const Sample& sample) {
  std::vector<std::uint16_t> panel;
  for (std::int64_t i = 0; i < sample.pixels(); ++i) {
    const auto value = std::clamp(sample.image[static_cast<std::size_t>(i)], 0.0F, 1.0F);
    panel.push_back(static_cast<std::uint16_t>(std::lround(value * 255)));
  }
  return panel;
}

Image truth_and_prediction(const Sample& sample, std::span<const std::uint8_t> predicted,
                           std::int64_t classes) {
  return side_by_side(
      {image_panel(sample), label_panel(sample.labels, classes), label_panel(predicted, classes)},
      sample.height, sample.width);
}

}  // namespace triptych::segmentation
