// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "core/base/file_text.h"
#include "experiments/training/data/labels.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/run_limits.h"
#include "experiments/training/saved_fields.h"

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

using Json = nlohmann::ordered_json;

/// Calls visit(name, member) for every field; serves reading and writing.
template <class Config, class Visitor>
void visit_model(Config& model, const Visitor& visit) {
  visit("name", model.name);
  visit("base", model.base);
  visit("depth", model.depth);
  visit("size", model.size);
  visit("in_channels", model.in_channels);
  visit("classes", model.classes);
}

template <class Config, class Visitor>
void visit_data(Config& data, const Visitor& visit) {
  visit("source", data.source);
  visit("images", data.images);
  visit("masks", data.masks);
  visit("list", data.list);
  visit("train_split", data.train_split);
  visit("validation_split", data.validation_split);
  visit("validation_fraction", data.validation_fraction);
  visit("invert", data.invert);
  visit("synthetic_images", data.synthetic_images);
}

/// Members that runs of before they existed have not.
template <class Config, class Visitor>
void visit_later_data(Config& data, const Visitor& visit) {
  visit("mask_pattern", data.mask_pattern);
  visit("ignore_label", data.ignore_label);
  visit("class_names", data.class_names);
  visit("normalize", data.normalize);
  visit("cache_mib", data.cache_mib);
}

template <class Weights, class Visitor>
void visit_weights(Weights& weights, const Visitor& visit) {
  visit("classes", weights.classes);
  visit("border", weights.border);
  visit("border_sigma", weights.border_sigma);
}

template <class Config, class Visitor>
void visit_run(Config& config, const Visitor& visit) {
  visit("batch", config.training.batch);
  visit("seed", config.training.seed);
  visit("momentum", config.training.optimizer.momentum);
  visit("nesterov", config.training.optimizer.nesterov);
  visit("beta1", config.training.optimizer.beta1);
  visit("beta2", config.training.optimizer.beta2);
  visit("epsilon", config.training.optimizer.epsilon);
  visit("weight_decay", config.training.optimizer.weight_decay);
  visit("learning_rate", config.learning_rate);
  visit("schedule", config.schedule);
  visit("schedule_steps", config.schedule_steps);
  visit("epochs", config.epochs);
  visit("steps", config.steps);
  visit("steps_per_epoch", config.steps_per_epoch);
  visit("augmentation", config.augmentation);
  visit("drawing", config.drawing);
  visit("memory_limit_mib", config.memory_limit_mib);
  visit("tile", config.tile);
  visit("margin", config.margin);
}

auto writer(Json& json) {
  return [&json](const char* name, const auto& member) {
    using Member = std::remove_cvref_t<decltype(member)>;
    if constexpr (Named<Member>) {
      json[name] = name_of(member);
    } else if constexpr (Worded<Member>) {
      json[name] = member.text();
    } else {
      json[name] = member;
    }
  };
}

auto reader(const Json& json) {
  return [&json](const char* name, auto& member) { read_field(json, name, member); };
}

Json model_json(const ModelConfig& model) {
  Json json;
  visit_model(model, writer(json));
  const auto* network = imported_network(model);
  if (network == nullptr) return json;
  json["network"] = {{"sha256", network->sha256()}};
  if (!network->frozen().empty()) json["network"]["frozen"] = network->frozen();
  if (!network->rows().empty()) json["network"]["rows"] = network->rows();
  if (!model.maps) json["maps"] = false;
  return json;
}

void write_pictures(const DataConfig& data, Json& json) {
  visit_later_data(data, writer(json));
  if (!data.inputs.empty()) {
    json["inputs"] = data.inputs;
    json["target"] = data.target;
    json["sha256"] = data.sha256;
  }
  json["sections"] = name_of(data.sections);
  json["normalize_channels"] = name_of(data.normalize_channels);
  if (!data.palette.empty()) json["palette"] = data.palette;
  if (!data.shares.empty()) json["shares"] = data.shares;
  if (data.folds == 0) return;
  json["folds"] = data.folds;
  json["fold"] = data.fold;
}

/// The values of a field that need not be there.
template <class T>
void read_list(const Json& json, const char* name, std::vector<T>& values) {
  for (const auto& value : json.value(name, Json::array())) {
    if (!holds<T>(value))
      throw InvalidArgument(fmt::format("\"{}\" cannot have {:.100}", name, value.dump()));
    values.push_back(value.template get<T>());
  }
}

void read_pictures(const Json& json, DataConfig& data) {
  read_list(json, "inputs", data.inputs);
  read_if_there(json, "target", data.target);
  read_if_there(json, "sha256", data.sha256);
  visit_later_data(data,
                   [&](const char* name, auto& member) { read_if_there(json, name, member); });
  data.sections = segmentation::Sections::Apart;
  read_if_there(json, "sections", data.sections);
  data.normalize_channels = segmentation::NormalizeChannels::Together;
  read_if_there(json, "normalize_channels", data.normalize_channels);
  read_if_there(json, "palette", data.palette);
  read_list(json, "shares", data.shares);
  read_if_there(json, "folds", data.folds);
  read_if_there(json, "fold", data.fold);
}

/// A preset, or one whose network is not here: attach_network.
void read_model(const Json& json, RunConfig& config) {
  if (!json.contains("network")) {
    config.model = model_preset(json.at("name").get<std::string>());
  } else {
    const auto& network = json.at("network");
    config.model.architecture = Architecture::Given;
    read_field(network, "sha256", config.network.sha256);
    read_list(network, "frozen", config.network.frozen);
    for (const auto& row : network.value("rows", Json::array()))
      read_list(Json{{"rows", row}}, "rows", config.network.rows.emplace_back());
    read_if_there(json, "maps", config.model.maps);
  }
  visit_model(config.model, reader(json));
}

/// Runs of before labels were kept split masks of two classes at half of their full scale.
void read_labels(const Json& data, RunConfig& config) {
  read_if_there(data, "labels", config.data.labels);
  const bool has_masks = config.model.maps && !is_synthetic(config.data);
  if (data.contains("labels") || config.model.classes > 2 || !has_masks) return;
  config.data.labels = config.data.invert ? segmentation::kBelowHalf : segmentation::kAboveHalf;
}

}  // namespace

std::string to_json(const ModelConfig& model) { return model_json(model).dump(); }

std::string to_json(const RunConfig& config) {
  Json json = {{"model", model_json(config.model)}, {"data", Json::object()}};
  visit_data(config.data, writer(json["data"]));
  json["optimizer"] = name_of(config.training.optimizer.kind);
  json["loss"] = name_of(config.training.loss);
  visit_run(config, writer(json));
  if (!config.data.labels.empty()) json["data"]["labels"] = config.data.labels;
  write_pictures(config.data, json["data"]);
  json["checkpoint_every"] = config.checkpoint_every;
  json["statistics_batches"] = config.statistics_batches;
  visit_weights(config.weights, writer(json["weights"]));
  json["accumulate"] = config.accumulate;
  json["warmup"] = config.warmup;
  if (!config.init.empty()) {
    json["init"] = config.init;
    json["init_skip"] = config.init_skip;
    if (!config.init_names.empty()) json["init_names"] = config.init_names;
    json["init_sha256"] = config.init_sha256;
  }
  json["keep"] = name_of(config.keep);
  json["patience"] = config.patience;
  if (!config.cut.empty()) json["cut"] = config.cut;
  try {
    return json.dump();
  } catch (const Json::type_error&) {
    throw InvalidArgument(fmt::format(
        "a run keeps its paths and names in UTF-8, and one of its data (\"{}\"), its list or its "
        "start is not; rename it",
        shown(config.data.images.empty() ? config.data.source : config.data.images)));
  }
}

RunConfig run_config_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    RunConfig config;
    read_model(json.at("model"), config);
    visit_data(config.data, reader(json.at("data")));
    read_labels(json.at("data"), config);
    read_pictures(json.at("data"), config.data);
    read_field(json, "optimizer", config.training.optimizer.kind);
    read_field(json, "loss", config.training.loss);
    visit_run(config, reader(json));
    read_if_there(json, "checkpoint_every", config.checkpoint_every);
    read_if_there(json, "accumulate", config.accumulate);
    read_if_there(json, "warmup", config.warmup);
    read_if_there(json, "init", config.init);
    read_if_there(json, "init_names", config.init_names);
    read_if_there(json, "init_sha256", config.init_sha256);
    read_list(json, "init_skip", config.init_skip);
    read_if_there(json, "keep", config.keep);
    read_if_there(json, "patience", config.patience);
    config.statistics_batches = 0;  // of runs from before there were any
    read_if_there(json, "statistics_batches", config.statistics_batches);
    if (json.contains("weights")) visit_weights(config.weights, reader(json.at("weights")));
    read_list(json, "cut", config.cut);
    validate(config);
    return config;
  } catch (const Json::exception& error) {
    throw InvalidArgument(fmt::format("the run's configuration is not readable: {}", error.what()));
  }
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

/// A run whose network makes a row of each example.
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
  static_cast<void>(to_json(config));  // what a checkpoint could not keep
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
