// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/data/class_folders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/file_text.h"
#include "core/base/folder.h"
#include "core/base/list_text.h"
#include "experiments/training/data/picture_files.h"
#include "experiments/training/data/sample_cache.h"
#include "experiments/training/data/sample_reader.h"

namespace triptych::segmentation {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownFolders = 5;

/// Names of the folders in `folder`, except hidden ones.
std::vector<std::string> folders_in(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (auto& name : names_in(folder, error)) {
    std::error_code ignored;
    if (!name.starts_with('.') && fs::is_directory(folder / name, ignored))
      names.push_back(std::move(name));
  }
  if (error) throw IoError(fmt::format("cannot list \"{}\": {}", folder.string(), error.message()));
  std::ranges::sort(names);
  return names;
}

/// The classes by their numbers. Throws IoError when the folders found are not theirs.
std::vector<std::string> classes_of(const DatasetOptions& options,
                                    const std::vector<std::string>& found) {
  const auto where = options.images.string();
  const auto wanted = std::max<std::int64_t>(2, options.classes);
  for (const auto& name : found) {
    checked_name(name, fmt::format("a class in \"{}\"", where));
    if (name.find(',') == std::string::npos) continue;
    throw IoError(
        fmt::format("\"{}/{}\": the name of a class has no comma; rename the folder", where, name));
  }
  if (options.labels.empty()) {
    if (std::ssize(found) == wanted) return found;
    const auto named = std::span(found).first(std::min(found.size(), kShownFolders));
    throw IoError(fmt::format(
        "\"{}\" has {} folders ({}{}), and the network tells {} classes apart; it must hold one "
        "folder of pictures per class",
        where, found.size(), fmt::join(named, ", "), found.size() > kShownFolders ? ", ..." : "",
        wanted));
  }
  auto classes = split_list(options.labels);
  for (const auto& name : found) {
    if (std::ranges::count(classes, name) > 0) continue;
    throw IoError(
        fmt::format("\"{}/{}\" is no class of the model, which knows {}; rename the folder, or "
                    "take it away",
                    where, name, fmt::join(classes, ", ")));
  }
  if (!found.empty()) return classes;
  throw IoError(
      fmt::format("\"{}\" has no folder of a class: {}", where, fmt::join(classes, ", ")));
}

/// The pictures of one class, every section of a stack by itself.
void add_pictures(const fs::path& folder, std::vector<PicturePair>& pairs, std::string& note) {
  const auto found = list_pictures(folder);
  require_distinct_sections(found.images);
  if (!found.skipped.empty()) note += (note.empty() ? "" : "; ") + found.skipped;
  for (const auto& image : found.images) {
    const auto pages = PictureFile(image).pages();
    for (std::int64_t page = 0; page < pages; ++page) {
      const auto stem = section_name(image.stem().string(), page, pages);
      pairs.push_back({.name = fmt::format("{}/{}", folder.filename().string(), stem),
                       .split = {},
                       .image = image,
                       .mask = {},
                       .page = page,
                       .pages = pages});
    }
  }
}

/// Weights of the pixels that make pixel `i` of a line that is `ratio` times shorter.
struct LineTaps {
  std::int64_t first = 0;
  std::vector<double> weights;  ///< their sum is 1
};

LineTaps taps_of(std::int64_t i, double ratio, std::int64_t size) {
  const double reach = std::max(1.0, ratio);
  const double centre = (static_cast<double>(i) + 0.5) * ratio;
  LineTaps taps;
  taps.first = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(centre - reach)));
  const auto last = std::min(size, static_cast<std::int64_t>(std::ceil(centre + reach)));
  double sum = 0;
  for (auto j = taps.first; j < last; ++j) {
    const double distance = std::abs(static_cast<double>(j) + 0.5 - centre) / reach;
    taps.weights.push_back(std::max(0.0, 1 - distance));
    sum += taps.weights.back();
  }
  for (auto& weight : taps.weights) weight /= sum;
  return taps;
}

/// Lines of `size` values, `stride` apart, made `to` values long: [outer, size, inner] to [outer,
/// to, inner].
std::vector<float> resampled(std::span<const float> values, std::int64_t size, std::int64_t to,
                             std::int64_t inner) {
  const auto outer = std::ssize(values) / (size * inner);
  std::vector<float> result(static_cast<std::size_t>(outer * to * inner));
  for (std::int64_t i = 0; i < to; ++i) {
    const auto taps = taps_of(i, static_cast<double>(size) / static_cast<double>(to), size);
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t k = 0; k < inner; ++k) {
        double sum = 0;
        auto at = static_cast<std::size_t>((o * size + taps.first) * inner + k);
        for (const auto weight : taps.weights) {
          sum += weight * double{values[at]};
          at += static_cast<std::size_t>(inner);
        }
        result[static_cast<std::size_t>((o * to + i) * inner + k)] = static_cast<float>(sum);
      }
    }
  }
  return result;
}

/// Classes of the samples, which have names that begin with theirs, and a sentence with their
/// numbers.
void set_classes(Dataset& dataset, const std::vector<std::string>& classes,
                 const TensorSpec& target) {
  std::vector<std::int64_t> counts(classes.size());
  auto dims = target.shape.dims();
  dims.front() = std::ssize(dataset.samples);
  Arrays arrays;
  arrays.target = Tensor(TensorSpec{target.dtype, Shape(std::move(dims))});
  for (const auto& sample : dataset.samples) {
    const auto name = sample.name.substr(0, sample.name.find('/'));
    const auto label = std::ranges::find(classes, name) - classes.begin();
    ++counts[static_cast<std::size_t>(label)];
    if (target.dtype == DType::F32) {
      arrays.target.as<float>()[sample.place] = static_cast<float>(label);
    } else {
      arrays.target.as<std::int64_t>()[sample.place] = label;
    }
  }
  dataset.arrays = std::make_shared<const Arrays>(std::move(arrays));
  dataset.labels = fmt::format("{}", fmt::join(classes, ","));
  for (std::size_t i = 0; i < classes.size(); ++i) {
    dataset.labelling += fmt::format("{}{} is class {} ({})", i == 0 ? "" : ", ", classes[i], i,
                                     counted(counts[i], "image"));
  }
}

}  // namespace

Sample scaled(const Sample& sample, std::int64_t side) {
  const auto shorter = std::min(sample.height, sample.width);
  if (shorter == side) return sample;
  auto result = sample;
  const auto length = [&](std::int64_t size) { return (size * side + shorter / 2) / shorter; };
  result.height = length(sample.height);
  result.width = length(sample.width);
  result.image = resampled(sample.image, sample.height, result.height, sample.width);
  result.image = resampled(result.image, sample.width, result.width, 1);
  return result;
}

Dataset load_class_folders(const DatasetOptions& options, std::int64_t side,
                           const TensorSpec& target) {
  const auto found = folders_in(options.images);
  const auto classes = classes_of(options, found);
  Dataset dataset{.channels = options.channels, .classes = options.classes, .samples = {}};
  std::vector<PicturePair> pairs;
  for (const auto& name : found) add_pictures(options.images / name, pairs, dataset.note);
  const auto reader = std::make_shared<SampleReader>(options, std::move(pairs));
  std::int64_t bytes = 0;
  for (auto sample : reader->forms()) {
    // As they come out: nothing but the sizes counts.
    const auto shorter = std::min(sample.height, sample.width);
    sample.height = (sample.height * side + shorter / 2) / shorter;
    sample.width = (sample.width * side + shorter / 2) / shorter;
    bytes += sample.pixels() * sample.channels * 4;
    dataset.samples.push_back(std::move(sample));
  }
  set_classes(dataset, classes, target);
  const auto read = [reader, side](std::size_t place) {
    return scaled(reader->whole(place), side);
  };
  if (options.cache_bytes > 0 && bytes > options.cache_bytes) {
    dataset.cache = std::make_shared<SampleCache>(read, options.cache_bytes, options.on_file);
    for (std::size_t i = 0; i < dataset.samples.size(); ++i) dataset.whole(i);  // refuses bad files
    return dataset;
  }
  for (auto& sample : dataset.samples) sample = read(sample.place);
  return dataset;
}

}  // namespace triptych::segmentation
