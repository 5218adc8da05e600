// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/rank.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/fnv1a.h"
#include "core/graph/passes/passes.h"
#include "parallel/strategies/data_parallel.h"

namespace triptych::training {
namespace {

Graph step_graph(const TrainerConfig& config, const ParallelConfig& parallel) {
  auto options = config.options;
  options.batch /= parallel.ranks;
  auto training = parallel::data_parallel(build_training_graph(config.model, options),
                                          {.world_size = parallel.ranks, .order = parallel.order});
  return optimize(std::move(training.graph), {.memory_limit = config.memory_limit_mib << 20});
}

}  // namespace

Rank::Rank(const Machine& machine, const TrainerConfig& config,
           std::unique_ptr<parallel::Transport> transport, parallel::SimulatedTime* time)
    : states_(machine.device()) {
  auto plan_options = machine.plan_options();
  if (transport) {
    communicator_ = std::make_unique<parallel::Communicator>(std::move(transport));
    collectives_ = std::make_unique<parallel::RankCollectives>(*communicator_, time);
    plan_options.placement.collectives = collectives_.get();
  }
  auto graph = step_graph(config, machine.config().parallel);
  executor_ = std::make_unique<Executor>(
      make_plan(std::move(graph), machine.devices(), plan_options), states_);
}

std::uint64_t Rank::fingerprint() const {
  const auto& plan = executor_->plan();
  std::string text(to_string(plan.options.placement.contract));
  for (const auto& node : plan.graph.nodes()) {
    if (!node.op->collective()) continue;
    text += fmt::format(" {} {}", node.name, to_string(*node.op));
    for (const auto input : node.inputs) text += fmt::format(" {}", to_string(plan.graph.spec(input)));
  }
  return fnv1a(std::as_bytes(std::span(text)));
}

void Rank::run() {
  auto& device = *executor_->plan().devices.front();
  if (collectives_) collectives_->skip(device);
  executor_->run();
  if (collectives_) collectives_->count_computation(device);
}

void Rank::set_share(const char* input, const Tensor& whole) {
  if (!communicator_) return executor_->set_input(input, whole);
  const auto& graph = executor_->plan().graph;
  Tensor part(graph.spec(graph.find(input)));
  const auto size = part.bytes().size();
  std::ranges::copy(
      whole.bytes().subspan(static_cast<std::size_t>(communicator_->rank()) * size, size),
      part.bytes().begin());
  executor_->set_input(input, part);
}

void Rank::set_inputs(const Tensor& x, const Tensor& target, float learning_rate) {
  set_share("x", x);
  set_share("target", target);
  executor_->set_input("learning_rate", scalar_tensor(learning_rate));
}

}  // namespace triptych::training
