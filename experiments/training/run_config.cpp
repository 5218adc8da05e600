// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "core/base/available_memory.h"
#include "experiments/training/data/labels.h"
#include "experiments/training/data/sample_cache.h"
#include "experiments/training/data/synthetic.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/run_limits.h"
#include "experiments/training/saved_fields.h"
#include "experiments/training/synthetic_images.h"

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
  return json;
}

bool is_given(const DataConfig& data) { return data.source == kGivenData; }

bool is_synthetic(const DataConfig& data) {
  return data.source == "synthetic" && data.images.empty() && data.masks.empty();
}

/// Members that runs of before they existed have not, and that are written only where they say
/// something.
void write_pictures(const DataConfig& data, Json& json) {
  const DataConfig usual;
  if (!data.mask_pattern.empty()) json["mask_pattern"] = data.mask_pattern;
  if (data.ignore_label != usual.ignore_label) json["ignore_label"] = data.ignore_label;
  if (!data.class_names.empty()) json["class_names"] = data.class_names;
  if (data.normalize != usual.normalize) json["normalize"] = name_of(data.normalize);
  if (data.cache_mib != usual.cache_mib) json["cache_mib"] = data.cache_mib;
  json["sections"] = name_of(data.sections);
  if (data.folds == 0) return;
  json["folds"] = data.folds;
  json["fold"] = data.fold;
}

void read_pictures(const Json& json, DataConfig& data) {
  read_if_there(json, "mask_pattern", data.mask_pattern);
  read_if_there(json, "ignore_label", data.ignore_label);
  read_if_there(json, "class_names", data.class_names);
  read_if_there(json, "normalize", data.normalize);
  read_if_there(json, "cache_mib", data.cache_mib);
  data.sections = segmentation::Sections::Apart;
  read_if_there(json, "sections", data.sections);
  read_if_there(json, "folds", data.folds);
  read_if_there(json, "fold", data.fold);
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

/// A preset, or one whose network is not here: attach_network.
void read_model(const Json& json, RunConfig& config) {
  if (!json.contains("network")) {
    config.model = model_preset(json.at("name").get<std::string>());
  } else {
    const auto& network = json.at("network");
    config.model.architecture = Architecture::Given;
    read_field(network, "sha256", config.network.sha256);
    read_list(network, "frozen", config.network.frozen);
  }
  visit_model(config.model, reader(json));
}

/// Runs of before labels were kept split masks of two classes at half of their full scale.
void read_labels(const Json& data, RunConfig& config) {
  read_if_there(data, "labels", config.data.labels);
  if (data.contains("labels") || config.model.classes > 2 || is_synthetic(config.data)) return;
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
  if (config.weights.any()) visit_weights(config.weights, writer(json["weights"]));
  if (config.accumulate != 1) json["accumulate"] = config.accumulate;
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
  return json.dump();
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
  if (data.folds > 0) return {data.train_split};  // what validates otherwise is left for a test
  return {data.train_split, data.validation_split};
}

/// True when pixels count differently in the loss.
bool weighted(const RunConfig& config) {
  return config.weights.any() || config.data.ignore_label >= 0;
}

std::int64_t cache_bytes(const DataConfig& data) {
  if (data.cache_mib > 0) return data.cache_mib << 20;
  constexpr auto most = std::uint64_t{1} << 60;  // where the system does not say
  return static_cast<std::int64_t>(std::min<std::uint64_t>(available_memory(), most) / 2);
}

/// Loads these splits of the list, or all where there are none.
segmentation::Dataset load_all(const RunConfig& config, std::vector<std::string> splits,
                               const std::function<void()>& on_file) {
  const auto& data = config.data;
  if (is_synthetic(data)) return synthetic_images(config);
  if (is_given(data)) {
    throw InvalidArgument(
        "the images of this run were given to it by a program, which must give them again");
  }
  const std::filesystem::path source = data.source;
  std::error_code ignored;
  const bool whole = data.images.empty() || data.masks.empty();
  if (whole && !std::filesystem::is_directory(source, ignored)) {
    throw IoError(fmt::format(
        "the option data \"{}\" is not a folder; it must hold images/ and masks/ of PNG, "
        "TIFF or JPEG files (or give two folders by the option images and the option "
        "masks)",
        data.source));
  }
  segmentation::DatasetOptions options;
  options.images = data.images.empty() ? source / "images" : std::filesystem::path(data.images);
  options.masks = data.masks.empty() ? source / "masks" : std::filesystem::path(data.masks);
  options.list = data.list;
  options.mask_pattern = data.mask_pattern;
  if (data.ignore_label >= 0) options.ignored = static_cast<std::uint16_t>(data.ignore_label);
  if (!data.class_names.empty())
    options.class_names = segmentation::parse_class_names(data.class_names, config.model.classes);
  options.channels = config.model.in_channels;
  options.classes = config.model.classes;
  options.invert = data.invert;
  options.labels = data.labels;
  options.on_file = on_file;
  options.cache_bytes = cache_bytes(data);
  options.weighted = weighted(config);
  options.splits = std::move(splits);
  return segmentation::load_dataset(options);
}

/// Refuses crops that no image nearly fills: they would be mirrors of mirrors.
void require_filled(const segmentation::Dataset& dataset, std::int64_t size) {
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
  if (!data.labels.empty()) segmentation::LabelMap(data.labels, config.model.classes);
  if (!data.class_names.empty())
    segmentation::parse_class_names(data.class_names, config.model.classes);
  if (is_synthetic(data)) validate_synthetic(config);
}

namespace {

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

/// Draws validation images where there are none yet, normalises, and weights pixels.
TrainingData prepare(const RunConfig& config, TrainingData data) {
  if (data.validation.samples.empty()) hold_out(config, data);
  if (data.train.samples.empty()) {
    throw InvalidArgument(
        fmt::format("no training image is left beside {} for validation; add images or lower the "
                    "option validation",
                    data.validation.samples.size()));
  }
  if (config.data.normalize == segmentation::NormalizeBy::Image) {
    for (auto* part : {&data.train, &data.validation})
      part->change(segmentation::normalize_by_itself);
  } else {
    data.normalization = segmentation::normalization_of(data.train);
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
  if (config.data.normalize == segmentation::NormalizeBy::Image)
    images.change(segmentation::normalize_by_itself);
  if (images.cache) images.cache->go_quiet();
  return images;
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
