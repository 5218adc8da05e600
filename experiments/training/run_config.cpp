// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "experiments/segmentation/synthetic.h"

namespace triptych::training {
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
  visit("epochs", config.epochs);
  visit("steps_per_epoch", config.steps_per_epoch);
  visit("augmentation", config.augmentation);
  visit("drawing", config.drawing);
  visit("memory_limit_mib", config.memory_limit_mib);
  visit("tile", config.tile);
  visit("margin", config.margin);
}

auto writer(Json& json) {
  return [&json](const char* name, const auto& member) { json[name] = member; };
}

auto reader(const Json& json) {
  return [&json](const char* name, auto& member) { json.at(name).get_to(member); };
}

Json model_json(const ModelConfig& model) {
  Json json;
  visit_model(model, writer(json));
  return json;
}

}  // namespace

std::string to_json(const ModelConfig& model) { return model_json(model).dump(); }

std::string to_json(const RunConfig& config) {
  Json json = {{"model", model_json(config.model)}, {"data", Json::object()}};
  visit_data(config.data, writer(json["data"]));
  json["optimizer"] = to_string(config.training.optimizer.kind);
  json["loss"] = to_string(config.training.loss);
  visit_run(config, writer(json));
  return json.dump();
}

RunConfig run_config_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    RunConfig config;
    config.model = model_preset(json.at("model").at("name").get<std::string>());
    visit_model(config.model, reader(json.at("model")));
    visit_data(config.data, reader(json.at("data")));
    config.training.optimizer.kind = optimizer_from_string(json.at("optimizer").get<std::string>());
    config.training.loss = loss_from_string(json.at("loss").get<std::string>());
    visit_run(config, reader(json));
    validate(config.model);
    return config;
  } catch (const Json::exception& error) {
    throw InvalidArgument(fmt::format("the run's configuration is not readable: {}", error.what()));
  }
}

namespace {

segmentation::Dataset load_all(const RunConfig& config) {
  const auto& data = config.data;
  if (data.source == "synthetic" && data.images.empty()) {
    if (config.model.classes > 2 || config.model.in_channels != 1) {
      throw InvalidArgument(
          "synthetic images are grey and binary; leave --in-channels and --classes");
    }
    const auto side = 2 * config.model.size;
    return segmentation::synthetic_dataset({.size = {side, side}, .seed = config.training.seed},
                                           data.synthetic_images);
  }
  const std::filesystem::path source = data.source;
  segmentation::DatasetOptions options;
  options.images = data.images.empty() ? source / "images" : std::filesystem::path(data.images);
  options.masks = data.masks.empty() ? source / "masks" : std::filesystem::path(data.masks);
  options.list = data.list;
  options.channels = config.model.in_channels;
  options.classes = config.model.classes;
  options.invert = data.invert;
  return segmentation::load_dataset(options);
}

}  // namespace

TrainingData load_data(const RunConfig& config) {
  TrainingData data;
  auto all = load_all(config);
  data.validation = segmentation::take_split(all, config.data.validation_split);
  if (data.validation.samples.empty()) {
    data.validation =
        segmentation::take_fraction(all, config.data.validation_fraction, config.training.seed);
    data.train = std::move(all);
  } else {
    data.train = segmentation::take_split(all, config.data.train_split);
  }
  if (data.train.samples.empty()) {
    throw InvalidArgument(fmt::format(
        "no training images are left; lower --validation, or check --train-split \"{}\"",
        config.data.train_split));
  }
  data.normalization = segmentation::normalization_of(data.train);
  return data;
}

segmentation::BatcherOptions batcher_options(const RunConfig& config) {
  segmentation::BatcherOptions options;
  auto& augment = options.augment;
  augment.height = augment.width = config.model.size;
  const bool all = config.augmentation == "all";
  if (!all && config.augmentation != "flips" && config.augmentation != "none") {
    throw InvalidArgument(
        fmt::format("unknown augmentation \"{}\"; use none, flips or all", config.augmentation));
  }
  augment.flip_x = augment.flip_y = augment.transpose = config.augmentation != "none";
  augment.max_rotation_degrees = all ? 180.0F : 0.0F;
  augment.elastic_sigma = all ? 10.0F * static_cast<float>(config.model.size) / 512.0F : 0.0F;
  if (config.drawing == "replacement") {
    options.drawing = segmentation::Drawing::WithReplacement;
  } else if (config.drawing != "epochs") {
    throw InvalidArgument(
        fmt::format("unknown drawing \"{}\"; use epochs or replacement", config.drawing));
  }
  options.seed = config.training.seed;
  return options;
}

}  // namespace triptych::training
