// One rank of a training step: a machine with its share of the batch, and the states of the model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/nn/training_graph.h"
#include "core/runtime/executor.h"
#include "experiments/training/machine.h"
#include "parallel/strategies/rank_collectives.h"
#include "parallel/strategies/rank_graph.h"

namespace triptych::training {

struct TrainerConfig {
  ModelConfig model;
  TrainingOptions options;           ///< with the batch of all ranks together
  std::size_t memory_limit_mib = 0;  ///< of activations; 0: none
};

class Rank {
 public:
  /// Plans the step. With an end of `transport` the machine is one of several, whose clocks are
  /// simulated with `time`. Throws FaultError when the ranks' plans do not fit together. The
  /// machine must outlive the rank.
  Rank(const Machine& machine, const TrainerConfig& config,
       std::unique_ptr<parallel::Transport> transport, parallel::SimulatedTime* time);

  /// `x` and `target` are of all ranks together; the rank takes its share.
  void set_inputs(const Tensor& x, const Tensor& target, float learning_rate);
  /// One step, to its end.
  void run();
  /// Of what all ranks must agree on: model, training, contract, strategy.
  std::uint64_t fingerprint() const { return fingerprint_; }

  StateStore& states() { return states_; }
  const StateStore& states() const { return states_; }
  /// Has this rank a part only of some states?
  bool has_parts() const { return !homes_.empty(); }
  /// A state as the model has it. All ranks read the same one at the same time, unless every rank
  /// has it whole.
  Tensor read(const std::string& name);
  void write(const std::string& name, const Tensor& value);
  TensorSpec spec(const std::string& name) const;
  Executor& executor() { return *executor_; }
  const Executor& executor() const { return *executor_; }
  /// nullptr when it is the only rank.
  parallel::Communicator* communicator() const { return communicator_.get(); }

 private:
  void set_share(const char* input, const Tensor& whole);

  std::unique_ptr<parallel::Communicator> communicator_;
  std::unique_ptr<parallel::RankCollectives> collectives_;
  std::uint64_t fingerprint_ = 0;
  StateStore states_;
  std::map<std::string, parallel::StateHome> homes_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace triptych::training
