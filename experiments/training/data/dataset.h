// Pictures with one class label per pixel, from two folders of PNG files paired by file stem:
// images/ID.png and masks/ID.png. Everything is held in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace triptych::segmentation {

/// The label of a pixel that no score counts and no training learns from; classes are below it.
inline constexpr std::uint8_t kIgnored = 255;

struct Sample {
  std::string name;
  std::string split;  ///< as the list file says; may be empty
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<float> image;          ///< [channels, height, width] in [0, 1]
  std::vector<std::uint8_t> labels;  ///< [height, width]; binary: 1 is the target
  std::vector<float> weights = {};   ///< [height, width], in the loss; empty: all alike

  std::int64_t pixels() const { return height * width; }
};

struct Dataset {
  std::int64_t channels = 1;
  std::int64_t classes = 1;  ///< 1: binary, one output; else one output per class
  std::string labels =
      {};  ///< what values of masks are (LabelMap::text); empty: no masks were read
  std::string labelling = {};  ///< the same in words, with the share of each class
  std::vector<Sample> samples;
  std::string note = {};  ///< what its user must be told: files that were skipped; empty: nothing
};

struct DatasetOptions {
  std::filesystem::path images;
  std::filesystem::path masks;
  /// One stem per line, or CSV with a header that has a column `id` and perhaps `split`. Without a
  /// list every PNG of `images` is taken, in ascending order of names.
  std::filesystem::path list;
  std::vector<std::string> splits;  ///< rows of the list to keep; empty: all
  std::int64_t channels = 1;        ///< 1: grey, 3: RGB
  std::int64_t classes = 1;         ///< up to 256; 1 and 2: background and target
  /// Meaning of the masks' values (LabelMap); empty: the one that derive_labels makes of those that
  /// occur.
  std::string labels;
  bool invert = false;  ///< without labels and at most 2 classes: the darker value is class 1
  std::function<void()> on_file = [] {};  ///< called after each file of pixels
};

/// Throws IoError for a missing folder, file or mask, a broken PNG, sizes that differ or masks that
/// do not fit `classes` or `labels`, naming the file; InvalidArgument for wrong options. Files that
/// are not named .png are skipped, which the note says.
Dataset load_dataset(const DatasetOptions& options);

struct ListEntry {
  std::string name;
  std::string split;
};

/// The rows of a list file. Throws IoError for a broken line, a name twice or an unsafe name.
std::vector<ListEntry> read_list(const std::filesystem::path& path);

/// Moves the samples of `split` out of `dataset`; the order is kept.
Dataset take_split(Dataset& dataset, std::string_view split);

/// Moves round(fraction * size) samples, drawn by `seed`, out of `dataset`; the order is kept.
Dataset take_fraction(Dataset& dataset, double fraction, std::uint64_t seed);

/// Images enter the network as (value - mean) / deviation.
struct Normalization {
  float mean = 0;
  float deviation = 1;
};

/// Mean over the images of their means; deviation: root of the mean over the images of their mean
/// squared distance from that mean, or 1 for a constant set. Throws InvalidArgument when empty.
Normalization normalization_of(const Dataset& dataset);

/// The image of `sample` as the network gets it: [channels, height, width].
std::vector<float> normalized(const Sample& sample, const Normalization& normalization);

}  // namespace triptych::segmentation
