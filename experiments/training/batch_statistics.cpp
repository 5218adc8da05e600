// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/batch_statistics.h"

#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "experiments/training/statistics_estimate.h"

namespace triptych::training {
BatchStatistics::BatchStatistics(const DeviceSet& machine, const ModelConfig& model,
                                 std::int64_t batch, Trainer& trainer)
    : machine_(machine),
      trainer_(trainer),
      graph_(build_statistics_graph(model, batch)),
      names_(statistic_names(graph_)) {}

Executor& BatchStatistics::executor() {
  if (!executor_) {
    auto plan =
        make_plan(optimize(std::move(graph_), {}), machine_.devices(), machine_.plan_options());
    executor_ = std::make_unique<Executor>(std::move(plan), trainer_.evaluation_states(),
                                           &trainer_.executor());
  }
  return *executor_;
}

TensorMap BatchStatistics::estimate(std::int64_t batches,
                                    const std::function<segmentation::Batch(std::int64_t)>& batch,
                                    const std::function<bool()>& go_on) {
  auto& states = trainer_.evaluation_states();
  TensorMap own;
  for (const auto& name : names_) own.emplace(name, states.read(name));
  const ReplacedStates as_before(states, own);
  return estimate_statistics(executor(), batches, batch, go_on);
}

ReplacedStates::ReplacedStates(StateStore& states, const TensorMap& values) : states_(states) {
  for (const auto& [name, value] : values) {
    before_.emplace(name, states.read(name));
    states.write(name, value);
  }
}

ReplacedStates::~ReplacedStates() {
  for (const auto& [name, value] : before_) states_.write(name, value);
}

}  // namespace triptych::training
