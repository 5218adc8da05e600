// A whole training run in a folder: data, epochs, evaluation, checkpoints, resumption.
// FOLDER contains the files of run_folder.h, and masks/: validation images as input, truth and
// prediction side by side.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/output_ledger.h"
#include "experiments/training/batch_statistics.h"
#include "experiments/training/evaluation.h"
#include "experiments/training/metrics_log.h"
#include "experiments/training/predictor.h"
#include "experiments/training/run_folder.h"
#include "experiments/training/trainer.h"

namespace triptych::training {

struct StepReport {
  std::int64_t step = 0;   ///< finished steps of the run
  std::int64_t total = 0;  ///< steps that this call aims at
  std::int64_t epoch = 0;
  float loss = 0;
};

/// Calls that report the progress of a run.
struct Observer {
  /// Notes on the images, at the start: skipped files, the meaning of the masks.
  std::function<void(const std::string&)> on_note = [](const std::string&) {};
  std::function<void(const StepReport&)> on_step = [](const StepReport&) {};
  /// So many validation images have been scored.
  std::function<void(std::int64_t, std::int64_t)> on_image = [](std::int64_t, std::int64_t) {};
  std::function<void(const EpochReport&)> on_epoch = [](const EpochReport&) {};
  /// The loss of this step is not finite. The search for the node that it came from begins.
  std::function<void(std::int64_t)> on_bad_loss = [](std::int64_t) {};
};

enum class End { Finished, Interrupted };

class TrainingRun {
 public:
  /// A new run. Throws InvalidArgument when `folder` holds a run already, IoError when it cannot be
  /// written to. The machine must outlive the run.
  TrainingRun(const DeviceSet& machine, RunConfig config, std::filesystem::path folder,
              const LoadData& load = load_data);
  /// Resumes a run that was loaded from `folder`, with the same bits as without an interruption.
  /// Throws InvalidArgument when the training images are not those of the run.
  TrainingRun(const DeviceSet& machine, SavedRun saved, std::filesystem::path folder,
              const LoadData& load = load_data);

  /// Trains until the configuration's epochs or steps are reached. Saves a checkpoint every
  /// checkpoint_every steps, or as soon after as all ranks have the same states, at the end of each
  /// epoch and at the end. `interrupted` is looked at after each step, and in evaluation before
  /// each tile. An interrupted evaluation is repeated on resume. It ends sooner when `patience`
  /// evaluations were no better than the best before. FOLDER/best contains that run. Throws
  /// NumericError,
  /// naming the first bad node, when a loss is not finite, or the state, when that is. The last
  /// checkpoint stays.
  End train(const Observer& observer, const std::atomic<bool>& interrupted);
  /// Asynchronous ranks update in the order that `record` holds, as far as it goes.
  void replay(std::vector<UpdateStretch> record) { trainer_.replay(std::move(record)); }
  /// Writes pictures of the first validation images to FOLDER/masks and removes those of earlier
  /// weights. Does nothing if the model makes no maps.
  void write_masks(std::size_t count);
  /// Scores of the weights of now on each validation image. Also adds pictures of the `worst`
  /// images with the lowest Dice to FOLDER/masks. Does nothing if the model makes no maps, without
  /// validation images, in a process that does not lead, and once `interrupted` is set.
  std::optional<Evaluation> judge_images(std::size_t worst, const std::atomic<bool>& interrupted);

  const RunConfig& config() const { return config_; }
  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<float>& losses() const { return losses_; }
  const std::vector<EpochReport>& epochs() const { return epochs_; }
  /// True when it has waited for a better evaluation as long as requested.
  bool stopped_early() const;
  Trainer& trainer() { return trainer_; }
  const TrainingData& data() const { return data_; }
  /// Batches as the run draws them. Do not read them for a run that receives them prepared.
  const segmentation::Batcher& batcher() const { return batcher_.value(); }
  /// The states of now made fit for predict, for as long as the result lives: whole, and with
  /// estimated statistics. All processes ask at the same time.
  ReplacedStates for_evaluation();
  /// The class of each pixel.
  std::vector<std::uint8_t> predict(const segmentation::Sample& sample);
  std::int64_t steps_per_epoch() const;
  /// Steps that the configuration asks for in all.
  std::int64_t total_steps() const;
  /// Learning rate of step `step`, counted from 0.
  float learning_rate(std::int64_t step) const;

 private:
  /// Makes the batcher, or checks that a stream of batches can feed this run.
  void take_meaning();  ///< of the masks, which belongs to the model
  void begin_batches();
  /// Rows of a batch that are drawn in this process.
  Rows rows() const;
  segmentation::Batch draw(std::int64_t step, const Rows& rows) const;
  /// draw(), perhaps done already.
  segmentation::Batch take_batch(std::int64_t step, const Rows& rows);
  /// Begins draw() on a thread of its own, for the step that comes next.
  void draw_ahead(std::int64_t step, const Rows& rows);
  /// Throws InvalidArgument in every process unless all have the same options, images and
  /// checkpoint, with the values `states`.
  void require_rank_consistency(const TensorMap& states);
  float train_step(std::int64_t step);
  /// Where ranks that train each at its own pace meet next: at a checkpoint or the end of an epoch.
  std::int64_t stretch_end(std::int64_t step) const;
  /// Trains from `step` on, up to `end` at most, and appends the losses: one step, or, of ranks
  /// that train each at its own pace, a stretch.
  void train_some(std::int64_t step, std::int64_t end, const Observer& observer,
                  const std::atomic<bool>& interrupted);
  /// Nothing when all ranks agree that they were interrupted.
  std::optional<EpochReport> report_epoch(const Observer& observer,
                                          const std::atomic<bool>& interrupted);
  /// Scores and loss of the validation data, for models of maps or rows. False when `go_on`
  /// returned false.
  bool judge_maps(EpochReport& report, const Observer& observer,
                  const std::function<bool()>& go_on);
  bool judge_rows(EpochReport& report, const Observer& observer,
                  const std::function<bool()>& go_on);
  /// Evaluates the stretch that ends now, and stores and reports the result. False when
  /// interrupted.
  bool evaluate_epoch(const Observer& observer, const std::atomic<bool>& interrupted);
  /// The picture of a validation image, below the run's folder.
  static std::filesystem::path mask_file(const segmentation::Sample& sample);
  /// Writes input, truth and prediction beside each other.
  void write_picture(OutputLedger& own, const segmentation::Sample& sample);
  /// Images for one part of the statistics estimate.
  std::int64_t statistics_batch() const;
  /// The running statistics for the weights of now, estimated once a step. Empty: training's own
  /// are meant, or `go_on` said no.
  const TensorMap& statistics(const std::function<bool()>& go_on = [] { return true; });
  void save() { save_to(folder_); }
  void save_to(const std::filesystem::path& folder);
  /// Throws InvalidArgument when options do not fit the images: nothing can score a best
  /// evaluation, or the run is shorter than its warm-up.
  void require_fitting() const;
  /// Takes the weights that a new run begins with.
  void take_initial_weights();
  /// Writes down all evaluations so far. `part` is one of an epoch that has not ended.
  void log_metrics(const std::optional<EpochReport>& part);
  /// Removes the remains of a killed process. Throws InvalidArgument when a report or a picture
  /// would replace a file that this program did not write. `elsewhere`: whether another folder
  /// would do.
  void begin_outputs(Elsewhere elsewhere);
  [[noreturn]] void explain_bad_loss(std::int64_t step);
  /// The first node with a not finite output, from the last checkpoint on.
  [[noreturn]] void find_bad_node(std::int64_t step);

  const DeviceSet& machine_;
  bool leads_;  ///< this process: it alone writes
  RunConfig config_;
  std::filesystem::path folder_;
  Trainer trainer_;
  Predictor predictor_;
  BatchStatistics batch_statistics_;
  TensorMap statistics_;
  std::int64_t statistics_step_ = -1;  ///< for which statistics_ were estimated
  TrainingData data_;
  std::optional<segmentation::Batcher> batcher_;  ///< empty where batches come ready
  std::optional<RunLock> lock_;
  std::optional<MetricsLog> log_;
  std::vector<std::string> notes_;  ///< for the observer
  std::vector<float> losses_;
  std::vector<EpochReport> epochs_;
  OpenEpoch open_epoch_;
  struct Ahead {
    std::int64_t step = 0;
    Rows rows;
    std::future<segmentation::Batch> batch;
  } ahead_;  ///< reads data_ and batcher_ until it is gone
};

}  // namespace triptych::training
