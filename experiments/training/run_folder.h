// Files that a training run keeps in its folder, and who may write there.
//   FOLDER/checkpoint/   states, losses and configuration, replaced crash-safe
//   FOLDER/model.onnx    the network, where it is none of the presets
//   FOLDER/best/         the run at its best evaluation, a run folder itself (--keep)
//   FOLDER/.triptych     list of the other files written here (core/io/output_ledger.h)
//   FOLDER/masks/        input, truth and prediction of validation images
//   FOLDER/report.json   output of the command with --json, the source of report.html and *.svg
//   FOLDER/losses.csv    step,loss of every step so far
//   FOLDER/metrics.csv   scores of every evaluation, also as TensorBoard's events (metrics_log.h)
//   FOLDER/updates.csv   of asynchronous ranks: a line per stretch, its steps and the ranks in the
//                        order of arrival of their contributions
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/io/checkpoint.h"
#include "core/io/folder_lock.h"
#include "experiments/training/data/metrics.h"
#include "experiments/training/device_set.h"
#include "experiments/training/run_config.h"

namespace triptych::training {

inline constexpr const char* kReportFile = "report.json";
inline constexpr const char* kPageFile = "report.html";
inline constexpr const char* kLossChart = "loss.svg";
inline constexpr const char* kQualityChart = "quality.svg";
/// Report of a run so far: its numbers, and the page and the curves made from them.
inline constexpr std::array kReportFiles = {kReportFile, kPageFile, kLossChart, kQualityChart};
inline constexpr const char* kMetricsFile = "metrics.csv";
inline constexpr const char* kLossesFile = "losses.csv";
inline constexpr const char* kUpdatesFile = "updates.csv";
inline const std::filesystem::path kCheckpointFolder = "checkpoint";
inline const std::filesystem::path kBestFolder = "best";
inline const std::filesystem::path kMasksFolder = "masks";

struct EpochReport {
  std::int64_t epoch = 0;  ///< from 1
  std::int64_t steps = 0;  ///< of this epoch. Fewer than a whole one when the run stopped inside
  double loss = 0;         ///< mean over the steps
  segmentation::Scores scores;  ///< of the validation images
  double validation_loss = 0;   ///< their cross-entropy, mean over the images
  /// All its steps, also those before the run was resumed. With the share of a simulated machine's
  /// host.
  Duration train_time;
  Duration evaluate_time;
  double images_per_second = 0;  ///< in training
};

/// Steps of an epoch that is not complete, and their time on the device.
struct OpenEpoch {
  std::int64_t steps = 0;
  Duration time;
};

/// A stretch of asynchronous training: steps of each worker, and the workers in the order of
/// arrival of their contributions.
struct UpdateStretch {
  std::int64_t steps = 0;
  std::vector<int> ranks;
};

/// A run as its checkpoint holds it: enough to go on to the same bits.
struct SavedRun {
  RunConfig config;
  ExecutionConfig machine;  ///< except `threads`, which affects no result
  segmentation::Normalization normalization;
  std::vector<EpochReport> epochs;
  std::vector<float> losses;  ///< one per finished step
  OpenEpoch open_epoch = {};
  std::vector<UpdateStretch> updates = {};
  TensorMap states;
  /// Estimates that stand for running statistics where the weights are used, by the names of those.
  /// Empty: none were made.
  TensorMap statistics = {};
  std::vector<std::string> notes = {};  ///< notes for the user about how it was loaded
};

/// True when `folder` holds a run that can be resumed.
bool holds_run(const std::filesystem::path& folder);

/// Names the owner of `path` when it is, or would be, a file that the run in its folder needs for
/// resume, use or display: "the run in \"RUN\"". Otherwise empty. Pictures and files made from its
/// report are not.
std::string run_that_needs(const std::filesystem::path& path);

/// A damaged newest checkpoint is replaced by the one before it, which a note says. Throws IoError
/// when neither can be loaded, and InvalidArgument, naming the field or tensor, for values that no
/// run has: a deviation of 0, weights that are not finite.
SavedRun load_run(const std::filesystem::path& folder, CheckpointAge age = CheckpointAge::Newest);

/// Throws InvalidArgument unless the training images of `run`, in `folder`, still have its
/// normalisation.
void require_same_images(const SavedRun& run, const segmentation::Normalization& now,
                         const std::filesystem::path& folder);

/// The run in `folder` for inference: at its best evaluation if that is stored, with a note,
/// otherwise the newest, or the one before it. FOLDER/checkpoint and FOLDER/best name one of them.
/// The estimates are in the place of the running statistics. Throws as load_run does.
SavedRun load_trained(const std::filesystem::path& folder,
                      CheckpointAge age = CheckpointAge::Newest);

/// The updates.csv of a run. Throws IoError when there is none, or it is not one.
std::vector<UpdateStretch> load_updates(const std::filesystem::path& folder);

/// Saves `run` with `states` in place of its own. Throws IoError when writing fails, and
/// NumericError when a state is not finite. The checkpoints before stay.
void save_run(const std::filesystem::path& folder, const SavedRun& run, TensorSources states);

/// Makes `folder` and those above it when needed. Throws IoError.
void make_folder(const std::filesystem::path& folder);

/// Throws IoError when `folder` could not be made here, and InvalidArgument when it holds a run or
/// something that this program did not write stands where a new run writes: fails before the work,
/// not after it.
void require_room(const std::filesystem::path& folder);

/// Removes the remains of a killed process that wrote this run. This one must hold its lock.
void remove_leavings(const std::filesystem::path& folder);

/// Keeps other commands from writing to a run's folder, which it makes when needed, and to its
/// checkpoints where a link leads to them.
class RunLock {
 public:
  /// Throws IoError when the folder cannot be made or is in use, and InvalidArgument when its
  /// checkpoints are another run's.
  explicit RunLock(const std::filesystem::path& folder);

 private:
  FolderLock run_;
  std::vector<std::unique_ptr<FolderLock>> linked_;
};

}  // namespace triptych::training
