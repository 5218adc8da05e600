// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/rank.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "core/graph/passes/passes.h"
#include "core/ops/collectives.h"
#include "experiments/training/model_exchange.h"
#include "experiments/training/rank_consistency.h"
#include "parallel/strategies/communication_cost.h"
#include "parallel/strategies/pipeline.h"

namespace triptych::training {
namespace {

constexpr auto kAverage = parallel::Algorithm::Direct;  // of states

}  // namespace

parallel::StrategyRequest strategy_request(const TrainerConfig& config,
                                           const ParallelConfig& parallel, int rank) {
  return {.step = training_step(config.model, config.options),
          .batch = config.options.batch,
          .world_size = parallel.ranks,
          .rank = rank,
          .order = parallel.order,
          .shards = parallel.shards,
          .accumulate = config.accumulate,
          .node_seconds = config.node_seconds,
          .cut = config.cut};
}

Rows union_of(const Rows& a, const Rows& b) {
  if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
  const auto first = std::min(a.first, b.first);
  return {first, std::max(a.first + a.count, b.first + b.count) - first};
}

std::map<std::string, double> measure_nodes(const DeviceSet& machine, const TrainerConfig& config,
                                            std::int64_t batch) {
  auto options = config.options;
  options.batch = batch;
  auto graph = optimize(build_training_graph(config.model, options).graph, {});
  StateStore states(machine.device());
  Executor executor(make_plan(std::move(graph), machine.devices(), machine.plan_options()), states);
  const auto& step = executor.plan().graph;
  for (const auto input : step.values_of(ValueKind::Input))
    executor.set_input(step.value(input).name, Tensor(step.spec(input)));
  executor.run();
  std::map<std::string, double> seconds;
  for (const auto& profile : executor.run_profiled())
    parallel::add_node_seconds(seconds, step.node(profile.node), profile.time.seconds);
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

Rank::Rank(const DeviceSet& machine, const TrainerConfig& config,
           std::unique_ptr<parallel::Transport> transport, parallel::SimulatedTime* time)
    : states_(machine.device()), time_(time), batch_(config.options.batch) {
  auto plan_options = machine.plan_options();
  const auto& parallel = machine.config().parallel;
  if (transport) {
    communicator_ = std::make_unique<parallel::Communicator>(std::move(transport));
    if (parallel.overlap && !communicator_->memory().on_host()) {
      throw UnsupportedError(
          fmt::format("the option overlap takes messages in the host's memory, not those of "
                      "\"{}\"; leave it out",
                      name_of(parallel.transport)));
    }
    collectives_ = std::make_unique<parallel::RankCollectives>(
        *communicator_, parallel.strategy.mesh,
        parallel.overlap ? parallel::Overlap::Lane : parallel::Overlap::None);
    if (time != nullptr) {
      collectives_->simulate(std::make_shared<parallel::RankClock>(*time, communicator_->rank(),
                                                                   machine.work_clock()));
    }
    plan_options.placement.collectives = collectives_.get();
  }
  auto request = strategy_request(config, parallel, communicator_ ? communicator_->rank() : 0);
  if (parallel.transport == Transport::Mpi && communicator_) {
    require_rank_consistency(*communicator_, facts_of({.model = config.model,
                                                       .training = config.options,
                                                       .accumulate = config.accumulate},
                                                      machine.config()));
    agree_on(request.node_seconds);  // each process has measured for itself
  }
  Graph inputs;
  for (const auto input : add_model_inputs(inputs, config.model, 1, 1, 1))
    inputs_.push_back(inputs.value(input).name);
  inputs_.emplace_back("target");
  auto own = parallel::make_rank_graph(parallel.strategy, request);
  homes_ = std::move(own.homes);
  exchange_ = std::move(own.exchange);
  cut_ = std::move(own.cut);
  without_rule_ = std::move(own.without_rule);
  inexact_ = std::move(own.inexact);
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

bool Rank::optimizer_has(const std::string& name) const {
  const auto home = homes_.find(name);
  const auto& graph = executor_->plan().graph;
  const auto role = home != homes_.end() ? home->second.role : graph.value(graph.find(name)).role;
  return role == StateRole::Moment || role == StateRole::Step;
}

Tensor Rank::read(const std::string& name) {
  const auto home = homes_.find(name);
  if (home == homes_.end()) return states_.read(name);
  const auto& [owner, spec, axis, split, role] = home->second;
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
  const auto& [owner, spec, axis, split, role] = home->second;
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

std::int64_t Rank::average_bytes() const {
  std::int64_t elements = 0;
  for (const auto& name : names()) {
    const auto spec = this->spec(name);
    if (spec.dtype == DType::F32) elements += spec.shape.elements();
  }
  return parallel::bytes_sent(parallel::Collective::AllReduce, kAverage,
                              communicator_->world_size(), elements);
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
  communicator_->all_reduce(all, kAverage, "states of all ranks");
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
  if (collectives_) collectives_->computation_begins();
  executor_->run();
  if (collectives_) collectives_->computation_ends();
}

RankTrace Rank::run_traced() {
  const auto& plan = executor_->plan();
  const int rank = communicator_ ? communicator_->rank() : 0;
  RankTrace trace;
  trace.run.name = fmt::format("rank {}", rank);
  trace.run.plan = &plan;
  if (collectives_) collectives_->computation_begins();
  const auto recorder = std::make_shared<parallel::LaneRecorder>();
  if (collectives_) collectives_->observe(recorder);
  const auto exposed = this->exposed();
  const auto start = std::chrono::steady_clock::now();
  executor_->run_profiled([&](const StepProfile& step) {
    if (plan.graph.node(step.node).op->collective()) return;
    trace.run.profile.push_back(step);
    if (time_ == nullptr) return;
    collectives_->computation_ends();
    trace.computations.push_back(time_->computations(rank) - 1);
  });
  if (collectives_) collectives_->computation_ends();
  const parallel::Seconds total = std::chrono::steady_clock::now() - start;
  trace.run.start_s = parallel::Seconds(start.time_since_epoch()).count();
  trace.time = {total.count(), TimeKind::Measured};
  trace.exposed = {(this->exposed() - exposed).count(), TimeKind::Measured};
  if (!collectives_) return trace;
  auto& lane = trace.run.lanes.emplace_back();
  lane.name = "communication";
  collectives_->forget(recorder);
  for (const auto& event : recorder->events())
    lane.events.push_back(
        {event.label, event.start_s - trace.run.start_s, event.end_s - event.start_s});
  return trace;
}

Rows Rank::rows_of(std::string_view input) const {
  const auto& graph = executor_->plan().graph;
  if (!graph.contains(input)) return {};  // another stage's
  const auto count = graph.spec(graph.find(input)).shape[0];
  return count == batch_ ? Rows{0, count} : Rows{share_ * count, count};
}

Rows Rank::rows() const {
  Rows rows;
  for (const auto& input : inputs_) rows = union_of(rows, rows_of(input));
  return rows;
}

void Rank::set_rows(const std::string& input, const Tensor& given, std::int64_t first) {
  const auto own = rows_of(input);
  if (own.count == 0) return;
  const auto& graph = executor_->plan().graph;
  const auto& spec = graph.spec(graph.find(input));
  const auto& dims = given.shape().dims();
  const bool fits = given.dtype() == spec.dtype && dims.size() == spec.shape.dims().size() &&
                    std::equal(dims.begin() + 1, dims.end(), spec.shape.dims().begin() + 1);
  if (!fits || own.first < first || own.first + own.count > first + given.shape()[0]) {
    throw InvalidArgument(fmt::format(
        "the input \"{}\" needs {} of rows {} to {} of the batch, got {} of rows {} to {}", input,
        to_string(spec), own.first, own.first + own.count, to_string(given.spec()), first,
        first + (given.shape().rank() == 0 ? 0 : given.shape()[0])));
  }
  if (own.first == first && given.spec() == spec) return executor_->set_input(input, given);
  auto& part = parts_.try_emplace(input, spec).first->second;
  const auto size = part.bytes().size();
  const auto row = size / static_cast<std::size_t>(own.count);
  const auto skipped = static_cast<std::size_t>(own.first - first) * row;
  std::ranges::copy(given.bytes().subspan(skipped, size), part.bytes().begin());
  executor_->set_input(input, part);
}

void Rank::set_inputs(const Tensor& x, const Tensor& target, float learning_rate,
                      std::int64_t first_row, std::span<const Tensor> others) {
  set_rows("x", x, first_row);
  for (std::size_t i = 0; i < others.size(); ++i)
    set_rows(model_input_name(i + 1), others[i], first_row);
  set_rows("target", target, first_row);
  if (executor_->plan().graph.contains("learning_rate"))
    executor_->set_input("learning_rate", scalar_tensor(learning_rate));
}

}  // namespace triptych::training
