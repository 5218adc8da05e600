// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/io/picture.h"
#include "experiments/training/data/labels.h"
#include "experiments/training/data/picture_files.h"

namespace triptych::segmentation {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxChannels = 5;

void validate(const DatasetOptions& options) {
  const auto refuse = [](const std::string& problem) { throw_invalid("dataset", problem); };
  if (options.channels < 1 || options.channels > kMaxChannels) {
    refuse(fmt::format("channels must be from 1 to {}, got {}", kMaxChannels, options.channels));
  }
  if (options.classes < 1 || options.classes > kIgnored) {
    refuse(fmt::format("classes must be from 1 to {}, got {}", int{kIgnored}, options.classes));
  }
  if (options.classes > 2 && options.invert) refuse("only a mask of two classes can be inverted");
  for (const auto& folder : {options.images, options.masks}) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) {
      throw IoError(fmt::format("\"{}\" is not a folder", folder.string()));
    }
  }
}

/// Floating values beyond are no intensities, but mistakes.
constexpr float kLargest = 1e6F;

void require_intensities(const Picture& picture) {
  if (!picture.form.floating) return;
  for (const auto value : picture.samples) {
    if (std::abs(value) <= kLargest) continue;
    throw IoError(
        fmt::format("it has a value of {}; values must be finite and within {} on either side of 0",
                    value, kLargest));
  }
}

MaskValues load_mask(const DatasetOptions& options, const PicturePair& pair, const Sample& sample,
                     OpenPicture& open) {
  if (pair.mask.empty()) {
    throw IoError(fmt::format("image \"{}\" has no mask in \"{}\"", pair.image.string(),
                              options.masks.string()));
  }
  auto& file = open.of(pair.mask);
  if (pair.page >= file.pages()) {
    throw IoError(fmt::format("\"{}\" has {} sections, its image has more", pair.mask.string(),
                              file.pages()));
  }
  const auto& form = file.form(pair.page);
  if (form.width != sample.width || form.height != sample.height) {
    throw IoError(fmt::format("\"{}\" has {} x {} pixels, its image has {} x {}",
                              pair.mask.string(), form.width, form.height, sample.width,
                              sample.height));
  }
  const auto picture = file.read(pair.page);
  options.on_file();
  return file.file().named([&] { return mask_values(picture); });
}

ValueCounts counts_of(const MaskValues& mask) {
  std::vector<std::int64_t> pixels(std::size_t{1} << 16);
  for (const auto value : mask.values) ++pixels[value];
  ValueCounts counts;
  for (std::size_t value = 0; value < pixels.size(); ++value)
    if (pixels[value] > 0) counts.emplace(static_cast<std::uint16_t>(value), pixels[value]);
  return counts;
}

/// Labels that the masks' values suggest, but for that of pixels to be ignored. Throws IoError with
/// the folder, and the first file that brings more values than there are classes, where they
/// suggest nothing.
std::string derived_labels(const DatasetOptions& options, const std::vector<MaskValues>& masks,
                           const std::vector<Sample>& samples) {
  ValueCounts counts;
  std::string first;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    for (const auto& [value, pixels] : counts_of(masks[i]))
      if (value != options.ignored) counts[value] += pixels;
    const auto many = std::ssize(counts) > std::max<std::int64_t>(2, options.classes);
    if (many && first.empty()) first = samples[i].name;
  }
  if (counts.empty()) {
    throw IoError(
        fmt::format("\"{}\": every pixel of every mask is to be ignored", options.masks.string()));
  }
  try {
    return derive_labels(counts, options.classes, options.invert);
  } catch (const InvalidArgument& error) {
    throw IoError(fmt::format(
        "\"{}\": {}{}", options.masks.string(), error.what(),
        first.empty() ? "" : fmt::format(" (\"{}\" is the first with more values)", first)));
  }
}

void label(const MaskValues& mask, const LabelMap& map, const DatasetOptions& options,
           const PicturePair& pair, Sample& sample) {
  sample.labels.reserve(mask.values.size());
  for (const auto value : mask.values) {
    const int found =
        value == options.ignored ? int{kIgnored} : map.class_of(value, mask.full_scale);
    if (found < 0) {
      throw IoError(fmt::format(
          "\"{}\" has a pixel of value {}, which no class has: the labels are {}; correct the "
          "mask, or state other labels, or that value as the one to be ignored, in a new run",
          pair.mask.string(), value, map.text()));
    }
    sample.labels.push_back(static_cast<std::uint8_t>(found));
  }
}

void load_masks(const DatasetOptions& options, const std::vector<PicturePair>& pairs,
                Dataset& dataset) {
  OpenPicture open(Palette::Indices);
  std::vector<MaskValues> masks;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    masks.push_back(load_mask(options, pairs[i], dataset.samples[i], open));
  }
  const auto text =
      options.labels.empty() ? derived_labels(options, masks, dataset.samples) : options.labels;
  const LabelMap map(text, options.classes);
  LabelShares shares;
  shares.pixels.resize(static_cast<std::size_t>(std::max<std::int64_t>(2, options.classes)));
  for (std::size_t i = 0; i < masks.size(); ++i) {
    label(masks[i], map, options, pairs[i], dataset.samples[i]);
    for (const auto found : dataset.samples[i].labels) {
      ++(found == kIgnored ? shares.ignored : shares.pixels[found]);
    }
  }
  dataset.labels = map.text();
  dataset.labelling = map.describe(shares, options.class_names);
}

/// Moves the samples for which `taken(position)` out of `dataset`.
template <class Taken>
Dataset take(Dataset& dataset, const Taken& taken) {
  Dataset result{.channels = dataset.channels, .classes = dataset.classes, .samples = {}};
  result.labels = dataset.labels;
  std::vector<Sample> kept;
  for (std::size_t i = 0; i < dataset.samples.size(); ++i) {
    (taken(i) ? result.samples : kept).push_back(std::move(dataset.samples[i]));
  }
  dataset.samples = std::move(kept);
  return result;
}

}  // namespace

Dataset load_dataset(const DatasetOptions& options) {
  validate(options);
  Dataset dataset{.channels = options.channels, .classes = options.classes, .samples = {}};
  const auto pairs = pair_pictures(options, dataset.note);
  OpenPicture open(Palette::Colours);
  for (const auto& pair : pairs) {
    dataset.samples.push_back(load_sample(open.of(pair.image), pair.page, options.channels));
    dataset.samples.back().name = pair.name;
    dataset.samples.back().split = pair.split;
    options.on_file();
  }
  load_masks(options, pairs, dataset);
  return dataset;
}

Sample load_sample(PictureFile& file, std::int64_t page, std::int64_t channels) {
  const auto picture = file.read(page);
  Sample sample;
  sample.channels = channels;
  sample.height = picture.form.height;
  sample.width = picture.form.width;
  file.file().named([&] {
    require_intensities(picture);
    sample.image = to_planes(picture, channels);
  });
  return sample;
}

Dataset take_split(Dataset& dataset, std::string_view split) {
  return take(dataset, [&](std::size_t i) { return dataset.samples[i].split == split; });
}

Dataset take_fraction(Dataset& dataset, double fraction, std::uint64_t seed) {
  if (!(fraction >= 0 && fraction <= 1)) {
    throw_invalid("dataset", fmt::format("a fraction is from 0 to 1, got {}", fraction));
  }
  const auto size = dataset.samples.size();
  auto wanted = static_cast<std::size_t>(std::llround(fraction * static_cast<double>(size)));
  RandomStream random(seed, 0);
  // Selection sampling: each subset of the wanted size is equally likely.
  std::vector<bool> chosen(size);
  for (std::size_t i = 0; i < size; ++i) {
    chosen[i] =
        random.below(static_cast<std::int64_t>(size - i)) < static_cast<std::int64_t>(wanted);
    if (chosen[i]) --wanted;
  }
  return take(dataset, [&](std::size_t i) { return chosen[i]; });
}

namespace {

/// Mean over the samples of the means of term(value) over their values.
template <class Term>
double mean_over_images(std::span<const Sample> samples, const Term& term) {
  double total = 0;
  for (const auto& sample : samples) {
    double sum = 0;
    for (const auto value : sample.image) sum += term(double{value});
    total += sum / static_cast<double>(sample.image.size());
  }
  return total / static_cast<double>(samples.size());
}

Normalization normalization_of(std::span<const Sample> samples) {
  const auto mean = mean_over_images(samples, [](double value) { return value; });
  const auto variance =
      mean_over_images(samples, [mean](double value) { return (value - mean) * (value - mean); });
  return {static_cast<float>(mean), variance > 0 ? static_cast<float>(std::sqrt(variance)) : 1.0F};
}

}  // namespace

Normalization normalization_of(const Dataset& dataset) {
  if (dataset.samples.empty()) throw_invalid("dataset", "cannot normalise by no images");
  return normalization_of(std::span(dataset.samples));
}

void normalize_by_itself(Sample& sample) {
  const auto normalization = normalization_of({&sample, 1});
  sample.image = normalized(sample, normalization);
}

std::string range_warning(const Sample& sample, const Normalization& training) {
  const auto own = normalization_of({&sample, 1});
  const auto shift = std::abs(own.mean - training.mean) / training.deviation;
  const auto ratio = own.deviation / training.deviation;
  const bool constant =
      std::ranges::all_of(sample.image, [&](float value) { return value == sample.image.front(); });
  if (shift <= 2 && (constant || (ratio >= 0.5F && ratio <= 2))) return {};
  return fmt::format(
      "its values have mean {:.3g} and deviation {:.3g}, those of the training images {:.3g} and "
      "{:.3g}: what the network makes of it may be wrong; bring it to their scale",
      own.mean, constant ? 0 : own.deviation, training.mean, training.deviation);
}

std::vector<float> normalized(const Sample& sample, const Normalization& normalization) {
  std::vector<float> values(sample.image.size());
  std::ranges::transform(sample.image, values.begin(), [&](float value) {
    return (value - normalization.mean) / normalization.deviation;
  });
  return values;
}

}  // namespace triptych::segmentation
