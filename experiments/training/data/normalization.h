// Normalisation of images: numbers that bring the values of each channel to one scale. They belong
// to a trained model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/choice.h"
#include "experiments/training/data/dataset.h"

namespace triptych::segmentation {

/// Images enter the network as (value - mean) / deviation: numbers for each channel, or one pair
/// for all.
struct Normalization {
  std::vector<float> mean = {0};
  std::vector<float> deviation = {1};

  float mean_of(std::int64_t channel) const { return at(mean, channel); }
  float deviation_of(std::int64_t channel) const { return at(deviation, channel); }
  bool operator==(const Normalization&) const = default;

 private:
  static float at(const std::vector<float>& values, std::int64_t channel) {
    return values[values.size() == 1 ? 0 : static_cast<std::size_t>(channel)];
  }
};

/// The source of the numbers.
enum class NormalizeBy : std::uint8_t {
  Dataset,      ///< mean and deviation of the training images
  Image,        ///< mean and deviation of each image itself
  Percentiles,  ///< of each image itself: percentile 1 becomes 0, percentile 99.8 becomes 1
};

enum class NormalizeChannels : std::uint8_t {
  Each,      ///< every channel by its own numbers
  Together,  ///< all by the same numbers: in runs of before there was a choice
};

struct NormalizeOptions {
  NormalizeBy by = NormalizeBy::Dataset;
  NormalizeChannels channels = NormalizeChannels::Each;

  bool by_itself() const { return by != NormalizeBy::Dataset; }
};

/// The scales of the images of a set.
class SetScale {
 public:
  /// `deviations`: of each channel. Images of another number of channels do not count.
  void add(const std::string& name, std::vector<double> deviations);
  /// A sentence that names an image with a scale far from that of most others, or an empty
  /// text.
  std::string far_images() const;

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<double>> deviations_;
};

/// Mean over the images of their means. Deviation: root of the mean over the images of their mean
/// squared distance from that mean, or 1 for a constant set. Throws InvalidArgument when empty.
/// `note`, where it is wanted, becomes SetScale::far_images().
Normalization normalization_of(const Dataset& dataset,
                               NormalizeChannels channels = NormalizeChannels::Each,
                               std::string* note = nullptr);

/// Numbers of one image, which may never be in memory as a whole: `visit` calls its argument with
/// all of its values, channel by channel in the order of Sample::image, each time in the same
/// order.
using TakeValues = std::function<void(std::int64_t channel, std::span<const float>)>;
using VisitValues = std::function<void(const TakeValues&)>;
struct ImageValues {
  Normalization normalization;
  std::vector<bool> constant;  ///< one for each number of the normalisation
};
ImageValues values_of(const VisitValues& visit, std::int64_t channels,
                      const NormalizeOptions& options);
ImageValues values_of(const Sample& sample, const NormalizeOptions& options);

/// Normalises `sample` by its own numbers. A constant channel becomes 0.
void normalize_by_itself(Sample& sample,
                         const NormalizeOptions& options = {.by = NormalizeBy::Image});

/// A note with the numbers when the values of an image are far from those of the training images:
/// their mean by more than two deviations, or their deviation by more than a factor of two. Empty
/// otherwise.
std::string range_warning(const ImageValues& values, const Normalization& training);

/// Prepares `sample` for normalized(): normalises it by itself if its training did, else returns
/// range_warning.
std::string prepare_as_trained(Sample& sample, const NormalizeOptions& options,
                               const Normalization& training);

/// The image of `sample` as the network gets it: [channels, height, width].
std::vector<float> normalized(const Sample& sample, const Normalization& normalization);

}  // namespace triptych::segmentation

namespace triptych {

template <>
inline constexpr auto kNamesOf<segmentation::NormalizeBy> =
    std::to_array<std::pair<segmentation::NormalizeBy, std::string_view>>(
        {{segmentation::NormalizeBy::Dataset, "dataset"},
         {segmentation::NormalizeBy::Image, "image"},
         {segmentation::NormalizeBy::Percentiles, "percentiles"}});

template <>
inline constexpr auto kNamesOf<segmentation::NormalizeChannels> =
    std::to_array<std::pair<segmentation::NormalizeChannels, std::string_view>>(
        {{segmentation::NormalizeChannels::Each, "each"},
         {segmentation::NormalizeChannels::Together, "together"}});

}  // namespace triptych
