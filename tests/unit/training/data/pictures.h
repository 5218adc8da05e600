// Small pictures for tests, drawn as text or from a seed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/random.h"
#include "experiments/training/data/dataset.h"
#include "experiments/training/data/tiles.h"

namespace triptych::segmentation {

/// Rows of characters: '#' is 1, '?' is kIgnored, a digit itself, and others 0.
inline std::vector<std::uint8_t> drawn(std::string_view rows) {
  std::vector<std::uint8_t> pixels;
  for (const char c : rows) {
    if (c == '\n') continue;
    const bool digit = c >= '0' && c <= '9';
    pixels.push_back(c == '#'   ? 1
                     : c == '?' ? kIgnored
                     : digit    ? static_cast<std::uint8_t>(c - '0')
                                : 0);
  }
  return pixels;
}

/// Each pixel is one of the first `values` numbers by chance, in blobs of `grain` pixels.
inline std::vector<std::uint8_t> random_picture(Size size, std::uint64_t seed, std::int64_t values,
                                                std::int64_t grain = 1) {
  RandomStream random(seed, 0);
  const auto rows = (size.height + grain - 1) / grain, columns = (size.width + grain - 1) / grain;
  std::vector<std::uint8_t> coarse;
  for (std::int64_t i = 0; i < rows * columns; ++i)
    coarse.push_back(static_cast<std::uint8_t>(random.below(values)));
  std::vector<std::uint8_t> pixels;
  for (std::int64_t y = 0; y < size.height; ++y)
    for (std::int64_t x = 0; x < size.width; ++x)
      pixels.push_back(coarse[static_cast<std::size_t>(y / grain * columns + x / grain)]);
  return pixels;
}

}  // namespace triptych::segmentation
