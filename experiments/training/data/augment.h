// One training patch from one sample: a crop of the network's input size, turned, mirrored, zoomed
// and deformed at random, its values changed by intensity.h. Samples smaller than the patch are
// continued by reflection. The elastic deformation is the one of Ronneberger et al., "U-Net:
// convolutional networks for biomedical image segmentation", 2015: normal displacements on a coarse
// grid, interpolated bicubically.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/random.h"
#include "experiments/training/data/dataset.h"
#include "experiments/training/data/intensity.h"

namespace triptych::segmentation {

struct AugmentOptions {
  std::int64_t height = 128;
  std::int64_t width = 128;
  bool random_crop = true;         ///< false: the centre
  bool flip_x = true;              ///< mirror left and right with probability 1/2
  bool flip_y = true;              ///< mirror up and down with probability 1/2
  bool transpose = true;           ///< swap rows and columns with probability 1/2
  float max_rotation_degrees = 0;  ///< uniform in [-max, max], 180 for every angle
  float elastic_sigma = 0;         ///< deviation of the displacements in pixels. The paper has 10
  std::int64_t elastic_grid = 3;   ///< displacements a side, at least 2
  bool zoom = false;               ///< one patch in five, by a factor from 0.7 to 1.4
  IntensityOptions intensity = {};
};

/// Throws InvalidArgument when `options` make no sense.
void validate(const AugmentOptions& options);

/// A patch of options.height x options.width. Images are interpolated bilinearly, labels and
/// weights by the nearest pixel. Without rotation, deformation and zoom both are exact copies.
/// Every switch draws its numbers whether it is on or off, so that turning one off does not change
/// the others. Without labels the patch has none.
Sample augment(const Sample& sample, const AugmentOptions& options, RandomStream& random);

}  // namespace triptych::segmentation
