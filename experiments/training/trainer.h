// One model in training, on one machine or on several ranks: steps, snapshots, and the search for
// the first bad number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/safetensors.h"
#include "experiments/training/data/batcher.h"
#include "experiments/training/rank.h"
#include "experiments/training/rank_consistency.h"
#include "experiments/training/run_folder.h"
#include "parallel/comm/rank_group.h"
#include "parallel/comm/simulated_time.h"

namespace triptych::training {

/// True when rank 0 is in this process, which then reports for all and writes the common files.
bool leads(const ParallelConfig& config);

/// Counts over all contributions so far: how many others came between a worker's reading of the
/// model and its own.
struct Staleness {
  double sum = 0;
  std::int64_t most = 0;
  std::int64_t contributions = 0;
};

/// Options and reports of a stretch. Steps count from its beginning.
struct StretchCallbacks {
  std::function<segmentation::Batch(std::int64_t, const Rows&)> inputs;  ///< rows of a step's batch
  std::function<float(std::int64_t)> learning_rate;
  std::function<void(std::int64_t, float)> on_loss;
  std::function<bool()> interrupted;
};

class Trainer {
 public:
  /// Plans the training step and creates the initial states. The machine, which must outlive the
  /// trainer, is this process's first rank. Those of its other ranks are opened here. Throws
  /// InvalidArgument when the batch cannot be shared out.
  Trainer(const DeviceSet& machine, const TrainerConfig& config);

  /// The rows of a batch that the ranks of this process need: the others need not be drawn here.
  Rows rows() const;
  /// One optimiser step. Returns the loss, which may be not finite. `x`, `target` and the model's
  /// `others` hold the rows of the batch from `first_row` on.
  float step(const Tensor& x, const Tensor& target, float learning_rate, std::int64_t first_row = 0,
             std::span<const Tensor> others = {});
  /// Throws InvalidArgument in every process, unless all processes have the same facts
  /// (rank_consistency.h). All processes call it at the same time.
  void require_rank_consistency(const Facts& own);
  /// True when its ranks train each at its own pace: then it runs stretches, not steps.
  bool asynchronous() const { return asynchronous_; }
  /// This many steps of each rank, or fewer when `interrupted` returns true. `inputs` draws rows of
  /// a step's batch, for one rank at a time. `on_loss` hears, in order, the losses of the steps,
  /// which are returned. All processes do it at the same time.
  std::vector<float> run_stretch(std::int64_t steps, const StretchCallbacks& callbacks);
  /// The order of arrival of the contributions, one entry per stretch.
  const std::vector<UpdateStretch>& updates() const { return updates_; }
  void set_updates(std::vector<UpdateStretch> updates) { updates_ = std::move(updates); }
  /// Stretches from now on are those that follow in this record, as far as it goes.
  void replay(std::vector<UpdateStretch> record) { replay_ = std::move(record); }
  const Staleness& staleness() const { return staleness_; }
  /// Bytes that an asynchronous worker sends and gets per step.
  std::size_t bytes_per_step() const {
    return ranks_[0]->message_bytes() / static_cast<std::size_t>(period_);
  }

  /// Tells other processes that this one continues with other work than a step
  /// (Communicator::tell_busy).
  void tell_busy(const char* doing);

  /// One step, node by node, and the actions of every rank of this process in it.
  std::vector<RankTrace> trace_step(const Tensor& x, const Tensor& target, float learning_rate);
  /// One step that stops at the first node with a not finite output and returns its name.
  std::optional<std::string> step_until_not_finite(const segmentation::Batch& batch,
                                                   float learning_rate);

  /// Averages the states of ranks that train on their own for some steps (local SGD): after it they
  /// are the same. A run is saved and evaluated after this alone.
  void synchronize();
  /// Steps between two averages. 0: no strategy of this kind.
  int steps_to_average() const { return asynchronous_ ? 0 : period_; }
  /// Bytes that the rank sends for an average that sends most.
  std::int64_t average_bytes() const { return ranks_[0]->average_bytes(); }
  /// True when the states of all ranks are the same now.
  bool synchronized() const { return own_steps_ == 0; }
  /// True when all ranks of all processes go on: not when one says no.
  bool all_agree(bool own);

  /// All states: parameters, running statistics, optimiser. The trainer must outlive the sources.
  /// All processes ask at the same time. A process that does not `keep` them takes part and gets
  /// none: gathered parts would be a whole model in its memory.
  TensorSources state_sources(bool keep = true);
  /// True when a state of them is the optimiser's.
  bool optimizer_has(const std::string& name) const;
  /// Sets every state. Throws InvalidArgument when names or specs are not those of the model.
  void restore(const TensorMap& tensors);

  /// SHA-256 over all parameters in ascending order of their names: name, then float32 values.
  /// Throws NumericError when the ranks' parameters are not the same.
  std::string weights_sha256();
  std::int64_t parameter_count() const;
  int ranks() const { return group_ ? group_->world_size() : 1; }
  /// Time of this process's first rank in messages of the steps and averages: waiting for others
  /// counts.
  Duration communication_time() const;
  /// For how much of it that rank did nothing else: all of it without overlap.
  Duration exposed_time() const { return {exposed_.count(), TimeKind::Measured}; }
  /// Clocks of each rank, in steps. Nothing when they are not simulated.
  const parallel::SimulatedTime* simulated_time() const { return time_.get(); }
  /// States of this process's first rank.
  StateStore& states() { return ranks_[0]->states(); }
  /// The parameters of now, whole, for evaluation: the same store each time. All processes ask at
  /// the same time.
  StateStore& evaluation_states();
  const Executor& executor() const { return ranks_[0]->executor(); }
  const Plan& plan() const { return executor().plan(); }
  /// Forward nodes of each stage of a pipeline, determined by the nodes' times, otherwise empty.
  const std::vector<std::int64_t>& cut() const { return ranks_[0]->cut(); }
  /// Under tensor parallelism: operators that every rank computes whole for want of a rule.
  const std::vector<std::string>& without_rule() const { return ranks_[0]->without_rule(); }
  /// Reasons why its steps are not exactly those of one rank with whole batches (RankGraph).
  const std::vector<std::string>& inexact() const { return ranks_[0]->inexact(); }

 private:
  /// Time of this process's first rank in messages so far.
  parallel::Seconds time_in_messages() const;
  /// Runs it for every rank at once. A failure of one is the failure of all.
  void on_every_rank(const std::function<void(Rank&)>& work);

  /// Tells the losses of a stretch to processes that did not see them.
  void share_losses(std::int64_t steps, std::vector<float>& losses,
                    const StretchCallbacks& callbacks);

  /// States by name, on every rank of this process at once. Without `keep` it returns none.
  TensorMap gather(const std::vector<std::string>& names, bool keep = true);

  std::vector<std::string> parameters_;  ///< ascending
  std::unique_ptr<parallel::RankGroup> group_;
  std::unique_ptr<parallel::SimulatedTime> time_;
  parallel::Seconds communication_{0}, exposed_{0};
  int period_ = 0;  ///< steps between averages of states. 0: ranks are never apart
  bool asynchronous_ = false;
  int bound_ = 0;  ///< of asynchronous ranks
  std::vector<UpdateStretch> updates_, replay_;
  Staleness staleness_;
  int own_steps_ = 0;                                 ///< since the last average
  std::vector<std::unique_ptr<DeviceSet>> machines_;  ///< of the ranks but the first
  std::unique_ptr<StateStore> evaluation_;            ///< where ranks have parts
  std::vector<std::unique_ptr<Rank>> ranks_;          ///< of this process
};

}  // namespace triptych::training
