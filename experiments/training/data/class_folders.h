// Pictures of one class each, in one folder per class: FOLDER/cat/1.png. The class is the folder's
// name. A trained model stores the number of each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {

/// Loads the pictures of the folders in `options.images`, each scaled to `side` pixels on its
/// shorter side, with the classes as the target of Dataset::arrays. One of these has the spec
/// `target`, [1, ...]: i64, or f32 for two classes. Options for masks, lists and splits have no
/// effect. `options.labels` names the classes as "cat,dog". Some of them may have no folder here.
/// Empty: the existing folders, in ascending order of their bytes. A sample has a name like
/// "cat/1". Throws IoError for a missing folder, a broken picture, a folder
/// of no class, and as many folders as `options.classes` is not (1 means two).
Dataset load_class_folders(const DatasetOptions& options, std::int64_t side,
                           const TensorSpec& target);

/// A picture with `side` pixels on its shorter side: bilinear, averaged over the covered pixels
/// where it shrinks.
Sample scaled(const Sample& sample, std::int64_t side);

}  // namespace triptych::segmentation
