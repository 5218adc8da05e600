// Numbers that a program computes with, from the samples of an image.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/io/image.h"

namespace triptych {

std::vector<std::uint16_t> luma(const Image& image) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(image.pixels()));
  const auto step = static_cast<std::size_t>(image.channels);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto* pixel = image.samples.data() + i * step;
    values[i] = pixel[0];
    if (step >= 3) {
      const auto sum = 19595u * pixel[0] + 38470u * pixel[1] + 7471u * pixel[2] + 0x8000u;
      values[i] = static_cast<std::uint16_t>(sum >> 16);
    }
  }
  return values;
}

std::vector<float> to_gray(const Image& image) {
  const auto values = luma(image);
  std::vector<float> gray(values.size());
  const auto scale = static_cast<float>(image.max_value());
  std::ranges::transform(values, gray.begin(),
                         [scale](std::uint16_t v) { return static_cast<float>(v) / scale; });
  return gray;
}

}  // namespace triptych
