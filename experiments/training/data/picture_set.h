// One meaning for the numbers of all files of a set. This module compares files with each other. It
// converts differences by a rule or refuses them by name.
//   Images: whole numbers are fractions of their depth, floating and signed values count as they
//   are. Depths and signs differ only where each image is normalised by itself.
//   Masks: a number counts if all files show it in the same colour, else the luma of the colours.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/picture.h"
#include "experiments/training/data/labels.h"

namespace triptych::segmentation {

class ImageSet {
 public:
  /// `by_itself`: each image is normalised by itself, so that its scale does not count.
  explicit ImageSet(bool by_itself) : by_itself_(by_itself) {}

  /// The conflict between the numbers of `file` and those of an earlier file, or an empty text.
  std::string add(const std::string& file, const PictureForm& form, int orientation);
  /// A sentence on turned images and resolved palettes, or an empty text.
  std::string note() const;

 private:
  struct First {
    std::string file;
    PictureForm form;
  };

  bool by_itself_;
  std::optional<First> first_;
  std::map<std::string, int> turned_, palettes_;  ///< files, with their orientation
};

/// Throws IoError unless the mask has as many sections as its image.
void require_same_sections(const PictureFile& mask, const PictureFile& image);

using Colour = ColourTable::value_type;

/// A value of a mask.
struct MaskCell {
  std::uint16_t value = 0;
  std::int64_t pixels = 0;
  Colour colour = {};  ///< shown by viewers
};

/// The values of one mask, ascending.
struct MaskSummary {
  static constexpr std::uint64_t kGreys = 0, kLumas = 1;  ///< tables of masks without a palette

  std::string file;
  int full_scale = 255;
  std::uint64_t table = kGreys;  ///< identity of the table from values to colours
  std::vector<MaskCell> cells;
};

/// Throws IoError for a value that the mask's palette lacks.
MaskSummary summarize(const MaskValues& mask, const std::string& file);

struct MaskSetOptions {
  std::string labels;  ///< LabelMap's text, empty if not known yet
  std::int64_t classes = 1;
  std::string palette;                   ///< of the masks of the training (MaskSet::palette)
  std::optional<std::uint16_t> ignored;  ///< value of pixels that do not count
};

/// Values of all masks but the one to be ignored.
MaskCensus census_of(std::span<const MaskSummary> masks, std::optional<std::uint16_t> ignored);

class MaskSet {
 public:
  explicit MaskSet(MaskSetOptions options);

  void add(MaskSummary mask);
  /// To be called after the last mask. Throws IoError, naming two files, when neither numbers nor
  /// colours have one meaning.
  void decide();

  /// Summaries with the values that count, after decide().
  const std::vector<MaskSummary>& masks() const { return masks_; }
  /// The value that counts for `value` of a mask with this table. Throws IoError (without a file
  /// name) for a colour that the training's masks lack.
  std::uint16_t meaning(std::uint16_t value, const ColourTable& shown) const;
  /// "0=000000,1=ff0000": colours of the numbers where numbers count and a palette shows them.
  std::string palette() const;
  /// A sentence if colours count, else an empty text.
  std::string note() const { return note_; }

 private:
  enum class Reading : std::uint8_t {
    Numbers,
    Colours,  ///< their luma
    Trained,  ///< the number that the training's palette has for the colour
  };

  Reading choose();
  void require_background() const;
  bool agrees_with_training() const;
  bool have_classes(Reading reading) const;
  void require_distinct_lumas() const;
  std::uint16_t translated(std::uint16_t value, const Colour& colour, Reading reading) const;

  MaskSetOptions options_;
  std::map<std::uint16_t, Colour> trained_;
  Reading reading_ = Reading::Numbers;
  std::string note_;
  std::vector<MaskSummary> masks_;
};

}  // namespace triptych::segmentation
