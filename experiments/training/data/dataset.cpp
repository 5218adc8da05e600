// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/io/image.h"
#include "experiments/training/data/labels.h"
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

/// A mask as it is stored.
struct RawMask {
  std::vector<std::uint16_t> values;
  int full_scale = 255;
};

RawMask load_mask(const DatasetOptions& options, const Sample& sample) {
  const auto path = png_of(options.masks, sample.name);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw IoError(
        fmt::format("image \"{}.png\" has no mask: \"{}\" is missing", sample.name, path.string()));
  }
  const auto mask = load_png(path, {}, Palette::Indices);
  if (mask.width != sample.width || mask.height != sample.height) {
    throw IoError(fmt::format("\"{}\" has {} x {} pixels, its image has {} x {}", path.string(),
                              mask.width, mask.height, sample.width, sample.height));
  }
  options.on_file();
  return {luma(mask), mask.max_value()};
}

ValueCounts counts_of(const RawMask& mask) {
  std::vector<std::int64_t> pixels(std::size_t{1} << 16);
  for (const auto value : mask.values) ++pixels[value];
  ValueCounts counts;
  for (std::size_t value = 0; value < pixels.size(); ++value)
    if (pixels[value] > 0) counts.emplace(static_cast<std::uint16_t>(value), pixels[value]);
  return counts;
}

/// Labels that the masks' values suggest. Throws IoError with the folder, and the first file that
/// brings more values than there are classes, where they suggest nothing.
std::string derived_labels(const DatasetOptions& options, const std::vector<RawMask>& masks,
                           const std::vector<Sample>& samples) {
  ValueCounts counts;
  std::string first;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    for (const auto& [value, pixels] : counts_of(masks[i])) counts[value] += pixels;
    const auto many = std::ssize(counts) > std::max<std::int64_t>(2, options.classes);
    if (many && first.empty()) first = samples[i].name;
  }
  try {
    return derive_labels(counts, options.classes, options.invert);
  } catch (const InvalidArgument& error) {
    throw IoError(fmt::format(
        "\"{}\": {}{}", options.masks.string(), error.what(),
        first.empty() ? "" : fmt::format(" (\"{}.png\" is the first with more values)", first)));
  }
}

void label(const RawMask& mask, const LabelMap& map, const DatasetOptions& options,
           Sample& sample) {
  sample.labels.reserve(mask.values.size());
  for (const auto value : mask.values) {
    const int found = map.class_of(value, mask.full_scale);
    if (found < 0) {
      throw IoError(fmt::format(
          "\"{}\" has a pixel of value {}, which no class has: the labels are {}; correct the "
          "mask, or state other labels in a new run",
          png_of(options.masks, sample.name).string(), value, map.text()));
    }
    sample.labels.push_back(static_cast<std::uint8_t>(found));
  }
}

void load_masks(const DatasetOptions& options, Dataset& dataset) {
  std::vector<RawMask> masks;
  for (const auto& sample : dataset.samples) masks.push_back(load_mask(options, sample));
  const auto text =
      options.labels.empty() ? derived_labels(options, masks, dataset.samples) : options.labels;
  const LabelMap map(text, options.classes);
  std::vector<std::int64_t> pixels(
      static_cast<std::size_t>(std::max<std::int64_t>(2, options.classes)));
  for (std::size_t i = 0; i < masks.size(); ++i) {
    label(masks[i], map, options, dataset.samples[i]);
    for (const auto found : dataset.samples[i].labels) ++pixels[found];
  }
  dataset.labels = map.text();
  dataset.labelling = map.describe(pixels);
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
  for (const auto& entry : entries_of(options, dataset.note)) {
    dataset.samples.push_back(load_image(options, entry));
  }
  load_masks(options, dataset);
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
