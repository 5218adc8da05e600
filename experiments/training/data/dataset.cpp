// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/list_text.h"
#include "core/base/random.h"
#include "experiments/training/data/labels.h"
#include "experiments/training/data/picture_files.h"
#include "experiments/training/data/sample_cache.h"
#include "experiments/training/data/sample_reader.h"

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
  if (!options.labels.empty())
    LabelMap(options.labels, options.classes).require_apart(options.ignored);
  if (options.classes > 2 && options.invert) refuse("only a mask of two classes can be inverted");
  for (const auto& folder : {options.images, options.masks}) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored)) {
      throw IoError(fmt::format("\"{}\" is not a folder", folder.string()));
    }
  }
}

/// Cells of the masks by their files' full scale and value.
struct Found {
  std::int64_t pixels = 0;
  std::size_t first = 0;  ///< sample that has it
};
using Census = std::map<std::pair<int, std::uint16_t>, Found>;

/// Values of one mask.
struct OneMask {
  int full_scale = 255;
  std::vector<std::uint16_t> values;  ///< ascending
};

OneMask count(const MaskValues& mask, std::size_t sample, Census& census) {
  OneMask one = {mask.full_scale, {}};
  std::vector<std::int64_t> pixels(std::size_t{1} << 16);
  for (const auto value : mask.values) ++pixels[value];
  for (std::size_t value = 0; value < pixels.size(); ++value) {
    if (pixels[value] == 0) continue;
    one.values.push_back(static_cast<std::uint16_t>(value));
    const std::pair key = {mask.full_scale, one.values.back()};
    census.try_emplace(key, Found{0, sample}).first->second.pixels += pixels[value];
  }
  return one;
}

/// The masks without what is to be ignored.
MaskCensus all_of(const Census& census, std::span<const OneMask> masks,
                  std::optional<std::uint16_t> ignored) {
  MaskCensus all;
  for (const auto& [key, found] : census)
    if (key.second != ignored) all.pixels[key.second] += found.pixels;
  for (const auto& mask : masks) {
    auto values = mask.values;
    std::erase(values, ignored);
    if (!values.empty()) all.kinds.insert(std::move(values));
  }
  return all;
}

/// Name of the first sample by which the samples have more than `most` values; empty: none.
std::string first_with_more(const Census& census, const std::vector<Sample>& samples,
                            std::optional<std::uint16_t> ignored, std::int64_t most) {
  std::map<std::uint16_t, std::size_t> firsts;
  for (const auto& [key, found] : census) {
    if (key.second == ignored) continue;
    auto& first = firsts.try_emplace(key.second, found.first).first->second;
    first = std::min(first, found.first);
  }
  if (std::ssize(firsts) <= most) return {};
  std::vector<std::size_t> order;
  order.reserve(firsts.size());
  for (const auto& [value, first] : firsts) order.push_back(first);
  std::ranges::sort(order);
  return samples[order[static_cast<std::size_t>(most)]].name;
}

/// Labels that the masks' values suggest, but for that of pixels to be ignored. Throws IoError with
/// the folder, and the first file that brings more values than there are classes, where they
/// suggest nothing.
std::string derived_labels(const DatasetOptions& options, const Census& census,
                           std::span<const OneMask> masks, const std::vector<Sample>& samples) {
  const auto all = all_of(census, masks, options.ignored);
  if (all.pixels.empty()) {
    throw IoError(
        fmt::format("\"{}\": every pixel of every mask is to be ignored", options.masks.string()));
  }
  try {
    return derive_labels(all, options.classes, options.invert);
  } catch (const InvalidArgument& error) {
    const auto first = first_with_more(census, samples, options.ignored,
                                       std::max<std::int64_t>(2, options.classes));
    throw IoError(fmt::format(
        "\"{}\": {}{}", options.masks.string(), error.what(),
        first.empty() ? "" : fmt::format(" (\"{}\" is the first with more values)", first)));
  }
}

/// Pixels of each class. Throws IoError for a value that has none.
LabelShares shares_of(const Census& census, const LabelMap& map, const SampleReader& reader) {
  const auto& options = reader.options();
  LabelShares shares;
  shares.pixels.resize(static_cast<std::size_t>(std::max<std::int64_t>(2, options.classes)));
  for (const auto& [key, found] : census) {
    const int label =
        key.second == options.ignored ? int{kIgnored} : map.class_of(key.second, key.first);
    if (label < 0) reader.refuse_value(found.first, key.second, map);
    (label == kIgnored ? shares.ignored : shares.pixels[static_cast<std::size_t>(label)]) +=
        found.pixels;
  }
  return shares;
}

/// The classes of a mask's values, ascending.
std::vector<std::uint8_t> classes_in(const OneMask& mask, const LabelMap& map,
                                     std::optional<std::uint16_t> ignored) {
  std::set<std::uint8_t> classes;
  for (const auto value : mask.values) {
    if (value != ignored)
      classes.insert(static_cast<std::uint8_t>(map.class_of(value, mask.full_scale)));
  }
  return {classes.begin(), classes.end()};
}

/// Bytes that the pixels of `sample` have, whole.
std::int64_t bytes_of_pixels(const Sample& sample, bool weighted) {
  return sample.pixels() * (sample.channels * 4 + 1 + (weighted ? 4 : 0));
}

std::string text_of_cache(std::int64_t bytes, std::int64_t limit) {
  constexpr double mib = 1 << 20;
  return fmt::format(
      "the images have {:.0f} MiB in memory, more than the {:.0f} MiB that are held: the others "
      "are read when they are drawn; leave the files as they are",
      static_cast<double>(bytes) / mib, static_cast<double>(limit) / mib);
}

/// Moves the samples for which `taken(position)` out of `dataset`.
template <class Taken>
Dataset take(Dataset& dataset, const Taken& taken) {
  Dataset result{.channels = dataset.channels, .classes = dataset.classes, .samples = {}};
  result.labels = dataset.labels;
  result.cache = dataset.cache;
  result.arrays = dataset.arrays;
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
  const auto reader = std::make_shared<SampleReader>(options, pair_pictures(options, dataset.note));
  dataset.samples = reader->forms();
  std::int64_t bytes = 0;
  for (const auto& sample : dataset.samples) bytes += bytes_of_pixels(sample, options.weighted);
  const bool held = options.cache_bytes == 0 || bytes <= options.cache_bytes;
  for (auto& sample : dataset.samples) {
    if (held) sample.image = reader->image(sample.place).image;
  }
  Census census;
  std::vector<MaskValues> masks;
  std::vector<OneMask> values;
  for (const auto& sample : dataset.samples) {
    auto mask = reader->mask(sample.place);
    values.push_back(count(mask, sample.place, census));
    if (held) masks.push_back(std::move(mask));
  }
  const LabelMap map(options.labels.empty()
                         ? derived_labels(options, census, values, dataset.samples)
                         : options.labels,
                     options.classes);
  dataset.labels = map.text();
  dataset.labelling = map.describe(shares_of(census, map, *reader), options.class_names);
  reader->set_labels(map);
  for (auto& sample : dataset.samples)
    sample.classes = classes_in(values[sample.place], map, options.ignored);
  for (std::size_t i = 0; i < masks.size(); ++i)
    dataset.samples[i].labels = reader->labels(i, masks[i]);
  if (held) return dataset;
  dataset.note += (dataset.note.empty() ? "" : "; ") + text_of_cache(bytes, options.cache_bytes);
  dataset.cache =
      std::make_shared<SampleCache>([reader](std::size_t place) { return reader->whole(place); },
                                    options.cache_bytes, options.on_file);
  for (std::size_t i = 0; i < dataset.samples.size(); ++i) dataset.whole(i);  // refuses bad files
  return dataset;
}

std::shared_ptr<const Sample> Dataset::whole(std::size_t i) const {
  const auto& sample = samples.at(i);
  if (cache) return cache->at(sample.place, bytes_of_pixels(sample, true));
  return {std::shared_ptr<const Sample>(), &sample};
}

void Dataset::change(const std::function<void(Sample&)>& how) {
  const auto shared = std::make_shared<const SampleCache::Change>(how);
  for (auto& sample : samples) cache ? cache->change(sample.place, shared) : how(sample);
}

Dataset take_split(Dataset& dataset, std::string_view split) {
  return take(dataset, [&](std::size_t i) { return dataset.samples[i].split == split; });
}

namespace {

/// Chooses `wanted` of the samples at `places`, each subset of that size equally likely.
void choose_apart(const std::vector<std::size_t>& places, std::size_t wanted, RandomStream& random,
                  std::vector<bool>& chosen) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto left = static_cast<std::int64_t>(places.size() - i);
    chosen[places[i]] = random.below(left) < static_cast<std::int64_t>(wanted);
    if (chosen[places[i]]) --wanted;
  }
}

std::size_t share_of(std::size_t size, double fraction) {
  return static_cast<std::size_t>(std::llround(fraction * static_cast<double>(size)));
}

}  // namespace

Dataset take_fraction(Dataset& dataset, double fraction, std::uint64_t seed, Sections sections) {
  if (!(fraction >= 0 && fraction <= 1)) {
    throw_invalid("dataset", fmt::format("a fraction is from 0 to 1, got {}", fraction));
  }
  std::vector<std::size_t> single, stacked;
  for (std::size_t i = 0; i < dataset.samples.size(); ++i) {
    const bool together = sections == Sections::Together && !dataset.samples[i].stack.empty();
    (together ? stacked : single).push_back(i);
  }
  RandomStream random(seed, 0);
  std::vector<bool> chosen(dataset.samples.size());
  const auto wanted_sections = share_of(stacked.size(), fraction);
  choose_apart(single, share_of(dataset.samples.size(), fraction) - wanted_sections, random,
               chosen);
  const auto starts = static_cast<std::int64_t>(stacked.size() - wanted_sections + 1);
  const auto start = stacked.empty() ? 0 : static_cast<std::size_t>(random.below(starts));
  for (std::size_t i = 0; i < wanted_sections; ++i) chosen[stacked[start + i]] = true;
  return take(dataset, [&](std::size_t i) { return chosen[i]; });
}

Dataset take_fold(Dataset& dataset, std::int64_t folds, std::int64_t fold, std::uint64_t seed) {
  const auto size = std::ssize(dataset.samples);
  if (folds < 2 || fold < 0 || fold >= folds)
    throw_invalid("dataset", fmt::format("there is no part {} of {}", fold + 1, folds));
  if (size < folds) {
    throw InvalidArgument(
        fmt::format("the option folds {} wants as many images, and there are {}; {}", folds, size,
                    size < 2 ? "add images" : fmt::format("give from 2 to {}", size)));
  }
  std::vector<std::size_t> order, sections;
  for (std::size_t i = 0; i < dataset.samples.size(); ++i)
    (dataset.samples[i].stack.empty() ? order : sections).push_back(i);
  RandomStream random(seed, 1);
  for (auto left = std::ssize(order); left > 1; --left)
    std::swap(order[static_cast<std::size_t>(left - 1)],
              order[static_cast<std::size_t>(random.below(left))]);
  order.insert(order.end(), sections.begin(), sections.end());
  std::vector<bool> chosen(dataset.samples.size());
  for (auto i = fold * size / folds; i < (fold + 1) * size / folds; ++i)
    chosen[order[static_cast<std::size_t>(i)]] = true;
  return take(dataset, [&](std::size_t i) { return chosen[i]; });
}

std::string drawn_text(const Dataset& dataset) {
  const auto& samples = dataset.samples;
  const auto is_section = [](const Sample& sample) { return !sample.stack.empty(); };
  const auto sections = std::ranges::count_if(samples, is_section);
  const auto singles = std::ssize(samples) - sections;
  std::string text;
  const auto* what = dataset.arrays && !dataset.arrays->inputs.empty() ? "example" : "image";
  if (singles > 0) text = counted(singles, what);
  if (sections == 0) return text;
  const auto first = std::ranges::find_if(samples, is_section);
  const auto last = std::ranges::find_if(samples.rbegin(), samples.rend(), is_section);
  return fmt::format("{}{}{} in a row, {} to {}", text, text.empty() ? "" : " and ",
                     counted(sections, "section"), first->name, last->name);
}

namespace {

/// Mean over the samples of the means of term(value) over their values.
template <class Term>
double mean_over_images(const Dataset& dataset, const Term& term) {
  double total = 0;
  for (std::size_t i = 0; i < dataset.samples.size(); ++i) {
    const auto one = dataset.whole(i);
    double sum = 0;
    for (const auto value : one->image) sum += term(double{value});
    total += sum / static_cast<double>(one->image.size());
  }
  return total / static_cast<double>(dataset.samples.size());
}

Normalization normalization_from(double mean, double variance) {
  return {static_cast<float>(mean), variance > 0 ? static_cast<float>(std::sqrt(variance)) : 1.0F};
}

}  // namespace

Normalization normalization_of(const Dataset& dataset) {
  if (dataset.samples.empty()) throw_invalid("dataset", "cannot normalise by no images");
  const auto mean = mean_over_images(dataset, [](double value) { return value; });
  const auto variance =
      mean_over_images(dataset, [mean](double value) { return (value - mean) * (value - mean); });
  return normalization_from(mean, variance);
}

ImageValues values_of(const VisitValues& visit) {
  ImageValues result;
  std::optional<float> first;
  bool varies = false;
  double sum = 0, squares = 0;
  std::int64_t count = 0;
  visit([&](std::span<const float> values) {
    if (!first && !values.empty()) first = values.front();
    for (const auto value : values) sum += double{value};
    for (const auto value : values) varies = varies || value != *first;
    count += std::ssize(values);
  });
  const auto mean = sum / static_cast<double>(count);
  visit([&](std::span<const float> values) {
    for (const auto value : values) squares += (value - mean) * (value - mean);
  });
  result.normalization = normalization_from(mean, squares / static_cast<double>(count));
  result.constant = !varies;
  return result;
}

namespace {

ImageValues values_in(const Sample& sample) {
  return values_of([&](const auto& take) { take(sample.image); });
}

}  // namespace

void normalize_by_itself(Sample& sample) {
  sample.image = normalized(sample, values_in(sample).normalization);
}

std::string range_warning(const Sample& sample, const Normalization& training) {
  return range_warning(values_in(sample), training);
}

std::string range_warning(const ImageValues& values, const Normalization& training) {
  const auto& own = values.normalization;
  const auto shift = std::abs(own.mean - training.mean) / training.deviation;
  const auto ratio = own.deviation / training.deviation;
  if (shift <= 2 && (values.constant || (ratio >= 0.5F && ratio <= 2))) return {};
  return fmt::format(
      "its values have mean {:.3g} and deviation {:.3g}, those of the training images {:.3g} and "
      "{:.3g}: what the network makes of it may be wrong; bring it to their scale",
      own.mean, values.constant ? 0 : own.deviation, training.mean, training.deviation);
}

std::vector<float> normalized(const Sample& sample, const Normalization& normalization) {
  std::vector<float> values(sample.image.size());
  std::ranges::transform(sample.image, values.begin(), [&](float value) {
    return (value - normalization.mean) / normalization.deviation;
  });
  return values;
}

}  // namespace triptych::segmentation
