// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/training/data/labels.h"
#include "experiments/training/imported_network.h"

namespace triptych::training {

bool is_synthetic(const DataConfig& data) {
  return data.source == "synthetic" && data.images.empty() && data.masks.empty();
}

std::filesystem::path images_folder(const DataConfig& data) {
  const std::filesystem::path source = data.source;
  return data.images.empty() ? source / "images" : std::filesystem::path(data.images);
}

std::filesystem::path masks_folder(const DataConfig& data) {
  const std::filesystem::path source = data.source;
  return data.masks.empty() ? source / "masks" : std::filesystem::path(data.masks);
}

namespace {

void require(bool condition, const char* message) {
  if (!condition) throw InvalidArgument(message);
}

void validate_synthetic(const RunConfig& config) {
  require(config.model.classes <= 2 && config.model.in_channels == 1,
          "synthetic images are grey and binary; leave out the option in-channels and the option "
          "classes");
  require(config.data.list.empty(),
          "the option list chooses files; give their folder by the option data");
  require(config.data.labels.empty(), "the option labels is for masks from files; leave it out");
  require(config.data.mask_pattern.empty() && config.data.ignore_label < 0,
          "the options mask-pattern and ignore-label are for masks from files; leave them out");
  require(!config.data.invert,
          "the option invert is for masks from files; synthetic ones are right already");
}

/// A run with a network that returns a row for each example.
void validate_rows(const RunConfig& config) {
  const auto& data = config.data;
  const bool arrays = !data.inputs.empty();
  require(arrays || !is_synthetic(data),
          "the network makes no map of classes, for which there are no synthetic images; give a "
          "folder with one folder of pictures per class by the option data, or arrays by the "
          "option input and the option target");
  require(arrays || has_classes(config),
          "pictures in folders have classes; the loss mean-squared-error is for values in an array "
          "(the option input and the option target)");
  require(config.training.loss == LossKind::CrossEntropy || !has_classes(config),
          "Dice is of pixels, and the network makes no map of classes; give the option loss "
          "cross-entropy, or mean-squared-error for values");
  require(!config.weights.any(),
          "weights are of pixels, and the network makes no map of classes; "
          "leave out the options class-weights and border-weight");
  require(config.keep != Keep::Dice,
          "Dice is of pixels, and the network makes no map of classes; give the option keep loss");
  require(data.images.empty() && data.masks.empty() && data.mask_pattern.empty() &&
              data.list.empty() && !data.invert,
          "the network makes no map of classes: the options images, masks, mask-pattern, list and "
          "invert are for those; leave them out");
  require(arrays || data.ignore_label < 0,
          "every picture in a folder of its class counts; leave out the option ignore-label");
}

void validate_labels(const RunConfig& config) {
  const auto& data = config.data;
  const auto& classes = config.model.classes;
  require(data.inputs.empty() == data.target.empty(),
          "the option input and the option target go together: an array for each of the network's "
          "inputs, and one of what is wanted");
  require(data.inputs.empty() || !config.model.maps,
          "the option input is for networks from ONNX files; give pictures by the option data");
  if (!data.class_names.empty()) segmentation::parse_class_names(data.class_names, classes);
  if (!config.model.maps) return validate_rows(config);
  require(has_classes(config),
          "the network makes one map per class; the loss mean-squared-error is for values in an "
          "array (the option input and the option target)");
  if (data.labels.empty()) return;
  const segmentation::LabelMap map(data.labels, classes);
  if (data.ignore_label >= 0) map.require_apart(static_cast<std::uint16_t>(data.ignore_label));
}

}  // namespace

void validate(const RunConfig& config) {
  validate(config.model);
  require_within_limits(config);
  batcher_options(config);
  const auto& data = config.data;
  require(config.epochs > 0 || config.steps > 0,
          "a run needs the option epochs or the option steps");
  require(data.source != "synthetic" || data.images.empty() == data.masks.empty(),
          "the option images and the option masks go together; give both, or one folder with both "
          "by the "
          "option data");
  require(data.list.empty() || data.train_split != data.validation_split,
          "the option train-split and the option validation-split must differ");
  if (!config.weights.classes.empty() && config.weights.classes != segmentation::kBalanced)
    segmentation::parse_class_weights(config.weights.classes, config.model.classes);
  validate_labels(config);
  if (is_synthetic(data) && config.model.maps) validate_synthetic(config);
  static_cast<void>(to_json(config));  // values that a checkpoint could not store
}

segmentation::BatcherOptions batcher_options(const RunConfig& config) {
  segmentation::BatcherOptions options;
  auto& augment = options.augment;
  augment.height = augment.width = config.model.size;
  const auto has = [&](Change change) { return config.augmentation.has(change); };
  augment.flip_x = augment.flip_y = augment.transpose = has(Change::Flips);
  augment.max_rotation_degrees = has(Change::Rotate) ? 180.0F : 0.0F;
  if (has(Change::Elastic))
    augment.elastic_sigma = 10.0F * static_cast<float>(config.model.size) / 512.0F;
  augment.zoom = has(Change::Scale);
  augment.intensity = {.blur = has(Change::Blur),
                       .brightness = has(Change::Brightness),
                       .contrast = has(Change::Contrast),
                       .gamma = has(Change::Gamma),
                       .noise = has(Change::Noise)};
  options.drawing = config.drawing;
  options.seed = config.training.seed;
  return options;
}

}  // namespace triptych::training
