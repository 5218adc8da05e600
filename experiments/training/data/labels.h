// Which class a value of a mask is. Belongs to a trained model: code that reads masks for it reads
// them so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/picture.h"

namespace triptych::segmentation {

/// Values of a mask, and how many pixels have each: grey levels, indices of a palette, of colours
/// their luma.
using ValueCounts = std::map<std::uint16_t, std::int64_t>;

/// Values of the masks of a set.
struct MaskCensus {
  ValueCounts pixels;                          ///< of all masks
  std::set<std::vector<std::uint16_t>> kinds;  ///< values of one mask, ascending
};

/// A mask as it is stored.
struct MaskValues {
  std::vector<std::uint16_t> values;
  int full_scale = 255;
  ColourTable shown = {};    ///< colours by value, or empty for greys
  bool lumas_shown = false;  ///< it was stored in colours: the values are their lumas
};

/// Samples of any kind, those of colours by their luma. Throws IoError (without a file name) for
/// channels that are no colours, for values that are not whole numbers from 0 to 65535, and for
/// colours that differ, but not in their luma, unless `labels` halve the scale.
MaskValues mask_values(const Picture& mask, std::string_view labels);

/// Words that stand for a rule instead of a list of values, all of two classes.
inline constexpr std::string_view kAboveHalf = "above-half";  ///< of the file's full scale: class 1
inline constexpr std::string_view kBelowHalf = "below-half";  ///< the reverse
inline constexpr std::string_view kInstances = "instances";   ///< all but 0: class 1

/// Pixels of each class, and those to be ignored.
struct LabelShares {
  std::vector<std::int64_t> pixels;
  std::int64_t ignored = 0;

  /// Fractions of the pixels that are not ignored.
  std::vector<double> of_counted() const;
};

/// A sentence when a class has a share of the pixels that is far from its share in the training:
/// odds that differ by more than a factor of 5. Empty otherwise, or where nobody counted.
std::string share_warning(const std::vector<double>& found, const std::vector<double>& trained);

/// The labels of two classes with the classes exchanged. Throws InvalidArgument for others.
std::string exchanged_labels(std::string_view labels);

/// "background,nucleus": a name for each class in turn. Throws InvalidArgument for another number
/// of them than classes (1 means two), an empty or a repeated one.
std::vector<std::string> parse_class_names(std::string_view text, std::int64_t classes);

class LabelMap {
 public:
  /// Takes "0,128,255", the values of class 0, 1 and 2, or one of the words above. Throws
  /// InvalidArgument for another text, a repeated value, or another number of classes than
  /// `classes` (1 and 2 both mean two).
  LabelMap(std::string_view text, std::int64_t classes);

  /// Read again, it gives the same map.
  const std::string& text() const { return text_; }
  /// The class of `value` in a file with `full_scale` as the largest value. -1: it has none.
  int class_of(std::uint16_t value, int full_scale) const;
  /// Throws InvalidArgument when the value of pixels to be ignored is that of a class.
  void require_apart(std::optional<std::uint16_t> ignored) const;

  /// "0 is class 0, background (90.1 % of the pixels), 255 is class 1, nucleus (9.9 %)", without
  /// names when `names` is empty.
  std::string describe(const LabelShares& shares, std::span<const std::string> names = {}) const;

 private:
  std::string text_;
  std::vector<std::uint16_t> values_;  ///< by class. Empty: a word
  std::vector<std::int16_t> classes_;  ///< by value, -1: none. As empty as values_
};

/// The map that masks of `classes` classes suggest by their values alone, as LabelMap's text. Two
/// values of two classes, or as many as there are classes: in ascending order, reversed with
/// `invert`. Above two classes and all values below their number: each value is its class. Throws
/// InvalidArgument for anything ambiguous, with the options that resolve it.
std::string derive_labels(const MaskCensus& masks, std::int64_t classes, bool invert);

}  // namespace triptych::segmentation
