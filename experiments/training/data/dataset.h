// Pictures with one class label per pixel, from two folders of PNG, TIFF or JPEG files paired by
// file stem: images/ID.tif and masks/ID.png. Each section of a stack is a sample. Pixels are held
// in memory, or, for a set larger than its limit, read when needed (sample_cache.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/choice.h"
#include "core/tensor/tensor.h"
#include "experiments/training/data/tiles.h"

namespace triptych {
class PictureFile;
}  // namespace triptych

namespace triptych::segmentation {

/// The label of a pixel that no score counts and no training learns from. Classes are below it.
inline constexpr std::uint8_t kIgnored = 255;

struct Sample {
  std::string name;
  std::string split;  ///< from the list file, may be empty
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  /// [channels, height, width]: whole numbers over the largest of their depth (255, 65535),
  /// floating values as they are
  std::vector<float> image;
  std::vector<std::uint8_t> labels;        ///< [height, width]. Binary: 1 is the target
  std::vector<float> weights = {};         ///< [height, width], in the loss. Empty: all equal
  std::vector<std::uint8_t> classes = {};  ///< that its mask has, ascending. Empty: not counted
  std::string stack = {};                  ///< the file of a section, or empty
  std::size_t place = 0;                   ///< in the data set as it was loaded

  std::int64_t pixels() const { return height * width; }
};

class SampleCache;

/// Parts of samples that are no pictures: a row for each, by its place.
struct Arrays {
  std::vector<Tensor> inputs = {};  ///< of the network, in their order. Empty: it takes the picture
  Tensor target = {};               ///< i64: classes, kNoClass where none counts. f32: values
};

/// The class of an image or token that no score counts and no training learns from, as in PyTorch.
inline constexpr std::int64_t kNoClass = -100;

struct Dataset {
  std::int64_t channels = 1;
  std::int64_t classes = 1;  ///< 1: binary, one output. Otherwise one output per class
  std::string labels =
      {};  ///< meaning of the masks' values (LabelMap::text). Empty: no masks were read
  std::string labelling = {};       ///< the same in words, with the share of each class
  std::string palette = {};         ///< colours of the masks' numbers (MaskSet::palette)
  std::vector<double> shares = {};  ///< of the counted pixels, by class
  std::vector<Sample> samples;      ///< without pixels where there is a cache
  std::string note = {};            ///< notes for the user: files that were skipped. Empty: nothing
  std::shared_ptr<SampleCache> cache = {};    ///< of samples by place, shared by parts of a set
  std::shared_ptr<const Arrays> arrays = {};  ///< likewise. Nothing: pictures with masks

  /// Sample `i` with its pixels. For as long as this set lives where there is no cache.
  std::shared_ptr<const Sample> whole(std::size_t i) const;
  /// Applies `how` to every sample, to those of a cache whenever they are read.
  void change(const std::function<void(Sample&)>& how);
};

struct DatasetOptions {
  std::filesystem::path images;
  std::filesystem::path masks;
  /// Mask names as a function of image names, such as {name}_mask.tif, or of any kind without an
  /// extension. Empty: the same stem.
  std::string mask_pattern;
  /// One stem per line, or CSV (read_list). Without a list it loads every picture of `images`, in
  /// ascending order of names.
  std::filesystem::path list;
  std::vector<std::string> splits;  ///< rows of the list to keep. Empty: all
  std::int64_t channels = 1;        ///< up to 5. 1: grey, of RGB its luma
  std::int64_t classes = 1;         ///< up to 255. 1 and 2: background and target
  /// Meaning of the masks' values (LabelMap). Empty: the one that derive_labels makes of those that
  /// occur.
  std::string labels;
  /// The mask value of ignored pixels.
  std::optional<std::uint16_t> ignored;
  std::vector<std::string> class_names;  ///< for notes about the labels. Empty: none
  bool invert = false;     ///< without labels and at most 2 classes: the darker value is class 1
  std::string palette;     ///< of the masks of the training (MaskSet::palette)
  bool by_itself = false;  ///< each image is normalised by itself: its depth does not count
  std::function<void()> on_file = [] {};  ///< called after each file of pixels
  std::int64_t cache_bytes = 0;           ///< limit of the pixels held in memory. 0: none
  bool weighted = false;                  ///< samples will get weights, which count, too
};

/// Throws IoError for a missing folder, file or mask, a broken picture, sizes, sections or channels
/// that differ, values that are not finite, or masks that do not fit `classes` or `labels`, naming
/// the file. InvalidArgument for wrong options, such as a class with the ignored value. Files that
/// are no pictures are skipped, which the note says. Pixels beyond `cache_bytes` are read later: a
/// file that was changed or removed by then is an IoError.
Dataset load_dataset(const DatasetOptions& options);

/// Section `page` of `file` without labels or name. Throws IoError with the file's name when it has
/// not `channels` or a value is not finite.
Sample load_sample(PictureFile& file, std::int64_t page, std::int64_t channels);
/// The rows of `band` alone.
Sample load_rows(PictureFile& file, std::int64_t page, std::int64_t channels, const Band& band);

struct ListEntry {
  std::string name;  ///< of a file or its stem
  std::string split = {};
  std::string mask = {};  ///< its file. Empty: by the image's name
  std::int64_t line = 0;  ///< of the list file, from 1
};

/// The rows of a list file: CSV with a header, or one name per line. The columns are the image
/// ("id", "image", "name" or "file"), the split ("split", "set" or "subset") and "mask". Fields end
/// with a comma, a semicolon or a tab, whichever the first line has. Throws IoError for a broken
/// line, a header without the image, or an unsafe name.
std::vector<ListEntry> read_list(const std::filesystem::path& path);

/// Moves the samples of `split` out of `dataset`. The order does not change.
Dataset take_split(Dataset& dataset, std::string_view split);

/// How sections of stacks are drawn.
enum class Sections : std::uint8_t {
  Together,  ///< one row of neighbours, so that few have neighbours on the other side
  Apart,     ///< each as a picture of its own
};

/// Moves round(fraction * size) samples, drawn by `seed`, out of `dataset`. The order does not
/// change.
Dataset take_fraction(Dataset& dataset, double fraction, std::uint64_t seed,
                      Sections sections = Sections::Together);

/// Moves part `fold` (from 0) of `folds` parts of the samples out of `dataset`. The order does not
/// change. Every sample is in one part: pictures as `seed` shuffles them, sections of stacks in
/// rows of neighbours. Throws InvalidArgument when a part would be empty.
Dataset take_fold(Dataset& dataset, std::int64_t folds, std::int64_t fold, std::uint64_t seed);

/// "3 images", "8 sections in a row: a_012 to b_003", or both.
std::string drawn_text(const Dataset& dataset);

}  // namespace triptych::segmentation

namespace triptych {

template <>
inline constexpr auto kNamesOf<segmentation::Sections> =
    std::to_array<std::pair<segmentation::Sections, std::string_view>>(
        {{segmentation::Sections::Together, "together"}, {segmentation::Sections::Apart, "apart"}});

}  // namespace triptych
