// The numbers that a rank of asynchronous training sends and gets: its model, and contributions to
// the server's, as plain rows of floats.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/runtime/executor.h"
#include "parallel/strategies/rank_graph.h"

namespace triptych::training {

class ModelExchange {
 public:
  /// All outlive it. `executor` runs this rank's part of the strategy.
  ModelExchange(const parallel::Exchange& exchange, Executor& executor, StateStore& states)
      : exchange_(exchange), executor_(executor), states_(states) {}

  std::vector<float> model() const;
  void set_model(std::span<const float> values);
  /// For a worker with the earlier model `before`, after its step: its gradients, or the change of
  /// its model. There are as many numbers as in the model.
  void contribute(std::span<const float> before, std::span<float> contribution) const;
  /// The server's update by one of so many workers. `run` runs the executor.
  void apply(std::span<const float> contribution, float learning_rate, int workers,
             const std::function<void()>& run);

 private:
  const parallel::Exchange& exchange_;
  Executor& executor_;
  StateStore& states_;
};

}  // namespace triptych::training
