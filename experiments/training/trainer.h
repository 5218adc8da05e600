// One model in training on one machine: steps, snapshots, and the search for the first bad number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/io/safetensors.h"
#include "core/nn/training_graph.h"
#include "core/runtime/executor.h"
#include "experiments/training/machine.h"

namespace triptych::training {

struct TrainerConfig {
  ModelConfig model;
  TrainingOptions options;
  std::size_t memory_limit_mib = 0;  ///< of activations; 0: none
};

class Trainer {
 public:
  /// Plans the training step and creates the initial states. The machine must outlive the trainer.
  Trainer(const Machine& machine, const TrainerConfig& config);

  /// One optimiser step; returns the loss, which may be not finite.
  float step(const Tensor& x, const Tensor& target, float learning_rate);
  /// One step that stops at the first node with a not finite output and returns its name.
  std::optional<std::string> step_until_not_finite(const Tensor& x, const Tensor& target,
                                                   float learning_rate);

  /// All states: parameters, running statistics, optimiser. The trainer must outlive the sources.
  TensorSources state_sources() const;
  /// Sets every state. Throws InvalidArgument when names or specs are not those of the model.
  void restore(const TensorMap& states);

  /// SHA-256 over all parameters in ascending order of their names: name, then float32 values.
  std::string weights_sha256() const;
  std::int64_t parameter_count() const;
  StateStore& states() { return states_; }
  const Executor& executor() const { return *executor_; }
  const Plan& plan() const { return executor_->plan(); }

 private:
  void set_inputs(const Tensor& x, const Tensor& target, float learning_rate);

  TrainerConfig config_;
  std::vector<std::string> parameters_;  ///< ascending
  StateStore states_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace triptych::training
