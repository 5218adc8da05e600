// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "core/base/fnv1a.h"
#include "core/graph/passes/passes.h"
#include "core/ops/collectives.h"
#include "experiments/training/model_exchange.h"
#include "experiments/training/run_config.h"

namespace triptych::training {
namespace {

/// Of what all ranks must agree on.
std::uint64_t fingerprint_of(const TrainerConfig& config, const MachineConfig& machine) {
  const auto& options = config.options;
  const auto& optimizer = options.optimizer;
  const auto text =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", to_json(config.model),
                  options.batch, options.seed, to_string(options.loss), to_string(optimizer.kind),
                  optimizer.momentum, optimizer.nesterov, optimizer.beta1, optimizer.beta2,
                  optimizer.epsilon, optimizer.weight_decay, to_string(machine.contract),
                  machine.parallel.strategy, machine.parallel.order, machine.parallel.ranks,
                  machine.parallel.mesh, machine.parallel.shards);
  return fnv1a(std::as_bytes(std::span(text)));
}

parallel::StrategyRequest request_of(const TrainerConfig& config, const ParallelConfig& parallel,
                                     int rank) {
  return {.model = config.model,
          .options = config.options,
          .world_size = parallel.ranks,
          .rank = rank,
          .order = parallel.order,
          .shards = parallel.shards,
          .node_seconds = config.node_seconds};
}

}  // namespace

std::map<std::string, double> measure_nodes(const Machine& machine, const TrainerConfig& config,
                                            std::int64_t batch) {
  auto options = config.options;
  options.batch = batch;
  auto graph = optimize(build_training_graph(config.model, options).graph, {});
  StateStore states(machine.device());
  Executor executor(make_plan(std::move(graph), machine.devices(), machine.plan_options()), states);
  const auto& step = executor.plan().graph;
  for (const char* input : {"x", "target", "learning_rate"})
    executor.set_input(input, Tensor(step.spec(step.find(input))));
  executor.run();
  std::map<std::string, double> seconds;
  for (const auto& profile : executor.run_profiled())
    seconds[step.node(profile.node).name] = profile.time.seconds;
  return seconds;
}

void Rank::agree_on(std::map<std::string, double>& seconds) {
  std::vector<float> values;
  values.reserve(seconds.size());
  for (const auto& [name, value] : seconds) values.push_back(static_cast<float>(value));
  communicator_->all_reduce(values, parallel::Algorithm::Direct, "seconds of the nodes");
  auto next = values.begin();
  for (auto& [name, value] : seconds) value = double{*next++} / communicator_->world_size();
}

std::map<std::string, parallel::Communicator*> Rank::open_axes(const parallel::Mesh& mesh) {
  std::map<std::string, parallel::Communicator*> axes;
  if (mesh.empty())
    for (const char* name : {"dp", "pp", "tp"}) axes[name] = communicator_.get();
  for (const auto& [name, size] : mesh.axes()) {
    axes_.push_back(std::make_unique<parallel::Communicator>(communicator_->subgroup(
        mesh.line(name, communicator_->rank()), static_cast<int>(axes_.size()) + 1)));
    axes[name] = axes_.back().get();
  }
  return axes;
}

Rank::Rank(const Machine& machine, const TrainerConfig& config,
           std::unique_ptr<parallel::Transport> transport, parallel::SimulatedTime* time)
    : states_(machine.device()), time_(time) {
  auto plan_options = machine.plan_options();
  const auto& parallel = machine.config().parallel;
  const auto strategy = parallel::strategy_from_string(parallel.strategy, parallel.mesh);
  if (transport) {
    communicator_ = std::make_unique<parallel::Communicator>(std::move(transport));
    if (parallel.overlap && !communicator_->memory().on_host()) {
      throw UnsupportedError(fmt::format(
          "--overlap takes messages in the host's memory, not those of \"{}\"; leave it out",
          parallel.transport));
    }
    collectives_ = std::make_unique<parallel::RankCollectives>(
        open_axes(strategy.mesh),
        parallel.overlap ? parallel::Overlap::Lane : parallel::Overlap::None);
    if (time != nullptr) collectives_->simulate(*time, communicator_->rank(), machine.work_clock());
    plan_options.placement.collectives = collectives_.get();
  }
  auto request = request_of(config, parallel, communicator_ ? communicator_->rank() : 0);
  if (parallel.transport == "mpi" && communicator_) {
    communicator_->require_same(fingerprint_of(config, machine.config()), "the plan");
    agree_on(request.node_seconds);  // each process has measured for itself
  }
  auto own = parallel::make_rank_graph(strategy, request);
  homes_ = std::move(own.homes);
  exchange_ = std::move(own.exchange);
  share_ = own.share >= 0 ? own.share : request.rank;
  auto graph = optimize(std::move(own.graph), {.memory_limit = config.memory_limit_mib << 20});
  executor_ = std::make_unique<Executor>(
      make_plan(std::move(graph), machine.devices(), plan_options), states_);
}

std::vector<std::string> Rank::names() const {
  std::set<std::string> names;
  for (const auto& [name, home] : homes_) names.insert(name);
  for (const auto& name : states_.names()) names.insert(name);
  return {names.begin(), names.end()};
}

Tensor Rank::read(const std::string& name) {
  const auto home = homes_.find(name);
  if (home == homes_.end()) return states_.read(name);
  const auto& [owner, spec, axis, split] = home->second;
  auto* communicator = owner < 0 ? collectives_->find(axis) : communicator_.get();
  const auto rank = communicator->rank();
  const auto ranks = static_cast<std::size_t>(communicator->world_size());
  Tensor part = owner < 0 || owner == rank ? states_.read(name) : Tensor(spec);
  parallel::CollectiveCall call = {.collective = parallel::Collective::Broadcast,
                                   .algorithm = parallel::Algorithm::Tree,
                                   .dtype = DType::U8,
                                   .root = owner,
                                   .label = name};
  std::vector<std::byte> bytes(part.bytes().begin(), part.bytes().end());
  if (owner < 0) {
    call.collective = parallel::Collective::AllGather;
    call.algorithm = parallel::Algorithm::Ring;
    call.root = 0;
    const auto size = bytes.size();
    bytes.resize(size * ranks);
    std::ranges::copy(part.bytes(), bytes.begin() + rank * static_cast<std::ptrdiff_t>(size));
  }
  call.elements = std::ssize(bytes);
  auto collective = communicator->prepare(call);
  communicator->run(collective, bytes.data());
  return parallel::join_parts(bytes, spec, owner < 0 ? communicator->world_size() : 1, split);
}

void Rank::write(const std::string& name, const Tensor& value) {
  const auto home = homes_.find(name);
  if (home == homes_.end()) return states_.write(name, value);
  const auto& [owner, spec, axis, split] = home->second;
  if (value.spec() != spec) {
    throw InvalidArgument(fmt::format("the state \"{}\" is {}, got {}", name, to_string(spec),
                                      to_string(value.spec())));
  }
  if (owner >= 0) {
    if (states_.contains(name)) states_.write(name, value);  // replicas of its owner have it, too
    return;
  }
  const auto& communicator = *collectives_->find(axis);
  states_.write(
      name, parallel::part_of_tensor(value, communicator.rank(), communicator.world_size(), split));
}

std::size_t Rank::message_bytes() const {
  std::size_t bytes = 0;
  for (const auto& name : exchange_.returned) bytes += spec(name).bytes();
  return bytes;
}

TensorSpec Rank::spec(const std::string& name) const {
  const auto home = homes_.find(name);
  const auto& graph = executor_->plan().graph;
  return home == homes_.end() ? graph.spec(graph.find(name)) : home->second.whole;
}

void Rank::average_states() {
  std::vector<float> all;
  const auto for_each = [&](const auto& use) {
    for (const auto& name : states_.names()) {
      Tensor state = states_.read(name);
      if (state.dtype() == DType::F32) use(name, state);
    }
  };
  for_each([&](const std::string&, const Tensor& state) {
    all.insert(all.end(), state.as<float>().begin(), state.as<float>().end());
  });
  communicator_->all_reduce(all, parallel::Algorithm::Direct, "states of all ranks");
  auto next = all.begin();
  for_each([&](const std::string& name, Tensor& state) {
    for (float& value : state.as<float>())
      value = *next++ / static_cast<float>(communicator_->world_size());
    states_.write(name, state);
  });
}

void Rank::run_stretch(parallel::Stretch stretch, const parallel::Server& server,
                       const std::function<float(std::int64_t)>& learning_rate,
                       const std::function<void(std::int64_t)>& load,
                       parallel::StretchRecord& record) {
  ModelExchange exchange(exchange_, *executor_, states_);
  auto model = exchange.model();
  stretch.returned = stretch.contributed = model.size();
  if (communicator_->rank() == 0) {
    auto own = server;
    own.apply = [&](std::int64_t step, std::span<const float> contribution) {
      exchange.apply(contribution, learning_rate(step), communicator_->world_size() - 1,
                     [this] { run(); });
    };
    own.read = [&](std::span<float> reply) { std::ranges::copy(exchange.model(), reply.begin()); };
    record = parallel::serve(*communicator_, stretch, own);
    model = exchange.model();
  } else {
    parallel::Worker worker;
    worker.step = [&](std::int64_t step) {
      load(step);
      run();
      return executor_->output("loss").as<float>()[0];
    };
    worker.contribute = [&](std::span<float> values) { exchange.contribute(model, values); };
    worker.take = [&](std::span<const float> reply) {
      std::ranges::copy(reply, model.begin());
      exchange.set_model(model);
    };
    parallel::work(*communicator_, stretch, worker);
  }
  communicator_->broadcast(model, 0, "the model");
  exchange.set_model(model);
}

void Rank::run() {
  if (collectives_) collectives_->skip();
  executor_->run();
  if (collectives_) collectives_->count_computation();
}

RankTrace Rank::run_traced() {
  const auto& plan = executor_->plan();
  const int rank = communicator_ ? communicator_->rank() : 0;
  RankTrace trace;
  trace.run.name = fmt::format("rank {}", rank);
  trace.run.plan = &plan;
  if (collectives_) collectives_->skip();
  if (collectives_) collectives_->record();
  const auto exposed = this->exposed();
  const auto start = std::chrono::steady_clock::now();
  executor_->run_profiled([&](const StepProfile& step) {
    if (plan.graph.node(step.node).op->collective()) return;
    trace.run.profile.push_back(step);
    if (time_ == nullptr) return;
    collectives_->count_computation();
    trace.computations.push_back(time_->computations(rank) - 1);
  });
  if (collectives_) collectives_->count_computation();
  const parallel::Seconds total = std::chrono::steady_clock::now() - start;
  trace.run.start_s = parallel::Seconds(start.time_since_epoch()).count();
  trace.time = {total.count(), TimeKind::Measured};
  trace.exposed = {(this->exposed() - exposed).count(), TimeKind::Measured};
  if (!collectives_) return trace;
  auto& lane = trace.run.lanes.emplace_back();
  lane.name = "communication";
  for (auto& event : collectives_->take_events())
    lane.events.push_back(
        {std::move(event.label), event.start_s - trace.run.start_s, event.end_s - event.start_s});
  return trace;
}

void Rank::set_input(const char* input, const Tensor& whole) {
  const auto& graph = executor_->plan().graph;
  if (!graph.contains(input)) return;  // another stage's
  Tensor part(graph.spec(graph.find(input)));
  const auto size = part.bytes().size();
  if (size == whole.bytes().size()) return executor_->set_input(input, whole);
  std::ranges::copy(whole.bytes().subspan(static_cast<std::size_t>(share_) * size, size),
                    part.bytes().begin());
  executor_->set_input(input, part);
}

void Rank::set_inputs(const Tensor& x, const Tensor& target, float learning_rate) {
  set_input("x", x);
  set_input("target", target);
  set_input("learning_rate", scalar_tensor(learning_rate));
}

}  // namespace triptych::training
