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
#include "experiments/training/rank.h"
#include "parallel/comm/rank_group.h"
#include "parallel/comm/simulated_time.h"

namespace triptych::training {

/// Is rank 0 in this process, which then speaks for all and writes what they keep?
bool leads(const ParallelConfig& config);

class Trainer {
 public:
  /// Plans the training step and creates the initial states. The machine, which must outlive the
  /// trainer, is this process's first rank; those of its other ranks are opened here. Throws
  /// InvalidArgument when the batch cannot be shared out.
  Trainer(const Machine& machine, const TrainerConfig& config);

  /// One optimiser step; returns the loss, which may be not finite.
  float step(const Tensor& x, const Tensor& target, float learning_rate);
  /// One step that stops at the first node with a not finite output and returns its name.
  std::optional<std::string> step_until_not_finite(const Tensor& x, const Tensor& target,
                                                   float learning_rate);

  /// Averages the states of ranks that train on their own for some steps (local SGD): after it they
  /// are the same. A run is saved and evaluated after this alone.
  void synchronize();
  /// Are the states of all ranks the same now?
  bool synchronized() const { return own_steps_ == 0; }
  /// Do all ranks of all processes go on? Not when one says no.
  bool all_agree(bool own);

  /// All states: parameters, running statistics, optimiser. The trainer must outlive the sources.
  /// All processes ask at the same time.
  TensorSources state_sources();
  /// Sets every state. Throws InvalidArgument when names or specs are not those of the model.
  void restore(const TensorMap& tensors);

  /// SHA-256 over all parameters in ascending order of their names: name, then float32 values.
  /// Throws NumericError when the ranks' parameters are not the same.
  std::string weights_sha256();
  std::int64_t parameter_count() const;
  int ranks() const { return group_ ? group_->world_size() : 1; }
  /// What this process's first rank has spent in the steps' collectives: waiting for others counts.
  Duration communication_time() const;
  /// Of each rank, in steps; nothing when the clocks are not simulated.
  const parallel::SimulatedTime* simulated_time() const { return time_.get(); }
  /// Of this process's first rank.
  StateStore& states() { return ranks_[0]->states(); }
  /// The parameters of now, whole, for evaluation: the same store each time. All processes ask at
  /// the same time.
  StateStore& evaluation_states();
  const Executor& executor() const { return ranks_[0]->executor(); }
  const Plan& plan() const { return executor().plan(); }

 private:
  /// Runs it for every rank at once; a failure of one is the failure of all.
  void on_every_rank(const std::function<void(Rank&)>& work);

  /// States by name, on every rank of this process at the same time.
  TensorMap gather(const std::vector<std::string>& names);

  std::vector<std::string> parameters_;  ///< ascending
  std::unique_ptr<parallel::RankGroup> group_;
  std::unique_ptr<parallel::SimulatedTime> time_;
  parallel::Seconds communication_{0};
  int period_ = 0;     ///< steps between averages of states; 0: ranks are never apart
  int own_steps_ = 0;  ///< since the last average
  std::vector<std::unique_ptr<Machine>> machines_;  ///< of the ranks but the first
  std::unique_ptr<StateStore> evaluation_;          ///< where ranks have parts
  std::vector<std::unique_ptr<Rank>> ranks_;        ///< of this process
};

}  // namespace triptych::training
