// One rank of a training step: a machine with its share of the batch, and the states of the model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "core/nn/training_graph.h"
#include "core/runtime/executor.h"
#include "experiments/training/device_set.h"
#include "experiments/training/rank_trace.h"
#include "parallel/strategies/asynchronous.h"
#include "parallel/strategies/rank_collectives.h"
#include "parallel/strategies/rank_graph.h"

namespace triptych::training {

struct TrainerConfig {
  ModelConfig model;
  TrainingOptions options;           ///< with the batch of all ranks together
  std::size_t memory_limit_mib = 0;  ///< of activations. 0: none
  int accumulate = 1;                ///< micro-batches of each rank: see StrategyRequest
  /// Seconds that a pipeline's cut balances (measure_nodes).
  std::map<std::string, double> node_seconds = {};
  std::vector<std::int64_t> cut = {};  ///< of a pipeline: see StrategyRequest
};

/// The request to a strategy for the graph of one rank.
parallel::StrategyRequest strategy_request(const TrainerConfig& config,
                                           const ParallelConfig& parallel, int rank);

/// Seconds of each node of a training step with that batch on the machine, by name: one run after
/// one that warms up.
std::map<std::string, double> measure_nodes(const DeviceSet& machine, const TrainerConfig& config,
                                            std::int64_t batch);

/// Rows of a batch, with the first image of all ranks together as row 0.
struct Rows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// The rows from the first of both to the last. Those of the other where one is empty.
Rows union_of(const Rows& a, const Rows& b);

class Rank {
 public:
  /// Plans the step. With an end of `transport` the machine is one of several with clocks that
  /// `time` simulates. Throws FaultError when the ranks' plans do not fit together. The machine
  /// must outlive the rank.
  Rank(const DeviceSet& machine, const TrainerConfig& config,
       std::unique_ptr<parallel::Transport> transport, parallel::SimulatedTime* time);

  /// The rows of the batch that its inputs hold: its share, or all. Nobody else need draw others.
  Rows rows() const;
  /// `x`, `target` and the model's `other` inputs hold rows of the batch from `first_row` on. The
  /// rank takes its own. Throws InvalidArgument when they are of another dtype or size, or lack
  /// some of its rows.
  void set_inputs(const Tensor& x, const Tensor& target, float learning_rate,
                  std::int64_t first_row = 0, std::span<const Tensor> others = {});
  /// One step, to its end.
  void run();
  /// The same, each node alone. With simulated clocks its times are for place_on_clock to fill in.
  RankTrace run_traced();
  /// Gives all ranks the mean of their f32 states. They do it at the same time.
  void average_states();
  /// Bytes that the rank sends for it that sends most.
  std::int64_t average_bytes() const;

  /// Runs this rank's part of a stretch, which has the sizes of an asynchronous strategy. Rank 0
  /// serves, the others work. `load` sets the inputs of a step. Afterwards all ranks have the
  /// server's model.
  void run_stretch(parallel::Stretch stretch, const parallel::Server& server,
                   const std::function<float(std::int64_t)>& learning_rate,
                   const std::function<void(std::int64_t)>& load, parallel::StretchRecord& record);

  /// Seconds for which it waited for collectives of its graph.
  parallel::Seconds exposed() const {
    return collectives_ ? collectives_->exposed() : parallel::Seconds(0);
  }
  /// Size of a message of run_stretch.
  std::size_t message_bytes() const;

  StateStore& states() { return states_; }
  const StateStore& states() const { return states_; }
  /// True when this rank has a part only of some states.
  bool has_parts() const { return !homes_.empty(); }
  /// States of the model, those that other ranks have too.
  std::vector<std::string> names() const;
  /// True when a state of names() is the optimiser's.
  bool optimizer_has(const std::string& name) const;
  /// A state as the model has it. All ranks read the same one at the same time, unless every rank
  /// has it whole.
  Tensor read(const std::string& name);
  void write(const std::string& name, const Tensor& value);
  TensorSpec spec(const std::string& name) const;
  Executor& executor() { return *executor_; }
  const Executor& executor() const { return *executor_; }
  /// Forward nodes of each stage of a pipeline, otherwise empty.
  const std::vector<std::int64_t>& cut() const { return cut_; }
  /// As RankGraph says.
  const std::vector<std::string>& without_rule() const { return without_rule_; }
  /// As RankGraph says.
  const std::vector<std::string>& inexact() const { return inexact_; }
  /// nullptr when it is the only rank.
  parallel::Communicator* communicator() const { return communicator_.get(); }

 private:
  /// The mean over all ranks, so that all cut equally.
  void agree_on(std::map<std::string, double>& seconds);
  Rows rows_of(std::string_view input) const;
  void set_rows(const std::string& input, const Tensor& given, std::int64_t first);

  std::unique_ptr<parallel::Communicator> communicator_;
  std::unique_ptr<parallel::RankCollectives> collectives_;
  StateStore states_;
  std::map<std::string, parallel::StateHome> homes_;
  parallel::Exchange exchange_;
  parallel::SimulatedTime* time_ = nullptr;
  std::int64_t batch_;               ///< of all ranks together
  std::vector<std::string> inputs_;  ///< that have rows, those of other stages too
  std::vector<std::int64_t> cut_;
  std::vector<std::string> without_rule_, inexact_;
  int share_ = 0;                        ///< of the batch
  std::map<std::string, Tensor> parts_;  ///< its rows of each input, if it receives more
  std::unique_ptr<Executor> executor_;
};

}  // namespace triptych::training
