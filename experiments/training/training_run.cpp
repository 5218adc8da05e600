// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/io/atomic_file.h"
#include "core/io/image.h"

namespace triptych::training {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLossesTensor = "run.losses";

std::filesystem::path checkpoint_folder(const std::filesystem::path& folder) {
  return folder / "checkpoint";
}

Json epoch_json(const EpochReport& report) {
  return {{"epoch", report.epoch},
          {"steps", report.steps},
          {"loss", report.loss},
          {"images", report.scores.images},
          {"mean_dice", report.scores.mean_dice},
          {"mean_iou", report.scores.mean_iou},
          {"pooled_dice", report.scores.pooled_dice},
          {"pooled_iou", report.scores.pooled_iou},
          {"pixel_accuracy", report.scores.pixel_accuracy},
          {"train_seconds", report.train_time.seconds},
          {"evaluate_seconds", report.evaluate_time.seconds},
          {"images_per_second", report.images_per_second}};
}

EpochReport epoch_from_json(const Json& json, TimeKind kind) {
  EpochReport report;
  json.at("epoch").get_to(report.epoch);
  json.at("steps").get_to(report.steps);
  json.at("loss").get_to(report.loss);
  json.at("images").get_to(report.scores.images);
  json.at("mean_dice").get_to(report.scores.mean_dice);
  json.at("mean_iou").get_to(report.scores.mean_iou);
  json.at("pooled_dice").get_to(report.scores.pooled_dice);
  json.at("pooled_iou").get_to(report.scores.pooled_iou);
  json.at("pixel_accuracy").get_to(report.scores.pixel_accuracy);
  report.scores.pixel_error = 1 - report.scores.pixel_accuracy;
  report.train_time = {json.at("train_seconds").get<double>(), kind};
  report.evaluate_time = {json.at("evaluate_seconds").get<double>(), kind};
  json.at("images_per_second").get_to(report.images_per_second);
  return report;
}

Checkpoint load_run(const std::filesystem::path& folder) {
  if (!has_checkpoint(checkpoint_folder(folder))) {
    throw IoError(fmt::format("{} holds no checkpoint; give the folder that `triptych train` wrote",
                              folder.string()));
  }
  return load_checkpoint(checkpoint_folder(folder));
}

RunConfig config_of(const Checkpoint& checkpoint) {
  const auto run = Json::parse(checkpoint.info.run_json);
  return run_config_from_json(run.at("config").dump());
}

/// `text` as a grey panel beside others: width is the sum of the panels and white lines between.
Image side_by_side(const std::vector<std::vector<std::uint16_t>>& panels, std::int64_t height,
                   std::int64_t width) {
  constexpr std::int64_t kGap = 4;
  const auto count = std::ssize(panels);
  Image image;
  image.height = height;
  image.width = count * width + (count - 1) * kGap;
  image.samples.assign(static_cast<std::size_t>(image.pixels()), 255);
  for (std::int64_t p = 0; p < count; ++p) {
    for (std::int64_t row = 0; row < height; ++row) {
      const auto& panel = panels[static_cast<std::size_t>(p)];
      std::copy_n(panel.begin() + row * width, width,
                  image.samples.begin() + row * image.width + p * (width + kGap));
    }
  }
  return image;
}

std::vector<std::uint16_t> label_panel(std::span<const std::uint8_t> labels, std::int64_t classes) {
  const auto step = 255 / std::max<std::int64_t>(1, classes - 1);
  std::vector<std::uint16_t> panel;
  for (const auto label : labels) panel.push_back(static_cast<std::uint16_t>(label * step));
  return panel;
}

std::vector<std::uint16_t> image_panel(const segmentation::Sample& sample) {
  std::vector<std::uint16_t> panel;
  for (std::int64_t i = 0; i < sample.pixels(); ++i) {
    panel.push_back(
        static_cast<std::uint16_t>(std::lround(sample.image[static_cast<std::size_t>(i)] * 255)));
  }
  return panel;
}

}  // namespace

TrainingRun::TrainingRun(const Machine& machine, RunConfig config, std::filesystem::path folder)
    : TrainingRun(machine, std::move(config), std::move(folder), nullptr) {}

TrainingRun::TrainingRun(const Machine& machine, RunConfig config, std::filesystem::path folder,
                         const Checkpoint* checkpoint)
    : machine_(machine),
      config_(std::move(config)),
      folder_(std::move(folder)),
      data_(load_data(config_)),
      batcher_(data_.train, data_.normalization, batcher_options(config_)) {
  if (checkpoint == nullptr && has_checkpoint(checkpoint_folder(folder_))) {
    throw InvalidArgument(fmt::format(
        "{0} holds a run already; go on with it by --resume {0}, or choose another --out",
        folder_.string()));
  }
  const TrainerConfig trainer = {config_.model, config_.training, config_.memory_limit_mib};
  trainer_ = std::make_unique<Trainer>(machine, trainer);
  predictor_ = std::make_unique<Predictor>(machine, config_.model, trainer_->states(),
                                           TileOptions{config_.tile, config_.margin});
  if (checkpoint == nullptr) {
    save();
    return;
  }
  TensorMap states;
  for (const auto& [name, tensor] : checkpoint->tensors) {
    if (name != kLossesTensor) states.emplace(name, tensor.clone());
  }
  trainer_->restore(states);
  const auto losses = checkpoint->tensors.at(kLossesTensor).as<float>();
  losses_.assign(losses.begin(), losses.end());
  const auto kind = machine.device().info().time_kind;
  for (const auto& epoch : Json::parse(checkpoint->info.run_json).at("epochs")) {
    epochs_.push_back(epoch_from_json(epoch, kind));
  }
}

std::unique_ptr<TrainingRun> TrainingRun::resume(const Machine& machine,
                                                 const std::filesystem::path& folder) {
  const auto checkpoint = load_run(folder);
  return std::unique_ptr<TrainingRun>(
      new TrainingRun(machine, config_of(checkpoint), folder, &checkpoint));
}

std::int64_t TrainingRun::steps_per_epoch() const {
  if (config_.steps_per_epoch > 0) return config_.steps_per_epoch;
  const auto images = std::ssize(data_.train.samples);
  return std::max<std::int64_t>(1, images / config_.training.batch);
}

float TrainingRun::train_step(std::int64_t step) {
  const auto batch = config_.training.batch;
  const auto data = batcher_.draw(step * batch, batch);
  return trainer_->step(data.x, data.y, config_.learning_rate);
}

void TrainingRun::explain_bad_loss(std::int64_t step) {
  std::int64_t first = 0;
  trainer_->reset();
  if (has_checkpoint(checkpoint_folder(folder_))) {
    auto checkpoint = load_checkpoint(checkpoint_folder(folder_));
    checkpoint.tensors.erase(kLossesTensor);
    trainer_->restore(checkpoint.tensors);
    first = checkpoint.info.step;
  }
  const auto batch = config_.training.batch;
  for (auto replay = first; replay <= step; ++replay) {
    const auto data = batcher_.draw(replay * batch, batch);
    const auto node = trainer_->step_until_not_finite(data.x, data.y, config_.learning_rate);
    if (!node) continue;
    throw NumericError(fmt::format(
        "the loss of step {} is not finite; the first such number came from node \"{}\" in step "
        "{}. The checkpoint of step {} in {} is good; try a lower --lr",
        step + 1, *node, replay + 1, first, folder_.string()));
  }
  throw NumericError(fmt::format("the loss of step {} is not finite", step + 1));
}

End TrainingRun::train(std::int64_t epochs, std::optional<std::int64_t> steps,
                       const Observer& observer, const std::atomic<bool>& interrupted) {
  const auto per_epoch = steps_per_epoch();
  const auto total = steps.value_or(epochs * per_epoch);
  auto step = std::ssize(losses_);
  double train_seconds = 0;
  while (step < total && !interrupted) {
    const auto start = machine_.device().elapsed().seconds;
    const float loss = train_step(step);
    train_seconds += machine_.device().elapsed().seconds - start;
    if (!std::isfinite(loss)) explain_bad_loss(step);
    losses_.push_back(loss);
    ++step;
    observer.on_step({step, total, (step - 1) / per_epoch + 1, loss});
    const bool epoch_ends = step % per_epoch == 0;
    if (!epoch_ends && (step < total || interrupted)) continue;
    const auto report = report_epoch((step - 1) / per_epoch * per_epoch, train_seconds);
    if (epoch_ends) epochs_.push_back(report);
    observer.on_epoch(report);
    train_seconds = 0;
    if (step < total) save();
  }
  save();
  return step < total ? End::Interrupted : End::Finished;
}

EpochReport TrainingRun::report_epoch(std::int64_t first_step, double train_seconds) {
  const auto kind = machine_.device().info().time_kind;
  const auto first = losses_.begin() + first_step;
  EpochReport report;
  report.epoch = first_step / steps_per_epoch() + 1;
  report.steps = std::distance(first, losses_.end());
  report.loss = std::accumulate(first, losses_.end(), 0.0) / static_cast<double>(report.steps);
  report.train_time = {train_seconds, kind};
  report.images_per_second =
      static_cast<double>(report.steps * config_.training.batch) / train_seconds;
  const auto start = machine_.device().elapsed().seconds;
  segmentation::Scorer scorer(std::max<std::int64_t>(2, config_.model.classes));
  for (const auto& sample : data_.validation.samples) scorer.add(predict(sample), sample.labels);
  report.scores = scorer.scores();
  report.evaluate_time = {machine_.device().elapsed().seconds - start, kind};
  return report;
}

std::vector<std::uint8_t> TrainingRun::predict(const segmentation::Sample& sample) {
  const auto image = segmentation::normalized(sample, data_.normalization);
  const auto logits = predictor_->logits(image, {sample.height, sample.width});
  return segmentation::classes_from_logits(logits, config_.model.classes);
}

void TrainingRun::save() {
  Json run = {{"config", Json::parse(to_json(config_))},
              {"contract", to_string(machine_.config().contract)},
              {"normalization",
               {{"mean", data_.normalization.mean}, {"deviation", data_.normalization.deviation}}},
              {"epochs", Json::array()}};
  for (const auto& epoch : epochs_) run["epochs"].push_back(epoch_json(epoch));
  const auto step = std::ssize(losses_);
  auto tensors = trainer_->snapshot();
  tensors.emplace(kLossesTensor, Tensor(Shape{step}, losses_));
  save_checkpoint(checkpoint_folder(folder_), tensors,
                  {.step = step,
                   .epoch = step / steps_per_epoch(),
                   .seed = config_.training.seed,
                   .samples_drawn = step * config_.training.batch,
                   .model_json = to_json(config_.model),
                   .run_json = run.dump()});
  std::string csv = "step,loss\n";
  for (std::size_t i = 0; i < losses_.size(); ++i) {
    csv += fmt::format("{},{:.9g}\n", i + 1, losses_[i]);
  }
  write_file_atomically(folder_ / "losses.csv", csv);
}

void TrainingRun::write_masks(std::size_t count) {
  const auto folder = folder_ / "masks";
  std::filesystem::create_directories(folder);
  const auto classes = std::max<std::int64_t>(2, config_.model.classes);
  for (std::size_t i = 0; i < std::min(count, data_.validation.samples.size()); ++i) {
    const auto& sample = data_.validation.samples[i];
    save_png(folder / (sample.name + ".png"),
             side_by_side({image_panel(sample), label_panel(sample.labels, classes),
                           label_panel(predict(sample), classes)},
                          sample.height, sample.width));
  }
}

}  // namespace triptych::training
