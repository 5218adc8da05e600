// Samples from the files of a data set, one by one. Not for two threads at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/training/data/dataset.h"
#include "experiments/training/data/labels.h"
#include "experiments/training/data/picture_files.h"
#include "experiments/training/data/picture_set.h"

namespace triptych::segmentation {

/// Throws IoError (without a file name) for a value that is not finite or beyond 10^6 on either
/// side of 0: no intensity, but a mistake.
void require_intensities(std::span<const float> values);
/// The same for a picture, unless its values are integers.
void require_intensities(const Picture& picture);

/// Identity and time of a file: while they stay, it is the one that was seen.
struct FileState {
  std::uint64_t device = 0, inode = 0;
  std::int64_t bytes = 0, seconds = 0, nanoseconds = 0;

  bool operator==(const FileState&) const = default;
};

class SampleReader {
 public:
  /// Throws IoError when a file has no known form, or when the numbers of files differ in meaning.
  SampleReader(const DatasetOptions& options, std::vector<PicturePair> pairs);

  const DatasetOptions& options() const { return options_; }
  /// The samples without their pixels.
  const std::vector<Sample>& forms() const { return forms_; }
  /// A note on the images for the user, or an empty text.
  std::string note() const { return images_in_set_.note(); }
  /// The sample at `place` without labels.
  Sample image(std::size_t place);
  /// The stored numbers. `set_labels` defines their meaning.
  MaskValues mask(std::size_t place);
  MaskSummary summary(std::size_t place, const MaskValues& mask) const;
  std::vector<std::uint8_t> labels(std::size_t place, const MaskValues& mask) const;
  /// Ends the calls of on_file, too.
  void set_labels(const LabelMap& map, MaskSet masks);
  /// The sample as the data set has it, without labels where none were set. Throws IoError when a
  /// file is not the one that it was when this reader was made.
  Sample whole(std::size_t place);
  [[noreturn]] void refuse_value(std::size_t place, std::uint16_t value, const LabelMap& map) const;

 private:
  struct Files {
    FileState image, mask;
  };

  DatasetOptions options_;
  std::vector<PicturePair> pairs_;
  std::vector<Files> files_;
  std::vector<Sample> forms_;
  OpenPicture images_, masks_;
  ImageSet images_in_set_;
  std::optional<MaskSet> masks_in_set_;
  std::optional<LabelMap> map_;
};

}  // namespace triptych::segmentation
