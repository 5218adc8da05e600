// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/base/available_memory.h"
#include "experiments/training/data/class_folders.h"
#include "experiments/training/data/labels.h"
#include "experiments/training/data/sample_cache.h"
#include "experiments/training/data/synthetic.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/run_arrays.h"
#include "experiments/training/run_config.h"
#include "experiments/training/synthetic_images.h"

namespace triptych::training {
namespace {

bool is_given(const DataConfig& data) { return data.source == kGivenData; }

std::set<std::string> splits_in(const std::string& list) {
  std::set<std::string> splits;
  for (const auto& entry : segmentation::read_list(list)) splits.insert(entry.split);
  return splits;
}

/// Names the splits of the list that are used, when it has any. Refuses a list without the split to
/// train on, because training on everything would hide the mistake.
std::vector<std::string> splits_of_list(const DataConfig& data) {
  const auto splits = splits_in(data.list);
  if (std::ranges::all_of(splits, &std::string::empty)) return {};
  if (!splits.contains(data.train_split)) {
    throw InvalidArgument(
        fmt::format("\"{}\" has no split \"{}\"; choose by the option train-split and "
                    "the option validation-split from: {}",
                    data.list, data.train_split, fmt::join(splits, ", ")));
  }
  for (const auto* other : {"val", "valid", "dev"}) {
    if (splits.contains(data.validation_split) || !splits.contains(other)) continue;
    throw InvalidArgument(
        fmt::format("\"{}\" has no split \"{}\", but one \"{}\"; state by the option "
                    "validation-split which of these validates: {}",
                    data.list, data.validation_split, other, fmt::join(splits, ", ")));
  }
  if (data.folds > 0) return {data.train_split};  // another validation set is reserved for a test
  return {data.train_split, data.validation_split};
}

/// True when pixels count differently in the loss.
bool weighted(const RunConfig& config) {
  return config.model.maps && (config.weights.any() || config.data.ignore_label >= 0);
}

std::int64_t cache_bytes(const DataConfig& data) {
  if (data.cache_mib > 0) return data.cache_mib << 20;
  constexpr auto most = std::uint64_t{1} << 60;  // where the system does not say
  return static_cast<std::int64_t>(std::min<std::uint64_t>(available_memory(), most) / 2);
}

void require_folder(const std::string& folder, const char* holds) {
  std::error_code ignored;
  if (std::filesystem::is_directory(folder, ignored)) return;
  throw IoError(
      fmt::format("the option data \"{}\" is not a folder; it must hold {}", folder, holds));
}

/// Examples of a network that makes a row of each.
segmentation::Dataset load_rows(const RunConfig& config, const std::function<void()>& on_file) {
  const auto& data = config.data;
  if (!data.inputs.empty()) return load_arrays(config);
  require_folder(data.source, "one folder of PNG, TIFF or JPEG files per class");
  const auto* network = imported_network(config.model);
  if (network == nullptr) throw InvalidArgument("the network of the run is missing");
  return segmentation::load_class_folders(
      {.images = data.source,
       .channels = config.model.in_channels,
       .classes = config.model.classes,
       .labels = data.labels,
       .by_itself = data.normalization().by_itself(),
       .on_file = on_file,
       .cache_bytes = cache_bytes(data)},
      config.model.size, target_spec(network->output(), config.training.loss, false));
}

/// Loads these splits of the list, or all where there are none.
segmentation::Dataset load_all(const RunConfig& config, std::vector<std::string> splits,
                               const std::function<void()>& on_file) {
  const auto& data = config.data;
  if (is_synthetic(data) && config.model.maps) return synthetic_images(config);
  if (is_given(data)) {
    throw InvalidArgument(
        "the images of this run were given to it by a program, which must give them again");
  }
  if (!config.model.maps) return load_rows(config, on_file);
  if (data.images.empty() || data.masks.empty()) {
    require_folder(data.source,
                   "images/ and masks/ of PNG, TIFF or JPEG files (or give two folders by the "
                   "option images and the option masks)");
  }
  segmentation::DatasetOptions options;
  options.images = images_folder(data);
  options.masks = masks_folder(data);
  options.list = data.list;
  options.mask_pattern = data.mask_pattern;
  if (data.ignore_label >= 0) options.ignored = static_cast<std::uint16_t>(data.ignore_label);
  if (!data.class_names.empty())
    options.class_names = segmentation::parse_class_names(data.class_names, config.model.classes);
  options.channels = config.model.in_channels;
  options.classes = config.model.classes;
  options.invert = data.invert;
  options.labels = data.labels;
  options.palette = data.palette;
  options.by_itself = data.normalization().by_itself();
  options.on_file = on_file;
  options.cache_bytes = cache_bytes(data);
  options.weighted = weighted(config);
  options.splits = std::move(splits);
  return segmentation::load_dataset(options);
}

/// Refuses crops that no image nearly fills: they would be mirrors of mirrors.
void require_filled(const segmentation::Dataset& dataset, std::int64_t size) {
  if (dataset.arrays) return;  // no pictures, or scaled ones
  std::int64_t largest = 0;
  for (const auto& sample : dataset.samples) {
    largest = std::max(largest, std::min(sample.height, sample.width));
  }
  if (size <= 2 * largest) return;
  throw InvalidArgument(fmt::format(
      "the option size {} is more than twice the shorter side of every image, {} at most; give a "
      "smaller size",
      size, largest));
}

/// Draws the images that validate, and says which these are.
void hold_out(const RunConfig& config, TrainingData& data) {
  using namespace segmentation;
  const auto& c = config.data;
  const auto seed = config.training.seed;
  data.validation = c.folds > 0
                        ? take_fold(data.train, c.folds, c.fold, seed)
                        : take_fraction(data.train, c.validation_fraction, seed, c.sections);
  const auto why =
      c.folds > 0 ? fmt::format("fold {} of {}", c.fold + 1, c.folds) : "drawn by the seed";
  if (!data.validation.samples.empty())
    data.held_out = fmt::format("{}, {}", drawn_text(data.validation), why);
}

/// The classes without a pixel in any training image, as a sentence. Empty: none, or nobody
/// counted.
std::string lacking_text(const RunConfig& config, const segmentation::Dataset& train) {
  std::set<std::int64_t> found;
  for (const auto& sample : train.samples)
    found.insert(sample.classes.begin(), sample.classes.end());
  if (found.empty()) return {};
  const auto classes = std::max<std::int64_t>(2, config.model.classes);
  std::vector<std::string> names, lacking;
  if (!config.data.class_names.empty())
    names = segmentation::parse_class_names(config.data.class_names, config.model.classes);
  for (std::int64_t i = 0; i < classes; ++i) {
    if (found.contains(i)) continue;
    const auto name = names.empty() ? "" : " (" + names[static_cast<std::size_t>(i)] + ")";
    lacking.push_back(fmt::format("{}{}", i, name));
  }
  if (lacking.empty()) return {};
  return fmt::format(
      "no image to train on has a pixel of class {}; look whether the labels, {}, are those of the "
      "masks",
      fmt::join(lacking, ", "), train.labels);
}

void add_note(std::string& note, const std::string& text) {
  if (!text.empty()) note += (note.empty() ? "" : "; ") + text;
}

void normalize_each(segmentation::Dataset& images, const segmentation::NormalizeOptions& how) {
  images.change([how](segmentation::Sample& sample) { normalize_by_itself(sample, how); });
}

/// Draws validation images where there are none yet, normalises, and weights pixels.
TrainingData prepare(const RunConfig& config, TrainingData data) {
  if (data.validation.samples.empty()) hold_out(config, data);
  if (data.train.samples.empty()) {
    throw InvalidArgument(
        fmt::format("no training image is left beside {} for validation; add images or lower the "
                    "option validation",
                    data.validation.samples.size()));
  }
  add_note(data.train.note, lacking_text(config, data.train));
  const bool pictures = config.data.inputs.empty();
  const auto how = config.data.normalization();
  if (pictures && how.by_itself()) {
    for (auto* part : {&data.train, &data.validation}) normalize_each(*part, how);
  } else if (pictures) {
    std::string far;
    data.normalization = segmentation::normalization_of(data.train, how.channels, &far);
    add_note(data.train.note, far);
  }
  if (weighted(config)) segmentation::set_pixel_weights(data.train, config.weights);
  if (data.train.cache) data.train.cache->go_quiet();
  return data;
}

}  // namespace

segmentation::Dataset synthetic_images(const RunConfig& config) {
  const auto side = 2 * config.model.size;
  return segmentation::synthetic_dataset(
      {.size = {side, side}, .classes = config.model.classes, .seed = config.training.seed},
      config.data.synthetic_images);
}

TrainingData load_data(const RunConfig& config, const std::function<void()>& on_file) {
  TrainingData data;
  const bool listed = !is_synthetic(config.data) && !config.data.list.empty();
  data.train =
      load_all(config, listed ? splits_of_list(config.data) : std::vector<std::string>(), on_file);
  require_filled(data.train, config.model.size);
  data.validation = segmentation::take_split(data.train, config.data.validation_split);
  if (!data.validation.samples.empty())
    data.held_out = fmt::format("the split {} of the list", config.data.validation_split);
  return prepare(config, std::move(data));
}

TrainingData given_data(const RunConfig& config, segmentation::Dataset train,
                        segmentation::Dataset validation) {
  TrainingData data;
  data.train = std::move(train);
  data.validation = std::move(validation);
  require_filled(data.train, config.model.size);
  if (!data.validation.samples.empty())
    data.held_out =
        fmt::format("the {} images that were given for it", data.validation.samples.size());
  return prepare(config, std::move(data));
}

TrainingOptions training_options(const RunConfig& config) {
  auto options = config.training;
  options.weighted = weighted(config);
  return options;
}

namespace {

segmentation::Dataset load_named_split(const RunConfig& config, const std::string& split,
                                       const std::function<void()>& on_file) {
  const auto& list = config.data.list;
  if (split.empty()) return load_all(config, {}, on_file);
  if (is_synthetic(config.data) || list.empty()) {
    throw InvalidArgument(fmt::format(
        "only a list says which images are split \"{}\"; give one by the option list", split));
  }
  const auto splits = splits_in(list);
  if (!splits.contains(split)) {
    throw InvalidArgument(fmt::format("\"{}\" has no split \"{}\"; choose from: {}", list, split,
                                      fmt::join(splits, ", ")));
  }
  return load_all(config, {split}, on_file);
}

}  // namespace

segmentation::Dataset load_split(const RunConfig& config, const std::string& split,
                                 const std::function<void()>& on_file) {
  auto images = load_named_split(config, split, on_file);
  const auto how = config.data.normalization();
  if (config.data.inputs.empty() && how.by_itself()) normalize_each(images, how);
  if (images.cache) images.cache->go_quiet();
  return images;
}

}  // namespace triptych::training
