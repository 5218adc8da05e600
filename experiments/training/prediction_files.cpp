// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/prediction_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "core/base/error.h"
#include "core/base/list_text.h"
#include "core/io/npy.h"
#include "core/io/picture.h"
#include "experiments/training/data/boundary_metrics.h"
#include "experiments/training/data/labels.h"
#include "experiments/training/data/panels.h"

namespace triptych::training {
namespace {

struct Colour {
  std::uint16_t red, green, blue;
};

constexpr std::array<Colour, 6> kColours = {
    {{255, 64, 64}, {64, 224, 64}, {64, 128, 255}, {255, 208, 0}, {255, 64, 255}, {0, 224, 224}}};

/// Whole numbers that a float holds.
constexpr std::int64_t kMostNumbers = std::int64_t{1} << 24;

std::int64_t told_apart(const RunConfig& config) {
  return std::max<std::int64_t>(2, config.model.classes);
}

std::vector<std::uint8_t> set_of(const Segmentation& predicted, std::int64_t label) {
  std::vector<std::uint8_t> set(predicted.classes.size());
  std::ranges::transform(predicted.classes, set.begin(),
                         [&](std::uint8_t one) { return one == label; });
  return set;
}

bool has_objects(std::int64_t label, const std::vector<std::int64_t>& chosen) {
  return chosen.empty() ? label > 0 : std::ranges::count(chosen, label) > 0;
}

std::int64_t last_class(const Segmentation& predicted) {
  return predicted.classes.empty() ? 0 : std::ranges::max(predicted.classes);
}

Image grey(segmentation::Size size, std::vector<std::uint16_t> samples, int bit_depth) {
  Image image;
  image.width = size.width;
  image.height = size.height;
  image.bit_depth = bit_depth;
  image.samples = std::move(samples);
  return image;
}

Image mask(const Segmentation& predicted, const RunConfig& config, MaskValues meaning) {
  const auto values = mask_values(config, meaning);
  std::vector<std::uint16_t> samples(predicted.classes.size());
  std::ranges::transform(predicted.classes, samples.begin(),
                         [&](std::uint8_t label) { return values[label]; });
  return grey(predicted.size, std::move(samples), std::ranges::max(values) > 255 ? 16 : 8);
}

/// The value of `label` in masks that `map` reads: the only one, or of a rule its end.
std::uint16_t value_of_class(const segmentation::LabelMap& map, std::int64_t label) {
  constexpr int full_scale = 255;
  for (const std::uint16_t end : {0, full_scale})
    if (map.class_of(end, full_scale) == label) return end;
  for (int value = 0; value <= std::numeric_limits<std::uint16_t>::max(); ++value) {
    const auto found = static_cast<std::uint16_t>(value);
    if (map.class_of(found, full_scale) == label) return found;
  }
  throw InvalidArgument(fmt::format("labels {} have no value for class {}", map.text(), label));
}

Picture page_of(const Image& image) {
  return {.form = {.width = image.width,
                   .height = image.height,
                   .channels = image.channels,
                   .bits = image.bit_depth,
                   .colours = image.channels == 3},
          .samples = {image.samples.begin(), image.samples.end()}};
}

/// Its form has 16 bits up to 65,535 objects and 32 above.
Picture instances_page(const Segmentation& predicted, const PredictionFileOptions& options) {
  const auto found = objects_of(predicted, options);
  if (found.count > kMostNumbers) {
    throw InvalidArgument(
        fmt::format("its {} objects are more than a TIFF can number", found.count));
  }
  const bool few = found.count <= std::numeric_limits<std::uint16_t>::max();
  return {.form = {.width = predicted.size.width,
                   .height = predicted.size.height,
                   .bits = few ? 16 : 32},
          .samples = {found.labels.begin(), found.labels.end()}};
}

Image instances(const Segmentation& predicted, const PredictionFileOptions& options) {
  const auto found = objects_of(predicted, options);
  if (found.count > std::numeric_limits<std::uint16_t>::max()) {
    throw InvalidArgument(fmt::format(
        "its {} objects are more than a PNG can number; give the option format tiff", found.count));
  }
  return grey(predicted.size, {found.labels.begin(), found.labels.end()}, 16);
}

std::vector<Picture> probability_pages(const Segmentation& predicted) {
  std::vector<Picture> pages;
  const auto pixels = predicted.size.pixels();
  for (std::int64_t c = 0; c < predicted.channels; ++c) {
    const auto plane = predicted.probabilities.begin() + c * pixels;
    pages.push_back({.form = {.width = predicted.size.width,
                              .height = predicted.size.height,
                              .bits = 32,
                              .floating = true},
                     .samples = {plane, plane + pixels}});
  }
  return pages;
}

}  // namespace

std::string_view ending_of(PredictionFile kind, PictureFormat format) {
  const bool png = format == PictureFormat::Png;
  switch (kind) {
    case PredictionFile::Mask:
      return png ? ".png" : ".tif";
    case PredictionFile::Probabilities:
      return png ? ".probabilities.npy" : ".probabilities.tif";
    case PredictionFile::Instances:
      return png ? ".instances.png" : ".instances.tif";
    case PredictionFile::Overlay:
      return png ? ".overlay.png" : ".overlay.tif";
  }
  return {};
}

std::vector<std::uint16_t> mask_values(const RunConfig& config, MaskValues values) {
  const auto classes = told_apart(config);
  std::vector<std::uint16_t> result(static_cast<std::size_t>(classes));
  std::iota(result.begin(), result.end(), std::uint16_t{0});
  if (values == MaskValues::Classes) return result;
  const auto step = static_cast<std::uint16_t>(255 / std::max<std::int64_t>(1, classes - 1));
  std::optional<segmentation::LabelMap> map;
  const bool known = values == MaskValues::Labels && !config.data.labels.empty();
  if (known) map.emplace(config.data.labels, config.model.classes);
  for (auto& value : result)
    value = map ? value_of_class(*map, value) : static_cast<std::uint16_t>(value * step);
  return result;
}

segmentation::Components objects_of(const Segmentation& predicted,
                                    const PredictionFileOptions& options) {
  segmentation::Components all = {std::vector<std::int32_t>(predicted.classes.size()), 0};
  for (std::int64_t label = 0; label <= last_class(predicted); ++label) {
    if (!has_objects(label, options.object_classes)) continue;
    const auto set = set_of(predicted, label);
    const auto found = options.objects == Objects::Components
                           ? segmentation::connected_components(set, predicted.size)
                           : segmentation::watershed(predicted.probability_of(label), set,
                                                     predicted.size, options.seed);
    for (std::size_t i = 0; i < set.size(); ++i)
      if (found.labels[i] != 0) all.labels[i] = all.count + found.labels[i];
    all.count += found.count;
  }
  return all;
}

Image overlay(const segmentation::Sample& sample, const Segmentation& predicted) {
  Image image = grey(predicted.size, {}, 8);
  image.channels = 3;
  image.samples.resize(predicted.classes.size() * 3);
  const auto pixels = predicted.classes.size();
  for (std::size_t c = 0; c < 3; ++c) {
    const auto plane =
        segmentation::image_panel(sample, sample.channels == 3 ? static_cast<std::int64_t>(c) : 0);
    for (std::size_t i = 0; i < pixels; ++i) image.samples[3 * i + c] = plane[i];
  }
  for (std::int64_t label = 1; label <= last_class(predicted); ++label) {
    const auto line = segmentation::boundary_of(set_of(predicted, label), {}, predicted.size);
    const auto& colour = kColours[static_cast<std::size_t>(label - 1) % kColours.size()];
    for (std::size_t i = 0; i < pixels; ++i) {
      if (line[i] == 0) continue;
      image.samples[3 * i] = colour.red;
      image.samples[3 * i + 1] = colour.green;
      image.samples[3 * i + 2] = colour.blue;
    }
  }
  return image;
}

std::vector<Picture> tiff_pages(PredictionFile kind, const segmentation::Sample& sample,
                                const Segmentation& predicted, const RunConfig& config,
                                const PredictionFileOptions& options) {
  switch (kind) {
    case PredictionFile::Mask:
      return {page_of(mask(predicted, config, options.values))};
    case PredictionFile::Instances:
      return {instances_page(predicted, options)};
    case PredictionFile::Overlay:
      return {page_of(overlay(sample, predicted))};
    case PredictionFile::Probabilities:
      break;
  }
  return probability_pages(predicted);
}

std::string encode(PredictionFile kind, const segmentation::Sample& sample,
                   const Segmentation& predicted, const RunConfig& config,
                   const PredictionFileOptions& options) {
  if (options.format == PictureFormat::Tiff) {
    const auto pages = tiff_pages(kind, sample, predicted, config, options);
    return encode_tiff(pages, notes_for(options.notes, pages.front().form, std::ssize(pages)));
  }
  switch (kind) {
    case PredictionFile::Mask:
      return encode_png(mask(predicted, config, options.values));
    case PredictionFile::Instances:
      return encode_png(instances(predicted, options));
    case PredictionFile::Overlay:
      return encode_png(overlay(sample, predicted));
    case PredictionFile::Probabilities:
      break;
  }
  return encode_npy(Tensor({predicted.channels, predicted.size.height, predicted.size.width},
                           std::span<const float>(predicted.probabilities)));
}

std::vector<std::int64_t> parse_object_classes(const std::string& text, const RunConfig& config) {
  const auto names = config.data.class_names.empty() ? std::vector<std::string>()
                                                     : split_list(config.data.class_names);
  std::vector<std::int64_t> classes;
  for (const auto& word : split_list(text)) {
    std::int64_t label = std::ranges::find(names, word) - names.begin();
    if (label == std::ssize(names)) {
      label = 0;
      while (label < told_apart(config) && std::to_string(label) != word) ++label;
    }
    if (label == told_apart(config)) {
      throw InvalidArgument(fmt::format(
          "the option instances-of names class \"{}\"; the classes of the model are {}", word,
          names.empty() ? fmt::format("0 to {}", told_apart(config) - 1)
                        : fmt::format("{}", fmt::join(names, ", "))));
    }
    classes.push_back(label);
  }
  return classes;
}

}  // namespace triptych::training
