// Random fields from which synthetic pictures are made: one float per pixel, row by row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/base/random.h"
#include "experiments/training/data/tiles.h"

namespace triptych::segmentation {

using Field = std::vector<float>;

/// Smooth noise in [-1, 1] with features of about `period` pixels.
Field smooth_noise(Size size, double period, RandomStream random);

/// Gaussian blur with deviation `sigma` > 0, borders continued by reflection.
Field blurred(const Field& field, Size size, double sigma);

}  // namespace triptych::segmentation
