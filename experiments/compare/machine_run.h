// The experiment on one machine: training, evaluation, and the machine's report on a step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/io/image.h"
#include "experiments/compare/layers.h"
#include "experiments/compare/machine_request.h"
#include "experiments/compare/reuse.h"
#include "experiments/machines/machine_figures.h"
#include "experiments/training/data/boundary_metrics.h"
#include "experiments/training/device_set.h"
#include "experiments/training/training_run.h"

namespace triptych::compare {

struct Ceilings {
  machines::Figure peak;  ///< FLOP/s in the format of the contract's kernels
  std::vector<std::pair<std::string, machines::Figure>> levels;  ///< bytes/s, the nearest first
  machines::Figure memory;                                       ///< bytes/s of the main memory
  std::string source;  ///< "device file h200", "measured now", "machine description"
};

/// Figures of the device file among `figures` for this kind of machine. Otherwise the device's own
/// measurements (about two seconds on a CPU) or facts. Nothing where it has none, or only stands in
/// for another machine.
std::optional<Ceilings> ceilings_of(const training::DeviceSet& machine,
                                    std::span<const machines::MachineFigures> figures);

/// Settings that are the same on every machine.
struct Experiment {
  training::RunConfig run;
  training::LoadData load = training::load_data;  ///< again for each machine
  std::size_t mask_count = 4;    ///< validation images with stored pictures of their masks
  std::filesystem::path folder;  ///< of the run folders, one per machine
  std::vector<machines::MachineFigures> figures;  ///< device files for the ceilings
};

/// Seconds and their kind. For simulated machines with a modelled part.
struct Timing {
  double seconds = 0;
  TimeKind kind = TimeKind::Measured;
  std::string source;
  std::vector<double> samples;  ///< the number of values of the median. Empty: a single value

  /// " (3.61 ms to 4.20 ms)", the least and the most. Empty where all are the same.
  std::string spread() const;
};

/// A validation image, its truth and the machine's prediction, of the same size.
struct MaskPicture {
  std::string name;
  Image input, truth, prediction;
};

struct MachineResult {
  MachineRequest request;
  std::string device;  ///< description
  int threads = 0;
  bool interrupted = false;
  std::vector<float> losses;  ///< of every step
  std::vector<training::EpochReport> epochs;
  std::string weights_sha256;
  std::string masks_sha256;  ///< of the classes of all pixels of all validation images, in order
  /// Means over the validation images, at the end. Nothing when no class has a boundary.
  std::optional<segmentation::BoundaryScorer::Means> boundary;
  std::vector<MaskPicture> masks;
  std::int64_t images_per_epoch = 0;
  std::int64_t step_images = 0;
  std::int64_t train_images = 0, validation_images = 0;  ///< of the data
  Timing epoch, step, inference;                         ///< those of a stand-in do not count
  StepAnatomy anatomy;
  std::optional<Reuse> reuse;
  std::optional<Ceilings> ceilings;

  /// Seconds of training per image.
  double image_seconds() const { return epoch.seconds / static_cast<double>(images_per_epoch); }
};

/// Throws DeviceError when the machine is not available, UnsupportedError when it cannot run the
/// experiment, and the exceptions of TrainingRun. Stops after a step when `interrupted`.
MachineResult run_machine(const MachineRequest& request, const Experiment& experiment,
                          const training::Observer& observer, const std::atomic<bool>& interrupted);

/// The folder of a machine's run: its label with characters replaced that are unsuitable for a
/// path.
std::filesystem::path run_folder(const Experiment& experiment, const MachineRequest& request);

}  // namespace triptych::compare
