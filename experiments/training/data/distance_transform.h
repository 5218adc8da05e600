// How far each pixel is from a set of pixels, exactly and in linear time: one pass along the
// columns and one along the rows, each the lower envelope of parabolas (Felzenszwalb and
// Huttenlocher, "Distance Transforms of Sampled Functions", 2012).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experiments/training/data/tiles.h"

namespace triptych::segmentation {

/// Squared Euclidean distances in pixels to the nearest pixel of `set` [height, width], where it is
/// not 0. Infinity everywhere when it is empty. Throws InvalidArgument when the sizes differ.
std::vector<double> squared_distances(std::span<const std::uint8_t> set, Size size);

}  // namespace triptych::segmentation
