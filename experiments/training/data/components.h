// Objects of a picture: connected parts of a set of pixels, and a watershed that parts those that
// touch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiments/training/data/tiles.h"

namespace triptych::segmentation {

enum class Neighbours : std::uint8_t { Four, Eight };

struct Components {
  /// [height, width]: 0 outside, otherwise the object, numbered from 1 in the order of their first
  /// pixels, row by row.
  std::vector<std::int32_t> labels;
  std::int32_t count = 0;
};

/// Connected parts of the pixels of `set` that are not 0.
Components connected_components(std::span<const std::uint8_t> set, Size size,
                                Neighbours neighbours = Neighbours::Four);

/// Watershed of `probability` [height, width] within the pixels of `set` (Meyer's flooding, 1994):
/// connected parts of the pixels at or above `seed` are the seeds. From them the most probable
/// pixel adjacent to an object joins it, and among equals the one that was reached first. Parts of
/// `set` without a seed are objects of their own. Four neighbours.
Components watershed(std::span<const float> probability, std::span<const std::uint8_t> set,
                     Size size, float seed);

/// `set` with its lines thinned to a width of one pixel, joined as they were (Guo and Hall, 1989,
/// algorithm A1). All beyond the picture counts as set: lines that reach its border still do, and
/// the rest of the picture is in as many parts as before.
std::vector<std::uint8_t> thinned(std::span<const std::uint8_t> set, Size size);

}  // namespace triptych::segmentation
