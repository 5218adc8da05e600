// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/normalization.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/list_text.h"

namespace triptych::segmentation {
namespace {

constexpr double kLowFraction = 0.01, kHighFraction = 0.998;
/// Smallest ratio to the median deviation of a set that makes an image a far one.
constexpr double kFar = 4;

/// Sums over the values of one channel, or of all together.
struct Sums {
  double sum = 0, squares = 0;
  std::int64_t count = 0;
  std::optional<float> first = {};
  bool varies = false;

  double mean() const { return sum / static_cast<double>(count); }
  double variance() const { return squares / static_cast<double>(count); }
};

std::int64_t groups_of(NormalizeChannels channels, std::int64_t count) {
  return channels == NormalizeChannels::Each ? count : 1;
}

/// Means first, then squared distances from them: `squares` has the latter.
std::vector<Sums> sums_of(const VisitValues& visit, std::int64_t groups) {
  std::vector<Sums> sums(static_cast<std::size_t>(groups));
  const auto of = [&](std::int64_t channel) -> Sums& {
    return sums[groups == 1 ? 0 : static_cast<std::size_t>(channel)];
  };
  visit([&](std::int64_t channel, std::span<const float> values) {
    auto& own = of(channel);
    if (!own.first && !values.empty()) own.first = values.front();
    for (const auto value : values) own.sum += double{value};
    for (const auto value : values) own.varies = own.varies || value != *own.first;
    own.count += std::ssize(values);
  });
  visit([&](std::int64_t channel, std::span<const float> values) {
    auto& own = of(channel);
    const auto mean = own.mean();
    for (const auto value : values) own.squares += (value - mean) * (value - mean);
  });
  return sums;
}

void add_numbers(Normalization& normalization, double mean, double variance) {
  normalization.mean.push_back(static_cast<float>(mean));
  normalization.deviation.push_back(variance > 0 ? static_cast<float>(std::sqrt(variance)) : 1.0F);
}

Normalization no_numbers() { return {.mean = {}, .deviation = {}}; }

/// A whole number for each float, in the same order, with two halves of 16 bits.
std::uint32_t key_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value == 0 ? 0.0F : value);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

float value_of_key(std::uint32_t key) {
  return std::bit_cast<float>((key & 0x80000000U) != 0 ? key & 0x7FFFFFFFU : ~key);
}

/// Finds the value of a rank (from 0) without sorting: the upper halves of the keys first, then the
/// lower halves of those that share the upper one.
class RankSearch {
 public:
  RankSearch() : counts_(kHalf) {}

  void set_rank(std::int64_t rank) { rank_ = rank; }
  void count_upper(float value) { ++counts_[key_of(value) >> 16]; }
  void choose_upper() {
    upper_ = choose();
    counts_.assign(kHalf, 0);
  }
  void count_lower(float value) {
    const auto key = key_of(value);
    if (key >> 16 == upper_) ++counts_[key & 0xFFFFU];
  }
  float found() { return value_of_key(upper_ << 16 | choose()); }

 private:
  static constexpr std::size_t kHalf = std::size_t{1} << 16;

  /// The half with the rank. The rank becomes that within the half.
  std::uint32_t choose() {
    std::uint32_t half = 0;
    while (half + 1 < kHalf && rank_ >= counts_[half]) rank_ -= counts_[half++];
    return half;
  }

  std::vector<std::int64_t> counts_;
  std::int64_t rank_ = 0;
  std::uint32_t upper_ = 0;
};

/// The values nearest in rank to the two fractions, by two visits.
ImageValues percentiles_of(const VisitValues& visit, std::int64_t groups) {
  struct Ends {
    RankSearch low, high;
    std::int64_t count = 0;
  };
  std::vector<Ends> ends(static_cast<std::size_t>(groups));
  const auto of = [&](std::int64_t channel) -> Ends& {
    return ends[groups == 1 ? 0 : static_cast<std::size_t>(channel)];
  };
  visit([&](std::int64_t channel, std::span<const float> values) {
    auto& own = of(channel);
    for (const auto value : values) own.low.count_upper(value);
    own.count += std::ssize(values);
  });
  for (auto& own : ends) {
    own.high = own.low;
    const auto last = static_cast<double>(own.count - 1);
    own.low.set_rank(std::llround(kLowFraction * last));
    own.high.set_rank(std::llround(kHighFraction * last));
    own.low.choose_upper();
    own.high.choose_upper();
  }
  visit([&](std::int64_t channel, std::span<const float> values) {
    auto& own = of(channel);
    for (const auto value : values) {
      own.low.count_lower(value);
      own.high.count_lower(value);
    }
  });
  ImageValues result = {no_numbers(), {}};
  for (auto& own : ends) {
    const auto low = own.low.found(), high = own.high.found();
    result.normalization.mean.push_back(low);
    result.normalization.deviation.push_back(high > low ? high - low : 1.0F);
    result.constant.push_back(!(high > low));
  }
  return result;
}

VisitValues visit_of(const Sample& sample) {
  return [&sample](const TakeValues& take) {
    const auto pixels = static_cast<std::size_t>(sample.pixels());
    for (std::int64_t c = 0; c < sample.channels; ++c)
      take(c, std::span(sample.image).subspan(static_cast<std::size_t>(c) * pixels, pixels));
  };
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

void SetScale::add(const std::string& name, std::vector<double> deviations) {
  if (!deviations_.empty() && deviations.size() != deviations_.front().size()) return;
  names_.push_back(name);
  deviations_.push_back(std::move(deviations));
}

std::string SetScale::far_images() const {
  std::string first;
  std::vector<bool> named(names_.size());
  for (std::size_t channel = 0; !named.empty() && channel < deviations_.front().size(); ++channel) {
    std::vector<double> of_channel;
    for (const auto& image : deviations_) of_channel.push_back(image[channel]);
    const auto median = median_of(of_channel);
    for (std::size_t i = 0; i < of_channel.size(); ++i) {
      const auto own = of_channel[i];
      if (named[i] || !(own > 0) || (own <= kFar * median && own * kFar >= median)) continue;
      named[i] = true;
      if (!first.empty()) continue;
      first = fmt::format("the values of \"{}\" have deviation {:.3g}, those of most images {:.3g}",
                          names_[i], own, median);
    }
  }
  const auto far = std::ranges::count(named, true);
  if (far == 0) return {};
  return fmt::format(
      "{}{}; the option normalize image brings each image to one scale", first,
      far == 1 ? "" : fmt::format(" (and {} as far)", counted(far - 1, "more image")));
}

Normalization normalization_of(const Dataset& dataset, NormalizeChannels channels,
                               std::string* note) {
  if (dataset.samples.empty()) throw_invalid("dataset", "cannot normalise by no images");
  std::vector<std::vector<Sums>> images;
  SetScale scale;
  for (std::size_t i = 0; i < dataset.samples.size(); ++i) {
    const auto sample = dataset.whole(i);
    if (sample->channels != dataset.channels) {
      throw_invalid("dataset", fmt::format("\"{}\" has {}, expected {}", sample->name,
                                           counted(sample->channels, "channel"), dataset.channels));
    }
    images.push_back(sums_of(visit_of(*sample), groups_of(channels, sample->channels)));
    std::vector<double> deviations;
    for (const auto& sums : images.back()) deviations.push_back(std::sqrt(sums.variance()));
    scale.add(sample->name, std::move(deviations));
  }
  const auto count = static_cast<double>(images.size());
  auto result = no_numbers();
  for (std::size_t group = 0; group < images.front().size(); ++group) {
    double mean = 0, variance = 0;
    for (const auto& image : images) mean += image[group].mean() / count;
    for (const auto& image : images) {
      const auto distance = image[group].mean() - mean;
      variance += (image[group].variance() + distance * distance) / count;
    }
    add_numbers(result, mean, variance);
  }
  if (note != nullptr) *note = scale.far_images();
  return result;
}

ImageValues values_of(const VisitValues& visit, std::int64_t channels,
                      const NormalizeOptions& options) {
  const auto groups = groups_of(options.channels, channels);
  if (options.by == NormalizeBy::Percentiles) return percentiles_of(visit, groups);
  ImageValues result = {no_numbers(), {}};
  for (const auto& sums : sums_of(visit, groups)) {
    add_numbers(result.normalization, sums.mean(), sums.variance());
    result.constant.push_back(!sums.varies);
  }
  return result;
}

ImageValues values_of(const Sample& sample, const NormalizeOptions& options) {
  return values_of(visit_of(sample), sample.channels, options);
}

void normalize_by_itself(Sample& sample, const NormalizeOptions& options) {
  sample.image = normalized(sample, values_of(sample, options).normalization);
}

std::string range_warning(const ImageValues& values, const Normalization& training) {
  const auto groups = std::ssize(values.constant);
  for (std::int64_t c = 0; c < groups; ++c) {
    const auto mean = values.normalization.mean_of(c), trained = training.mean_of(c);
    const auto own = values.normalization.deviation_of(c), deviation = training.deviation_of(c);
    const bool constant = values.constant[static_cast<std::size_t>(c)];
    const auto shift = std::abs(mean - trained) / deviation, ratio = own / deviation;
    if (shift <= 2 && (constant || (ratio >= 0.5F && ratio <= 2))) continue;
    return fmt::format(
        "its values{} have mean {:.3g} and deviation {:.3g}, those of the training images {:.3g} "
        "and {:.3g}: what the network makes of it may be wrong; bring it to their scale",
        groups == 1 ? "" : fmt::format(" of channel {}", c), mean, constant ? 0 : own, trained,
        deviation);
  }
  return {};
}

std::string prepare_as_trained(Sample& sample, const NormalizeOptions& options,
                               const Normalization& training) {
  if (!options.by_itself()) return range_warning(values_of(sample, options), training);
  normalize_by_itself(sample, options);
  return {};
}

std::vector<float> normalized(const Sample& sample, const Normalization& normalization) {
  std::vector<float> values(sample.image.size());
  const auto pixels = sample.pixels();
  for (std::int64_t c = 0; c < sample.channels; ++c) {
    const auto mean = normalization.mean_of(c), deviation = normalization.deviation_of(c);
    const auto plane = sample.image.begin() + c * pixels;
    std::transform(plane, plane + pixels, values.begin() + c * pixels,
                   [=](float value) { return (value - mean) / deviation; });
  }
  return values;
}

}  // namespace triptych::segmentation
