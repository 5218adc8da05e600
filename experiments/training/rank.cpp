// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/rank.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/fnv1a.h"
#include "core/graph/passes/passes.h"
#include "core/ops/collectives.h"
#include "experiments/training/run_config.h"

namespace triptych::training {
namespace {

std::uint64_t fingerprint_of(const TrainerConfig& config, const MachineConfig& machine) {
  const auto& options = config.options;
  const auto& optimizer = options.optimizer;
  const auto text =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", to_json(config.model),
                  options.batch, options.seed, to_string(options.loss), to_string(optimizer.kind),
                  optimizer.momentum, optimizer.nesterov, optimizer.beta1, optimizer.beta2,
                  optimizer.epsilon, optimizer.weight_decay, to_string(machine.contract),
                  machine.parallel.strategy, machine.parallel.order, machine.parallel.ranks);
  return fnv1a(std::as_bytes(std::span(text)));
}

parallel::StrategyRequest request_of(const TrainerConfig& config, const ParallelConfig& parallel,
                                     int rank) {
  return {.model = config.model,
          .options = config.options,
          .world_size = parallel.ranks,
          .rank = rank,
          .order = parallel.order};
}

}  // namespace

Rank::Rank(const Machine& machine, const TrainerConfig& config,
           std::unique_ptr<parallel::Transport> transport, parallel::SimulatedTime* time)
    : states_(machine.device()) {
  auto plan_options = machine.plan_options();
  if (transport) {
    communicator_ = std::make_unique<parallel::Communicator>(std::move(transport));
    collectives_ = std::make_unique<parallel::RankCollectives>(
        std::map<std::string, parallel::Communicator*>{{"dp", communicator_.get()}});
    if (time != nullptr) collectives_->simulate(*time, communicator_->rank());
    plan_options.placement.collectives = collectives_.get();
  }
  const auto& parallel = machine.config().parallel;
  fingerprint_ = fingerprint_of(config, machine.config());
  auto own = parallel::make_rank_graph(
      parallel.strategy, request_of(config, parallel, communicator_ ? communicator_->rank() : 0));
  homes_ = std::move(own.homes);
  auto graph = optimize(std::move(own.graph), {.memory_limit = config.memory_limit_mib << 20});
  executor_ = std::make_unique<Executor>(
      make_plan(std::move(graph), machine.devices(), plan_options), states_);
}

Tensor Rank::read(const std::string& name) {
  const auto home = homes_.find(name);
  if (home == homes_.end()) return states_.read(name);
  const auto& [owner, spec] = home->second;
  TRIPTYCH_ASSERT(owner < 0);
  const Tensor part = states_.read(name);
  const auto own = part.bytes();
  std::vector<std::byte> parts(own.size() * static_cast<std::size_t>(communicator_->world_size()));
  std::ranges::copy(own, parts.begin() + communicator_->rank() * std::ssize(own));
  auto gather = communicator_->prepare({.collective = parallel::Collective::AllGather,
                                        .algorithm = parallel::Algorithm::Ring,
                                        .dtype = DType::U8,
                                        .elements = std::ssize(parts),
                                        .label = name});
  communicator_->run(gather, parts.data());
  Tensor whole(spec);
  std::copy_n(parts.begin(), whole.bytes().size(), whole.bytes().begin());
  return whole;
}

void Rank::write(const std::string& name, const Tensor& value) {
  const auto home = homes_.find(name);
  if (home == homes_.end()) return states_.write(name, value);
  if (value.spec() != home->second.whole) {
    throw InvalidArgument(fmt::format("the state \"{}\" is {}, got {}", name,
                                      to_string(home->second.whole), to_string(value.spec())));
  }
  Tensor part(TensorSpec{
      value.dtype(), Shape{shard_elements(value.shape().elements(), communicator_->world_size())}});
  const auto size = part.bytes().size();
  const auto first =
      std::min(static_cast<std::size_t>(communicator_->rank()) * size, value.bytes().size());
  const auto bytes = value.bytes().subspan(first, std::min(size, value.bytes().size() - first));
  std::ranges::copy(bytes, part.bytes().begin());
  states_.write(name, part);
}

TensorSpec Rank::spec(const std::string& name) const {
  const auto home = homes_.find(name);
  const auto& graph = executor_->plan().graph;
  return home == homes_.end() ? graph.spec(graph.find(name)) : home->second.whole;
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
