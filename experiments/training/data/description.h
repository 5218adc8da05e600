// Facts about a folder of images and masks, told before anything is trained on it. One picture is
// in memory at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/io/image.h"
#include "experiments/training/data/dataset.h"
#include "experiments/training/data/labels.h"

namespace triptych::segmentation {

/// Values of pictures as they are stored.
struct ValueRange {
  double least = 0;
  double greatest = 0;
  double mean = 0;
  double deviation = 0;
};

/// Two images of the same samples.
struct Duplicate {
  std::string first;
  std::string second;
  std::string first_split;
  std::string second_split;
};

struct DatasetDescription {
  std::int64_t images = 0;  ///< sections of stacks count each
  std::int64_t masks = 0;
  std::map<std::string, std::int64_t> forms;   ///< images by size, channels and depth
  std::map<std::string, std::int64_t> splits;  ///< images by split, when a list names any
  ValueRange values;                           ///< of the images
  ValueCounts labels;                          ///< of the masks, without the one to be ignored
  std::int64_t ignored = 0;                    ///< pixels of masks
  std::vector<std::string> without_mask;       ///< names of images
  std::vector<std::string> without_image;      ///< files of masks
  std::vector<Duplicate> duplicates;
  std::vector<std::string> damaged;      ///< the problem and the file
  std::vector<std::string> suggestions;  ///< advice before training, or the command to train
  std::string note;                      ///< files that were skipped. Empty: none
};

/// Reads all pictures of `options`. An empty path of masks means that there are none. A picture
/// that cannot be read, or with a mask of another size, is listed among the damaged. Throws as
/// pair_pictures does.
DatasetDescription describe_dataset(const DatasetOptions& options);

/// Up to `count` evenly chosen images, with their masks and names. Images are small and stretched
/// from their least to their greatest value. Each value of a mask has its own colour.
Image contact_sheet(const DatasetOptions& options, std::int64_t count);

}  // namespace triptych::segmentation
