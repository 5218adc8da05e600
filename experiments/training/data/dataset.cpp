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
#include "experiments/training/data/picture_set.h"
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

Census census_of(std::span<const MaskSummary> masks) {
  Census census;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    for (const auto& cell : masks[i].cells) {
      const std::pair key = {masks[i].full_scale, cell.value};
      census.try_emplace(key, Found{0, i}).first->second.pixels += cell.pixels;
    }
  }
  return census;
}

/// Name of the first sample that raises the number of values above `most`. Empty: none.
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

/// Labels suggested by the masks' values, except the value of ignored pixels. Throws IoError with
/// the folder, and the first file that brings more values than there are classes, where they
/// suggest nothing.
std::string derived_labels(const DatasetOptions& options, const Census& census,
                           std::span<const MaskSummary> masks, const std::vector<Sample>& samples) {
  const auto all = census_of(masks, options.ignored);
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
std::vector<std::uint8_t> classes_in(const MaskSummary& mask, const LabelMap& map,
                                     std::optional<std::uint16_t> ignored) {
  std::set<std::uint8_t> classes;
  for (const auto& cell : mask.cells) {
    if (cell.value != ignored)
      classes.insert(static_cast<std::uint8_t>(map.class_of(cell.value, mask.full_scale)));
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
  result.palette = dataset.palette;
  result.shares = dataset.shares;
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

namespace {

void add_note(Dataset& dataset, const std::string& text) {
  if (text.empty()) return;
  dataset.note += (dataset.note.empty() ? "" : "; ") + text;
}

/// Reads all masks, settles the meaning of their values, and returns the masks to hold.
std::vector<MaskValues> read_masks(const DatasetOptions& options, SampleReader& reader, bool held,
                                   Dataset& dataset) {
  MaskSet set({options.labels, options.classes, options.palette, options.ignored});
  std::vector<MaskValues> masks;
  for (const auto& sample : dataset.samples) {
    auto mask = reader.mask(sample.place);
    set.add(reader.summary(sample.place, mask));
    if (held) masks.push_back(std::move(mask));
  }
  set.decide();
  const auto census = census_of(set.masks());
  const LabelMap map(options.labels.empty()
                         ? derived_labels(options, census, set.masks(), dataset.samples)
                         : options.labels,
                     options.classes);
  const auto shares = shares_of(census, map, reader);
  dataset.labels = map.text();
  dataset.palette = set.palette();
  dataset.labelling = map.describe(shares, options.class_names);
  dataset.shares = shares.of_counted();
  for (auto& sample : dataset.samples)
    sample.classes = classes_in(set.masks()[sample.place], map, options.ignored);
  add_note(dataset, set.note());
  reader.set_labels(map, std::move(set));
  return masks;
}

}  // namespace

Dataset load_dataset(const DatasetOptions& options) {
  validate(options);
  Dataset dataset{.channels = options.channels, .classes = options.classes, .samples = {}};
  const auto reader = std::make_shared<SampleReader>(options, pair_pictures(options, dataset.note));
  add_note(dataset, reader->note());
  dataset.samples = reader->forms();
  std::int64_t bytes = 0;
  for (const auto& sample : dataset.samples) bytes += bytes_of_pixels(sample, options.weighted);
  const bool held = options.cache_bytes == 0 || bytes <= options.cache_bytes;
  for (auto& sample : dataset.samples) {
    if (held) sample.image = reader->image(sample.place).image;
  }
  const auto masks = read_masks(options, *reader, held, dataset);
  for (std::size_t i = 0; i < masks.size(); ++i)
    dataset.samples[i].labels = reader->labels(i, masks[i]);
  if (held) return dataset;
  add_note(dataset, text_of_cache(bytes, options.cache_bytes));
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

}  // namespace triptych::segmentation
