// SPDX-License-Identifier: Apache-2.0
#include "experiments/compare/machine_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "backends/all_backends.h"
#include "core/base/median.h"
#include "core/io/sha256.h"
#include "core/nn/training_graph.h"
#include "experiments/measure/bandwidth.h"
#include "experiments/measure/calibrate.h"
#include "experiments/page/text_table.h"
#include "experiments/training/data/panels.h"
#include "experiments/training/inference_graph.h"

namespace triptych::compare {
namespace {

using machines::Figure;
using training::DeviceSet;

/// Format that the machine's units multiply under the contract: the CPU's are float32 always, the
/// exact contract's chains run on a GPU's CUDA cores, an array takes bf16 alone.
std::string format_of(const DeviceSet& machine) {
  const auto kind = measure::kind_of(machine.device());
  const bool tensor_cores = kind == "gpu" && machine.config().contract == Contract::Bf16;
  return kind == "array" || tensor_cores ? "bf16" : "f32";
}

std::optional<Ceilings> from_file(const DeviceSet& machine,
                                  const machines::MachineFigures& figures) {
  const auto peak = figures.peaks.find(format_of(machine));
  if (peak == figures.peaks.end() || figures.levels.empty()) return std::nullopt;
  Ceilings ceilings = {
      .peak = peak->second, .levels = {}, .memory = {}, .source = "device file " + figures.name};
  for (const auto& level : figures.levels) {
    const auto& better = !level.copy || (level.triad && level.triad->value > level.copy->value)
                             ? level.triad
                             : level.copy;
    if (better) ceilings.levels.emplace_back(level.name, *better);
  }
  if (ceilings.levels.empty()) return std::nullopt;
  ceilings.memory = ceilings.levels.back().second;
  return ceilings;
}

/// For an array two operations of each PE and cycle, for a GPU clocks and lanes, for a CPU a short
/// loop.
std::optional<Figure> peak_of(const DeviceSet& machine) {
  if (const double measured = machine.device().measure_peak(machine.config().contract);
      measured > 0)
    return Figure{measured, TimeKind::Measured, "a loop of multiply-adds, just now"};
  const auto& info = machine.device().info();
  const auto peak = info.facts.peak_flops(format_of(machine));
  if (!peak) return std::nullopt;
  const bool array = info.facts.rows.has_value();
  return Figure{*peak, TimeKind::Modelled,
                array ? "two operations of each element and cycle"
                      : "the driver's clock and number of units"};
}

using training::DeviceSet;
using training::TrainingRun;

bool varies(const DeviceSet& machine) {
  return machine.device().info().time_kind == TimeKind::Measured;
}

/// Seconds of `work` on the device's clock: the median of several runs after a warm-up, or one run
/// of a simulated machine, which has constant times.
Timing time_of(const DeviceSet& machine, const std::function<void()>& work) {
  constexpr std::size_t least = 5, most = 1000;
  constexpr double enough_s = 1;
  Device& device = machine.device();
  Timing timing = {.kind = device.info().time_kind};
  if (varies(machine)) work();
  double total = 0;
  do {
    const double start = device.elapsed().seconds;
    work();
    timing.samples.push_back(device.elapsed().seconds - start);
    total += timing.samples.back();
  } while (varies(machine) && timing.samples.size() < most &&
           (timing.samples.size() < least || total < enough_s));
  timing.seconds = median_of(timing.samples);
  return timing;
}

/// Adds the time of a simulated machine's host for each run of the plan.
void add_host(Timing& timing, double seconds) {
  if (seconds <= 0) return;
  timing.source = fmt::format(
      "{:.6g} s of the array (simulated) and {:.6g} s of its host (modelled), one after the other",
      timing.seconds, seconds);
  timing.seconds += seconds;
  for (auto& sample : timing.samples) sample += seconds;
  timing.kind = TimeKind::Modelled;
}

/// The median epoch, if there was one. For a simulated machine with its host's share.
Timing epoch_time(const TrainingRun& run) {
  Timing timing;
  for (const auto& epoch : run.epochs()) {
    timing.kind = epoch.train_time.kind;
    timing.samples.push_back(epoch.train_time.seconds);
  }
  timing.seconds = median_of(timing.samples);
  return timing;
}

Timing step_time(const DeviceSet& machine, TrainingRun& run, const StepAnatomy& anatomy) {
  const auto first = std::ssize(run.losses());
  const auto batch = run.config().training.batch;
  const auto images = run.batcher().draw(first * batch, batch);
  Timing timing;
  if (varies(machine)) {
    timing =
        time_of(machine, [&] { run.trainer().step(images.x, images.y, run.learning_rate(first)); });
  } else {
    timing.kind = machine.device().info().time_kind;
    for (const auto& layer : anatomy.layers) {
      if (layer.time && layer.time->kind == timing.kind) timing.seconds += layer.time->seconds;
    }
  }
  add_host(timing, anatomy.host_seconds);
  return timing;
}

/// One image of the model's size through the network with its weights folded in.
Timing inference_time(const DeviceSet& machine, TrainingRun& run) {
  const auto& model = run.config().model;
  TensorMap weights;
  for (const auto& [name, source] : run.trainer().state_sources()) {
    if (!run.trainer().optimizer_has(name)) weights.emplace(name, source.read());
  }
  auto graph =
      training::frozen_graph(model, {model.size, model.size}, weights, machine.config().contract);
  auto plan = make_plan(std::move(graph), machine.devices(), machine.plan_options());
  const auto host = machine.host_share(plan);
  StateStore states(machine.device());
  Executor executor(std::move(plan), states);
  const auto batch = run.batcher().draw(0, 1);
  executor.set_input("x", batch.x);
  auto timing = time_of(machine, [&] { executor.run(); });
  add_host(timing, host ? host->time.seconds : 0);
  return timing;
}

/// Segments every validation image.
void segment(TrainingRun& run, std::size_t pictures, MachineResult& result) {
  const auto classes = std::max<std::int64_t>(2, run.config().model.classes);
  Sha256 hash;
  const auto in_place = run.for_evaluation();
  segmentation::BoundaryScorer boundary(classes);
  const auto& validation = run.data().validation;
  for (std::size_t i = 0; i < validation.samples.size(); ++i) {
    const auto whole = validation.whole(i);
    const auto& sample = *whole;
    const auto labels = run.predict(sample);
    boundary.add(labels, sample.labels, {sample.height, sample.width});
    hash.update(std::as_bytes(std::span(sample.name)));
    hash.update(std::as_bytes(std::span(labels)));
    if (result.masks.size() >= pictures) continue;
    const auto picture_of = [&](std::span<const std::uint8_t> classes_of_pixels) {
      return segmentation::label_picture(classes_of_pixels, sample.height, sample.width, classes);
    };
    result.masks.push_back({.name = sample.name,
                            .input = segmentation::input_picture(sample),
                            .truth = picture_of(sample.labels),
                            .prediction = picture_of(labels)});
  }
  result.masks_sha256 = hash.finish();
  result.boundary = boundary.mean();
}

/// From the available source: the array's counters, the blocking of kernels, or the GPU's emulator.
std::optional<Reuse> reuse_of(const MachineResult& result, const training::RunConfig& run) {
  const auto batch = run.training.batch;
  const auto& config = result.request.config;
  if (auto reuse = reuse_of_array(result.anatomy, batch, config)) return reuse;
  if (auto reuse = reuse_by_blocking(result.anatomy, batch)) return reuse;
  return config.backend.starts_with("cuda") ? reuse_of_gpu(run, config) : std::nullopt;
}

}  // namespace

std::optional<Ceilings> ceilings_of(const DeviceSet& machine,
                                    std::span<const machines::MachineFigures> figures) {
  if (!find_backend(machine.config().backend).emulates().empty()) return std::nullopt;
  const auto file = std::ranges::find(figures, measure::kind_of(machine.device()),
                                      &machines::MachineFigures::kind);
  if (file != figures.end()) {
    if (auto ceilings = from_file(machine, *file)) return ceilings;
  }
  const auto peak = peak_of(machine);
  if (!peak) return std::nullopt;
  Ceilings ceilings = {.peak = *peak,
                       .levels = {},
                       .memory = {},
                       .source = measure::kind_of(machine.device()) == "array"
                                     ? "machine description"
                                     : "measured now"};
  for (const auto& level : measure::measure_bandwidths(machine.device())) {
    const auto* how =
        level.kind == TimeKind::Measured ? "copy or triad, just now" : "its description";
    ceilings.levels.emplace_back(level.level, Figure{measure::best_of(level), level.kind, how});
  }
  if (ceilings.levels.empty()) return std::nullopt;
  ceilings.memory = ceilings.levels.back().second;
  return ceilings;
}

std::string Timing::spread() const {
  if (samples.empty()) return {};
  const auto [least, most] = std::ranges::minmax(samples);
  if (least == most) return {};
  return fmt::format(" ({} to {})", page::format_seconds(least), page::format_seconds(most));
}

std::filesystem::path run_folder(const Experiment& experiment, const MachineRequest& request) {
  std::string name;
  for (const char c : request.label) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
    if (plain) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  if (name.ends_with('-')) name.pop_back();
  return experiment.folder / name;
}

MachineResult run_machine(const MachineRequest& request, const Experiment& experiment,
                          const training::Observer& observer,
                          const std::atomic<bool>& interrupted) {
  MachineResult result = {.request = request, .device = {}, .losses = {}, .epochs = {}};
  const DeviceSet machine(request.config);
  TrainingRun run(machine, experiment.run, run_folder(experiment, request), experiment.load);
  result.device = machine.device().info().description;
  result.threads = machine.threads();
  result.interrupted = run.train(observer, interrupted) == training::End::Interrupted;
  result.losses = run.losses();
  result.epochs = run.epochs();
  if (result.interrupted) return result;
  result.weights_sha256 = run.trainer().weights_sha256();
  run.write_masks(experiment.mask_count);
  segment(run, experiment.mask_count, result);
  result.step_images = run.config().training.batch;
  result.images_per_epoch = run.steps_per_epoch() * result.step_images;
  result.train_images = std::ssize(run.data().train.samples);
  result.validation_images = std::ssize(run.data().validation.samples);
  // The steps that follow train on, so that they must not come before the weights.
  const bool timed = !request.stands_in();
  if (timed) result.inference = inference_time(machine, run);
  result.anatomy = dissect_step(machine, run, timed);
  result.reuse = reuse_of(result, experiment.run);
  if (!timed) return result;
  result.ceilings = ceilings_of(machine, experiment.figures);
  result.epoch = epoch_time(run);
  result.step = step_time(machine, run, result.anatomy);
  return result;
}

}  // namespace triptych::compare
