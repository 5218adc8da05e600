// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/io/image.h"
#include "experiments/training/data/png_files.h"

namespace triptych::segmentation {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxClasses = 256;

void validate(const DatasetOptions& options) {
  const auto refuse = [](const std::string& problem) { throw_invalid("dataset", problem); };
  if (options.channels != 1 && options.channels != 3) {
    refuse(fmt::format("channels must be 1 (grey) or 3 (RGB), got {}", options.channels));
  }
  if (options.classes < 1 || options.classes > kMaxClasses) {
    refuse(fmt::format("classes must be from 1 to {}, got {}", kMaxClasses, options.classes));
  }
  if (options.classes > 2 && options.invert) refuse("only a mask of two classes can be inverted");
  if (std::ssize(options.grey_levels) > options.classes) {
    refuse(
        fmt::format("{} grey levels for {} classes", options.grey_levels.size(), options.classes));
  }
  for (const auto& folder : {options.images, options.masks}) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) {
      throw IoError(fmt::format("\"{}\" is not a folder", folder.string()));
    }
  }
}

std::vector<ListEntry> files_of(const fs::path& folder, std::string& note) {
  const auto files = list_pngs(folder);
  note = files.skipped;
  std::vector<ListEntry> entries;
  for (const auto& path : files.images) entries.push_back({path.stem().string(), ""});
  return entries;
}

std::vector<ListEntry> entries_of(const DatasetOptions& options, std::string& note) {
  auto entries = options.list.empty() ? files_of(options.images, note) : read_list(options.list);
  if (!options.splits.empty()) {
    std::erase_if(entries, [&](const ListEntry& entry) {
      return std::ranges::count(options.splits, entry.split) == 0;
    });
  }
  if (entries.empty()) {
    throw IoError(fmt::format("no images in \"{}\"{}", options.images.string(),
                              options.list.empty() ? "" : ": the list selects none"));
  }
  return entries;
}

Sample load_image(const DatasetOptions& options, const ListEntry& entry) {
  const auto image = load_png(png_of(options.images, entry.name));
  Sample sample;
  sample.name = entry.name;
  sample.split = entry.split;
  sample.channels = options.channels;
  sample.height = image.height;
  sample.width = image.width;
  sample.image = options.channels == 1 ? to_gray(image) : to_rgb(image);
  options.on_file();
  return sample;
}

Image load_mask(const DatasetOptions& options, const Sample& sample) {
  const auto path = png_of(options.masks, sample.name);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw IoError(
        fmt::format("image \"{}.png\" has no mask: \"{}\" is missing", sample.name, path.string()));
  }
  auto mask = load_png(path);
  if (mask.width != sample.width || mask.height != sample.height) {
    throw IoError(fmt::format("\"{}\" has {} x {} pixels, its image has {} x {}", path.string(),
                              mask.width, mask.height, sample.width, sample.height));
  }
  options.on_file();
  return mask;
}

/// Class 1 above half of the full scale, or the reverse.
void label_by_threshold(const std::vector<std::uint16_t>& values, int threshold, bool invert,
                        Sample& sample) {
  sample.labels.resize(values.size());
  std::ranges::transform(values, sample.labels.begin(), [&](std::uint16_t value) {
    return static_cast<std::uint8_t>((value > threshold) != invert);
  });
}

void load_binary_masks(const DatasetOptions& options, std::vector<Sample>& samples) {
  bool any_above = false;
  std::string suspect;
  for (auto& sample : samples) {
    const auto mask = load_mask(options, sample);
    const auto threshold = mask.max_value() / 2;
    const auto values = luma(mask);
    label_by_threshold(values, threshold, options.invert, sample);
    const auto largest = std::ranges::max(values);
    any_above = any_above || largest > threshold;
    if (largest > 0) suspect = sample.name;
  }
  // Masks of 0 and 1, or of instance numbers, would silently be all background.
  if (!any_above && !suspect.empty()) {
    throw IoError(fmt::format(
        "no mask in \"{}\" is above half of full scale, yet \"{}.png\" is not empty; scale the "
        "masks to 0 and 255, or use more than 2 classes",
        options.masks.string(), suspect));
  }
}

void load_class_masks(const DatasetOptions& options, Dataset& dataset) {
  std::vector<std::vector<std::uint16_t>> masks;
  std::set<std::uint16_t> levels(options.grey_levels.begin(), options.grey_levels.end());
  for (const auto& sample : dataset.samples) {
    masks.push_back(luma(load_mask(options, sample)));
    levels.insert(masks.back().begin(), masks.back().end());
    const auto allowed =
        options.grey_levels.empty() ? options.classes : std::ssize(options.grey_levels);
    if (std::ssize(levels) > allowed) {
      throw IoError(fmt::format("the mask of \"{}\" brings the grey levels to {}; {} are expected",
                                sample.name, fmt::join(levels, ", "), allowed));
    }
  }
  dataset.grey_levels = options.grey_levels;
  if (dataset.grey_levels.empty()) dataset.grey_levels.assign(levels.begin(), levels.end());
  for (std::size_t i = 0; i < masks.size(); ++i) {
    for (const auto value : masks[i]) {
      const auto found = std::ranges::find(dataset.grey_levels, value);
      dataset.samples[i].labels.push_back(
          static_cast<std::uint8_t>(found - dataset.grey_levels.begin()));
    }
  }
}

/// Moves the samples for which `taken(position)` out of `dataset`.
template <class Taken>
Dataset take(Dataset& dataset, const Taken& taken) {
  Dataset result{dataset.channels, dataset.classes, dataset.grey_levels, {}};
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
  Dataset dataset{options.channels, options.classes, {}, {}};
  for (const auto& entry : entries_of(options, dataset.note)) {
    dataset.samples.push_back(load_image(options, entry));
  }
  if (options.classes <= 2) {
    load_binary_masks(options, dataset.samples);
  } else {
    load_class_masks(options, dataset);
  }
  return dataset;
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

Normalization normalization_of(const Dataset& dataset) {
  if (dataset.samples.empty()) throw_invalid("dataset", "cannot normalise by no images");
  const auto mean_over_images = [&](const auto& term) {
    double total = 0;
    for (const auto& sample : dataset.samples) {
      double sum = 0;
      for (const auto value : sample.image) sum += term(double{value});
      total += sum / static_cast<double>(sample.image.size());
    }
    return total / static_cast<double>(dataset.samples.size());
  };
  const auto mean = mean_over_images([](double value) { return value; });
  const auto variance =
      mean_over_images([mean](double value) { return (value - mean) * (value - mean); });
  return {static_cast<float>(mean), variance > 0 ? static_cast<float>(std::sqrt(variance)) : 1.0F};
}

std::vector<float> normalized(const Sample& sample, const Normalization& normalization) {
  std::vector<float> values(sample.image.size());
  std::ranges::transform(sample.image, values.begin(), [&](float value) {
    return (value - normalization.mean) / normalization.deviation;
  });
  return values;
}

}  // namespace triptych::segmentation
