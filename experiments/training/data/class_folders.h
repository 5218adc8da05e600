// Pictures of one class each, in one folder per class: FOLDER/cat/1.png. The class is the folder's
// name; which number it has belongs to a trained model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {

/// Loads the pictures of the folders in `options.images`, each scaled so that its shorter side has
/// `side` pixels, with the classes as the target of Dataset::arrays, of which one has the spec
/// `target`, [1, ...]: i64, or f32 for two classes. Of the options, those of
/// masks, lists and splits do not count. `options.labels` names the classes as "cat,dog", of which
/// some may have no folder here. Empty: the folders there are, in ascending order of their bytes.
/// Samples are called as "cat/1". Throws IoError for a missing folder, a broken picture, a folder
/// of no class, and as many folders as `options.classes` is not (1 means two).
Dataset load_class_folders(const DatasetOptions& options, std::int64_t side,
                           const TensorSpec& target);

/// A picture whose shorter side has `side` pixels: bilinear, over the pixels that an output pixel
/// covers where it gets smaller.
Sample scaled(const Sample& sample, std::int64_t side);

}  // namespace triptych::segmentation
