// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/training_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/base/list_text.h"
#include "core/io/output_ledger.h"
#include "experiments/training/best_epoch.h"
#include "experiments/training/data/log_loss.h"
#include "experiments/training/imported_network.h"
#include "experiments/training/initial_weights.h"
#include "experiments/training/learning_rate.h"
#include "experiments/training/row_evaluation.h"
#include "experiments/training/run_arrays.h"
#include "experiments/training/runs_on_data.h"
#include "experiments/training/statistics_estimate.h"
#include "experiments/training/tensors_hash.h"

namespace triptych::training {
namespace {

/// `config`, when it is valid and the folder can hold it: fails before any work.
RunConfig checked_new(RunConfig config, const std::filesystem::path& folder, bool leads) {
  validate(config);
  if (!leads) return config;  // writes nothing
  require_room(folder);
  return config;
}

/// The configuration of `saved`, when its weights can be trained on.
RunConfig trainable(SavedRun& saved, const std::filesystem::path& folder) {
  if (saved.machine.contract == Contract::Int8) {
    throw InvalidArgument(fmt::format(
        "the weights in \"{}\" are int8, for inference alone; resume the run they come from",
        folder.string()));
  }
  return std::move(saved.config);
}

TrainerConfig trainer_config(const RunConfig& config) {
  return {.model = config.model,
          .options = training_options(config),
          .memory_limit_mib = config.memory_limit_mib,
          .accumulate = config.accumulate,
          .cut = config.cut};
}

/// Times of different kinds have no sum, so that another kind begins again.
OpenEpoch time_of(const DeviceSet& machine, const OpenEpoch& saved) {
  return saved.time.kind == machine.device().info().time_kind ? saved : OpenEpoch();
}

}  // namespace

TrainingRun::TrainingRun(const DeviceSet& machine, RunConfig config, std::filesystem::path folder,
                         const LoadData& load)
    : machine_(machine),
      leads_(leads(machine.config().parallel)),
      config_(checked_new(std::move(config), folder, leads_)),
      folder_(std::move(folder)),
      trainer_(machine, trainer_config(config_)),
      predictor_(machine, config_.model, trainer_, {config_.tile, config_.margin}),
      batch_statistics_(machine, config_.model, statistics_batch(), trainer_),
      data_(load(config_, [this] { trainer_.tell_busy("loading images"); })) {
  begin_batches();
  if (!trainer_.cut().empty()) config_.cut = trainer_.cut();
  take_meaning();
  if (!config_.data.inputs.empty()) config_.data.sha256 = sha256_of(*data_.train.arrays);
  require_fitting();
  take_initial_weights();
  require_rank_consistency({});
  if (leads_) lock_.emplace(folder_);
  checked_new(config_, folder_,
              leads_);  // another process may have begun while the data was loaded
  if (leads_) begin_outputs(Elsewhere::Possible);
  if (config_.schedule_steps == 0) config_.schedule_steps = total_steps();
  save();
  if (leads_) note_run_on(config_.data, folder_);
}

TrainingRun::TrainingRun(const DeviceSet& machine, SavedRun saved, std::filesystem::path folder,
                         const LoadData& load)
    : machine_(machine),
      leads_(leads(machine.config().parallel)),
      config_(trainable(saved, folder)),
      folder_(std::move(folder)),
      trainer_(machine, trainer_config(config_)),
      predictor_(machine, config_.model, trainer_, {config_.tile, config_.margin}),
      batch_statistics_(machine, config_.model, statistics_batch(), trainer_),
      data_(load(config_, [this] { trainer_.tell_busy("loading images"); })),
      losses_(std::move(saved.losses)),
      epochs_(std::move(saved.epochs)),
      open_epoch_(time_of(machine, saved.open_epoch)) {
  begin_batches();
  require_schedule_of_old(config_, std::ssize(losses_), total_steps(), folder_);
  if (leads_) {
    lock_.emplace(folder_);
    begin_outputs(Elsewhere::Impossible);
  }
  require_same_images(saved, data_.normalization, folder_);
  if (!trainer_.cut().empty()) config_.cut = trainer_.cut();
  take_meaning();
  require_rank_consistency(saved.states);
  trainer_.restore(saved.states);
  trainer_.set_updates(std::move(saved.updates));
  if (leads_) note_run_on(config_.data, folder_);
}

void TrainingRun::take_meaning() {
  config_.data.labels = data_.train.labels;
  config_.data.palette = data_.train.palette;
  config_.data.shares = data_.train.shares;
}

void TrainingRun::begin_batches() {
  if (!data_.stream) {
    batcher_.emplace(data_.train, data_.normalization, batcher_options(config_));
    return;
  }
  const auto transport = machine_.config().parallel.transport;
  if (trainer_.asynchronous() || transport == Transport::Mpi) {
    throw InvalidArgument(
        "batches that come ready feed ranks of one process that step together; give images, from "
        "which every rank draws its own");
  }
  config_.statistics_batches = 0;
}

void TrainingRun::require_fitting() const {
  if (config_.warmup > total_steps()) {
    throw InvalidArgument(
        fmt::format("the option warmup, {}, is longer than the run, {}; give fewer", config_.warmup,
                    counted(total_steps(), "step")));
  }
  require_schedule_of_new(config_, total_steps());
  if (config_.keep == Keep::None || !data_.validation.samples.empty()) return;
  throw InvalidArgument(fmt::format(
      "the option keep {} chooses by validation images, and there are none; give the option "
      "validation above 0 or "
      "a split, or leave out the option keep",
      name_of(config_.keep)));
}

void TrainingRun::take_initial_weights() {
  if (config_.init.empty()) return;
  auto initial = load_initial_weights(config_.init);
  TensorMap states;
  for (const auto& [name, source] : trainer_.state_sources()) states.emplace(name, source.read());
  WeightChoice choice = {
      .skip = config_.init_skip,
      .source = config_.init,
      .is_optimizers = [&](const std::string& name) { return trainer_.optimizer_has(name); }};
  if (!config_.init_names.empty()) choice.names = NameMap(config_.init_names);
  if (const auto* network = imported_network(config_.model))
    network->require_kept(initial.tensors, choice.names);
  auto taken = take_weights(states, initial.tensors, choice);
  trainer_.restore(states);
  config_.init_sha256 = std::move(taken.sha256);
  notes_ = std::move(initial.notes);
  notes_.push_back(std::move(taken.text));
}

bool TrainingRun::stopped_early() const {
  return out_of_patience(epochs_, config_.keep, config_.patience);
}

void TrainingRun::begin_outputs(Elsewhere elsewhere) {
  remove_leavings(folder_);
  OutputLedger own(folder_, elsewhere);
  for (const auto* file : kReportFiles) own.require(file);
  if (config_.model.maps)
    for (const auto& sample : data_.validation.samples) own.require(mask_file(sample));
  log_.emplace(folder_, columns_of(config_));
}

std::int64_t TrainingRun::statistics_batch() const {
  const auto fixed = config_.model.fixed_batch();
  return fixed > 0 ? fixed : config_.training.batch;
}

std::int64_t TrainingRun::steps_per_epoch() const {
  if (config_.steps_per_epoch > 0) return config_.steps_per_epoch;
  if (data_.stream) return data_.stream_steps;
  const auto images = std::ssize(data_.train.samples);
  return std::max<std::int64_t>(1, images / config_.training.batch);
}

std::int64_t TrainingRun::total_steps() const {
  if (config_.epochs == 0) return config_.steps;
  const auto steps = checked_mul(config_.epochs, steps_per_epoch());
  return config_.steps == 0 ? steps : std::min(steps, config_.steps);
}

float TrainingRun::learning_rate(std::int64_t step) const {
  return learning_rate_of(config_, step);
}

Rows TrainingRun::rows() const {
  return data_.stream ? Rows{0, config_.training.batch} : trainer_.rows();
}

segmentation::Batch TrainingRun::draw(std::int64_t step, const Rows& rows) const {
  if (data_.stream) return data_.stream(step);
  if (rows.count == 0) return {};  // the ranks of this process have no inputs
  return batcher_->draw(step * config_.training.batch + rows.first, rows.count);
}

void TrainingRun::require_rank_consistency(const TensorMap& states) {
  if (machine_.config().parallel.transport != Transport::Mpi) return;
  auto facts = facts_of(config_, machine_.config());
  facts["images"] = digest_of(data_, [this] { trainer_.tell_busy("loading images"); });
  facts["step"] = std::to_string(losses_.size());
  TensorsHash hash;
  for (const auto& [name, tensor] : states) hash.add(name, tensor);
  facts["checkpoint"] = states.empty() ? "none" : hash.finish();
  trainer_.require_rank_consistency(facts);
}

segmentation::Batch TrainingRun::take_batch(std::int64_t step, const Rows& rows) {
  const bool drawn = ahead_.batch.valid() && ahead_.step == step &&
                     ahead_.rows.first == rows.first && ahead_.rows.count == rows.count;
  if (drawn) return ahead_.batch.get();
  ahead_ = {};
  return draw(step, rows);
}

void TrainingRun::draw_ahead(std::int64_t step, const Rows& rows) {
  if (step >= total_steps()) return;
  ahead_ = {step, rows, std::async(std::launch::async, [=, this] { return draw(step, rows); })};
}

float TrainingRun::train_step(std::int64_t step) {
  const auto drawn = rows();
  const auto data = take_batch(step, drawn);
  draw_ahead(step + 1, drawn);
  return trainer_.step(data.x, data.y, learning_rate(step), drawn.first, data.others);
}

void TrainingRun::explain_bad_loss(std::int64_t step) {
  if (!trainer_.asynchronous() && !data_.stream) find_bad_node(step);
  throw NumericError(fmt::format(
      "the loss of step {} is not finite; the checkpoint in \"{}\" is good; start a new run with "
      "the option lr below {}{}",
      step + 1, folder_.string(), config_.learning_rate,
      data_.stream ? "" : ", or search for the node with the option parallel dp"));
}

void TrainingRun::find_bad_node(std::int64_t step) {
  const auto saved = load_run(folder_);
  const auto first = std::ssize(saved.losses);
  trainer_.restore(saved.states);
  const auto batch = config_.training.batch;
  for (auto replay = first; replay <= step; ++replay) {
    const auto data = batcher_->draw(replay * batch, batch);
    const auto node = trainer_.step_until_not_finite(data, learning_rate(replay));
    if (!node) continue;
    throw NumericError(fmt::format(
        "the loss of step {} is not finite; the first such number came from node \"{}\" in step "
        "{}. The checkpoint of step {} in \"{}\" is good; start a new run with the option lr below "
        "{}",
        step + 1, *node, replay + 1, first, folder_.string(), config_.learning_rate));
  }
  throw NumericError(fmt::format("the loss of step {} is not finite", step + 1));
}

std::int64_t TrainingRun::stretch_end(std::int64_t step) const {
  const auto after = [&](std::int64_t period) { return (step / period + 1) * period; };
  const auto end = std::min(total_steps(), after(steps_per_epoch()));
  return config_.checkpoint_every > 0 ? std::min(end, after(config_.checkpoint_every)) : end;
}

void TrainingRun::train_some(std::int64_t step, std::int64_t end, const Observer& observer,
                             const std::atomic<bool>& interrupted) {
  const auto first = step;
  const auto on_loss = [&](float loss) {
    if (!std::isfinite(loss)) observer.on_bad_loss(step + 1);
    if (!std::isfinite(loss)) explain_bad_loss(step);
    losses_.push_back(loss);
    ++step;
    observer.on_step({step, total_steps(), (step - 1) / steps_per_epoch() + 1, loss});
  };
  if (!trainer_.asynchronous()) return on_loss(train_step(step));
  trainer_.run_stretch(
      end - first,
      {.inputs = [&](std::int64_t own, const Rows& rows) { return draw(first + own, rows); },
       .learning_rate = [&](std::int64_t own) { return learning_rate(first + own); },
       .on_loss = [&](std::int64_t, float loss) { on_loss(loss); },
       .interrupted = [&] { return interrupted.load(); }});
}

bool TrainingRun::evaluate_epoch(const Observer& observer, const std::atomic<bool>& interrupted) {
  const auto report = report_epoch(observer, interrupted);
  if (!report) return false;
  const bool whole = std::ssize(losses_) % steps_per_epoch() == 0;
  if (whole) {
    epochs_.push_back(*report);
    open_epoch_ = {};
  }
  log_metrics(whole ? std::nullopt : report);
  observer.on_epoch(*report);
  const bool best = whole && best_epoch(epochs_, config_.keep) == epochs_.size() - 1;
  if (config_.keep != Keep::None && trainer_.all_agree(best)) save_to(folder_ / kBestFolder);
  return true;
}

void TrainingRun::log_metrics(const std::optional<EpochReport>& part) {
  if (!log_) return;
  auto reports = epochs_;
  if (part) reports.push_back(*part);
  std::vector<MetricsRow> rows;
  for (auto& report : reports) {
    const auto step = (report.epoch - 1) * steps_per_epoch() + report.steps;
    rows.push_back({std::move(report), step, learning_rate(step - 1)});
  }
  log_->write(rows);
}

End TrainingRun::train(const Observer& observer, const std::atomic<bool>& interrupted) {
  for (const auto& note : notes_) observer.on_note(note);
  if (!data_.train.note.empty()) observer.on_note(data_.train.note);
  if (!data_.held_out.empty()) observer.on_note("validation: " + data_.held_out);
  if (!data_.train.labelling.empty()) {
    const auto* what = config_.model.maps ? "masks" : "folders";
    observer.on_note(fmt::format("{}: {}", what, data_.train.labelling));
  }
  const auto per_epoch = steps_per_epoch();
  const auto total = total_steps();
  auto step = std::ssize(losses_);
  const bool part = step >= total && step % per_epoch != 0;
  const bool unevaluated = std::ssize(epochs_) < step / per_epoch;
  if (part || unevaluated) {
    if (!evaluate_epoch(observer, interrupted)) return End::Interrupted;
    if (unevaluated) save();
  }
  bool early = !trainer_.all_agree(!stopped_early());
  if (step >= total || early) return End::Finished;
  bool due = false;      // a checkpoint
  bool stopped = false;  // within an evaluation
  // Ranks that are apart go on until they have met.
  while (step < total && (!trainer_.synchronized() || trainer_.all_agree(!interrupted))) {
    const auto start = machine_.device().elapsed().seconds;
    const auto before = step;
    train_some(step, stretch_end(step), observer, interrupted);
    step = std::ssize(losses_);
    const auto elapsed = machine_.device().elapsed();
    open_epoch_.time = {open_epoch_.time.seconds + elapsed.seconds - start, elapsed.kind};
    open_epoch_.steps += step - before;
    const bool epoch_ends = step % per_epoch == 0;
    if (epoch_ends || step == total) trainer_.synchronize();
    due = due || (config_.checkpoint_every > 0 && step % config_.checkpoint_every == 0);
    if (!epoch_ends && step < total) {
      if (due && trainer_.synchronized()) {
        save();
        due = false;
      }
      continue;
    }
    stopped = !evaluate_epoch(observer, interrupted);
    early = !stopped && !trainer_.all_agree(!stopped_early());
    if (stopped || early) break;
    due = false;
    if (step < total) save();
  }
  save();
  return early || (!stopped && step >= total) ? End::Finished : End::Interrupted;
}

std::optional<EpochReport> TrainingRun::report_epoch(const Observer& observer,
                                                     const std::atomic<bool>& interrupted) {
  const auto kind = machine_.device().info().time_kind;
  const auto before = (std::ssize(losses_) - 1) / steps_per_epoch();
  const auto first = losses_.begin() + before * steps_per_epoch();
  EpochReport report;
  report.epoch = before + 1;
  report.steps = std::distance(first, losses_.end());
  report.loss = std::accumulate(first, losses_.end(), 0.0) / static_cast<double>(report.steps);
  const auto& [steps, time] = open_epoch_;
  report.train_time = machine_.whole_time(time.seconds, trainer_.plan(), steps);
  const auto images = static_cast<double>(steps * config_.training.batch);
  report.images_per_second = time.seconds > 0 ? images / report.train_time.seconds : 0;
  const auto start = machine_.device().elapsed().seconds;
  // All processes evaluate the same tiles, and all of them or none stop at one.
  const auto go_on = [&] { return trainer_.all_agree(!interrupted); };
  const auto& estimated = statistics(go_on);
  if (statistics_step_ != std::ssize(losses_)) return std::nullopt;
  const ReplacedStates in_place(trainer_.evaluation_states(), estimated);
  const bool judged = config_.model.maps ? judge_maps(report, observer, go_on)
                                         : judge_rows(report, observer, go_on);
  if (!judged) return std::nullopt;
  report.evaluate_time = {machine_.device().elapsed().seconds - start, kind};
  return report;
}

bool TrainingRun::judge_rows(EpochReport& report, const Observer& observer,
                             const std::function<bool()>& go_on) {
  RowEvaluation rows(config_);
  const auto judged = data_.validation.samples.size();
  for (std::size_t i = 0; i < judged; ++i) {
    observer.on_image(static_cast<std::int64_t>(i), static_cast<std::int64_t>(judged));
    const auto example =
        segmentation::batch_of(data_.validation, i, data_.normalization, config_.model.size);
    const auto row = predictor_.row(example, go_on);
    if (row.bytes().empty()) return false;
    rows.add(data_.validation.samples[i].name, row, example.y);
  }
  report.scores = rows.scores();
  report.validation_loss = rows.loss();
  return true;
}

bool TrainingRun::judge_maps(EpochReport& report, const Observer& observer,
                             const std::function<bool()>& go_on) {
  segmentation::Scorer scorer(std::max<std::int64_t>(2, config_.model.classes));
  const auto judged = std::ssize(data_.validation.samples);
  for (std::int64_t i = 0; i < judged; ++i) {
    observer.on_image(i, judged);
    const auto whole = data_.validation.whole(static_cast<std::size_t>(i));
    const auto& sample = *whole;
    const auto image = segmentation::normalized(sample, data_.normalization);
    const auto logits = predictor_.logits(image, {sample.height, sample.width}, go_on);
    if (logits.empty()) return false;
    scorer.add(segmentation::classes_from_logits(logits, config_.model.classes), sample.labels);
    report.validation_loss += segmentation::log_loss(logits, sample.labels, config_.model.classes);
  }
  if (judged > 0) report.validation_loss /= static_cast<double>(judged);
  report.scores = scorer.scores();
  return true;
}

ReplacedStates TrainingRun::for_evaluation() {
  const auto& estimated = statistics();
  return {trainer_.evaluation_states(), estimated};
}

std::vector<std::uint8_t> TrainingRun::predict(const segmentation::Sample& sample) {
  trainer_.tell_busy("evaluating images");
  const auto image = segmentation::normalized(sample, data_.normalization);
  const auto logits = predictor_.logits(image, {sample.height, sample.width});
  return segmentation::classes_from_logits(logits, config_.model.classes);
}

const TensorMap& TrainingRun::statistics(const std::function<bool()>& go_on) {
  const auto step = std::ssize(losses_);
  if (step == statistics_step_) return statistics_;
  statistics_.clear();
  const auto batches = config_.statistics_batches;
  if (batches == 0 || step == 0 || !batch_statistics_.any()) {
    statistics_step_ = step;
    return statistics_;
  }
  trainer_.tell_busy("estimating the statistics of batch normalisation");
  const auto batch = statistics_batch();
  const auto first = first_statistics_sample(step, batches * batch);
  statistics_ = batch_statistics_.estimate(
      batches, [&](std::int64_t i) { return batcher_->draw(first + i * batch, batch); }, go_on);
  if (!statistics_.empty()) statistics_step_ = step;
  return statistics_;
}

void TrainingRun::save_to(const std::filesystem::path& folder) {
  TensorMap estimates;
  for (const auto& [name, tensor] : statistics()) estimates.emplace(name, tensor.clone());
  auto states = trainer_.state_sources(leads_);
  if (!leads_) return;
  if (!holds_run(folder)) save_network(folder, config_.model);
  auto machine = machine_.config();
  machine.kernel_times = machine_.kernel_times();
  const SavedRun run = {.config = config_,
                        .machine = std::move(machine),
                        .normalization = data_.normalization,
                        .epochs = epochs_,
                        .losses = losses_,
                        .open_epoch = open_epoch_,
                        .updates = trainer_.updates(),
                        .states = {},
                        .statistics = std::move(estimates)};
  save_run(folder, run, std::move(states));
}

}  // namespace triptych::training
