// Pictures in the manner of electron microscopy of neural tissue, with their masks: cells as a
// jittered Voronoi partition with warped borders, dark membranes of varying thickness, mitochondria
// and vesicles, texture, blur, uneven contrast and noise. For experiments without real data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/io/image.h"
#include "experiments/training/data/dataset.h"
#include "experiments/training/data/tiles.h"

namespace triptych::segmentation {

struct SyntheticOptions {
  Size size = {256, 256};
  std::int64_t classes = 1;  ///< of the data set: 1, one output, or 2, an output per class
  double cell_size = 46;     ///< mean distance of cell centres in pixels, at least 8
  std::uint64_t seed = 0;
};

/// An 8-bit grey picture and its mask: 255 inside a cell, 0 on a membrane.
struct MembranePicture {
  Image image;
  Image mask;
};

/// Picture `index` of the series that `options` describe, a pure function of its arguments. Throws
/// InvalidArgument for an empty or huge size.
MembranePicture make_membranes(const SyntheticOptions& options, std::int64_t index);

/// Pictures 0 .. count - 1 as a data set. The membrane is class 1. Throws InvalidArgument for more
/// than two classes.
Dataset synthetic_dataset(const SyntheticOptions& options, std::int64_t count);

/// The same pictures as folder/images/00000.png and folder/masks/00000.png and so on. Load them
/// with `invert`. Throws IoError.
void save_synthetic_dataset(const std::filesystem::path& folder, const SyntheticOptions& options,
                            std::int64_t count);

/// True when a picture in `folder` would get other content by that.
bool replaces_dataset(const std::filesystem::path& folder, const SyntheticOptions& options,
                      std::int64_t count);

}  // namespace triptych::segmentation
