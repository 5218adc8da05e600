// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/asynchronous.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/graph/passes/rewrite.h"
#include "parallel/strategies/step_parts.h"

namespace triptych::parallel {
namespace {

constexpr const char* kContribution = "contribution";
constexpr const char* kModel = "model";

std::string gradient_name(const std::string& parameter) { return "gradient." + parameter; }

std::set<ValueId> updated_states(const TrainingGraph& training) {
  std::set<ValueId> states;
  for (const auto& update : update_node(training).updates()) states.insert(update.before);
  return states;
}

RankGraph server_graph(const TrainingGraph& training) {
  const Graph& source = training.graph;
  const auto& update = update_node(training);
  const auto count = training.parameters.size();
  RankGraph own;
  std::vector<ValueId> inputs = {
      own.graph.add_input(source.value(update.inputs[0]).name, source.spec(update.inputs[0]))};
  for (std::size_t i = 1; i < update.inputs.size(); ++i) {
    const auto& value = source.value(update.inputs[i]);
    const bool is_gradient = i >= 2 + count && i < 2 + 2 * count;
    inputs.push_back(
        is_gradient
            ? own.graph.add_input(gradient_name(training.parameters[i - 2 - count]), value.spec)
            : own.graph.add_state(value.name, value.data, value.role));
  }
  const auto phase = own.graph.phase(Phase::Update);
  const auto updated = own.graph.add_node(update.op, inputs, update.name);
  own.graph.mark_output("step", updated.front());
  return own;
}

RankGraph worker_graph(const TrainingGraph& training) {
  const Graph& source = training.graph;
  auto absent = updated_states(training);
  for (const auto& name : training.parameters) absent.erase(source.find(name));
  absent.insert(learning_rate(training));
  Rewriter rewriter(source, absent);
  const auto& update = update_node(training);
  for (const auto& node : source.nodes())
    if (&node != &update) rewriter.copy(node);
  for (std::size_t i = 0; i < training.parameters.size(); ++i) {
    rewriter.target().mark_output(gradient_name(training.parameters[i]),
                                  rewriter.mapped(source.find(training.parameter_gradients[i])));
  }
  return {rewriter.finish()};
}

/// A contribution has the losses of its steps behind it, the model the stretch's number of steps.
std::span<std::byte> bytes_of(std::vector<float>& values) {
  return std::as_writable_bytes(std::span(values));
}

/// Knowledge of the server about a worker.
struct WorkerState {
  int rank = 0;
  std::int64_t steps = 0;     ///< finished
  std::int64_t promised = 0;  ///< of its next contribution. 0: it waits for the server, or is done
  std::int64_t read_at = 0;   ///< contributions that its model has
  std::vector<float> reply;
  std::optional<std::uint64_t> sent;
};

class ServerLoop {
 public:
  ServerLoop(Communicator& communicator, const Stretch& stretch, const Server& server)
      : communicator_(communicator),
        stretch_(stretch),
        server_(server),
        limit_(stretch.steps),
        message_(stretch.contributed + static_cast<std::size_t>(stretch.period)),
        losses_(static_cast<std::size_t>(stretch.steps)) {
    for (int rank = 1; rank < communicator.world_size(); ++rank) {
      workers_.push_back({.rank = rank, .promised = std::min(stretch.period, limit_)});
      workers_.back().reply.resize(stretch.returned + 1);
    }
  }

  StretchRecord run() {
    while (auto* worker = next()) {
      take(*worker);
      if (server_.interrupted()) shorten();
      for (auto& other : workers_) answer(other);
      tell_losses();
    }
    for (auto& worker : workers_)
      if (worker.sent) communicator_.wait_taken(worker.rank, *worker.sent, kModel);
    record_.steps = limit_;
    record_.staleness /= std::max(1.0, static_cast<double>(record_.order.size()));
    return std::move(record_);
  }

 private:
  /// The worker with the next contribution. nullptr when none is to come.
  WorkerState* next() {
    std::vector<int> open;
    for (const auto& worker : workers_)
      if (worker.promised > 0) open.push_back(worker.rank);
    if (open.empty()) return nullptr;
    const auto number = record_.order.size();
    int rank = 0;
    if (number < server_.replay.size()) {
      rank = server_.replay[number];
      if (std::ranges::find(open, rank) == open.end()) {
        throw InvalidArgument(fmt::format(
            "contribution {} of the replay is rank {}'s, which has none to give; replay with the "
            "strategy, the ranks and the steps of the run that was recorded",
            number + 1, rank));
      }
    } else {
      rank = communicator_.wait_any(open, kContribution);
    }
    return &workers_[static_cast<std::size_t>(rank - 1)];
  }

  void take(WorkerState& worker) {
    communicator_.receive(worker.rank, bytes_of(message_), kContribution);
    server_.apply(worker.steps, std::span(message_).first(stretch_.contributed));
    for (std::int64_t i = 0; i < worker.promised; ++i) {
      losses_[static_cast<std::size_t>(worker.steps + i)] +=
          message_[stretch_.contributed + static_cast<std::size_t>(i)];
    }
    worker.steps += worker.promised;
    worker.promised = 0;
    const auto others = std::ssize(record_.order) - worker.read_at;
    record_.staleness += static_cast<double>(others);
    record_.most_staleness = std::max(record_.most_staleness, others);
    record_.order.push_back(worker.rank);
    waiting_.push_back(worker.rank);
  }

  /// No further than the pending contributions.
  void shorten() {
    std::int64_t reached = 0;
    for (const auto& worker : workers_) reached = std::max(reached, worker.steps + worker.promised);
    limit_ = std::min(limit_, reached);
  }

  /// Gives the worker the model, if it waits for it and is not too far ahead.
  void answer(WorkerState& worker) {
    const auto waits = std::ranges::find(waiting_, worker.rank);
    if (waits == waiting_.end()) return;
    const auto slowest = std::ranges::min(workers_, {}, &WorkerState::steps).steps;
    if (worker.steps < limit_ && worker.steps - slowest > stretch_.bound * stretch_.period) return;
    waiting_.erase(waits);
    if (worker.sent) communicator_.wait_taken(worker.rank, *worker.sent, kModel);
    server_.read(std::span(worker.reply).first(stretch_.returned));
    worker.reply.back() = static_cast<float>(limit_);
    worker.sent = communicator_.send(worker.rank, bytes_of(worker.reply), kModel);
    worker.promised = std::min(stretch_.period, limit_ - worker.steps);
    worker.read_at = std::ssize(record_.order);
  }

  void tell_losses() {
    const auto slowest = std::ranges::min(workers_, {}, &WorkerState::steps).steps;
    for (; told_ < slowest; ++told_) {
      server_.on_loss(
          told_, losses_[static_cast<std::size_t>(told_)] / static_cast<float>(workers_.size()));
    }
  }

  Communicator& communicator_;
  const Stretch& stretch_;
  const Server& server_;
  std::int64_t limit_;  ///< steps of each worker
  std::vector<float> message_;
  std::vector<float> losses_;  ///< sums over the workers, by step
  std::int64_t told_ = 0;
  std::vector<WorkerState> workers_;
  std::vector<int> waiting_;
  StretchRecord record_;
};

}  // namespace

RankGraph asynchronous_gradients(const TrainingGraph& training, int rank) {
  auto own = rank == 0 ? server_graph(training) : worker_graph(training);
  const auto updated = updated_states(training);
  for (const auto state : training.graph.values_of(ValueKind::State)) {
    const auto& value = training.graph.value(state);
    own.homes[value.name] = {
        .rank = updated.contains(state) ? 0 : 1, .whole = value.spec, .role = value.role};
  }
  for (const auto& name : training.parameters) {
    own.exchange.contributed.push_back(gradient_name(name));
    own.exchange.returned.push_back(name);
  }
  own.share = rank - 1;
  return own;
}

RankGraph asynchronous_averages(const TrainingGraph& training, int rank) {
  RankGraph own{training.graph.clone()};
  for (const auto state : training.graph.values_of(ValueKind::State)) {
    const auto& value = training.graph.value(state);
    if (value.spec.dtype == DType::F32) {
      own.exchange.returned.push_back(value.name);
    } else {
      own.homes[value.name] = {
          .rank = 1, .whole = value.spec, .role = value.role};  // the count of steps
    }
  }
  own.share = rank - 1;
  return own;
}

StretchRecord serve(Communicator& communicator, const Stretch& stretch, const Server& server) {
  return ServerLoop(communicator, stretch, server).run();
}

void work(Communicator& communicator, const Stretch& stretch, const Worker& worker) {
  std::vector<float> message(stretch.contributed + static_cast<std::size_t>(stretch.period));
  std::vector<float> reply(stretch.returned + 1);
  auto limit = stretch.steps;
  for (std::int64_t step = 0; step < limit;) {
    const auto count = std::min(stretch.period, limit - step);
    for (std::int64_t i = 0; i < count; ++i)
      message[stretch.contributed + static_cast<std::size_t>(i)] = worker.step(step + i);
    step += count;
    worker.contribute(std::span(message).first(stretch.contributed));
    const auto sent = communicator.send(0, bytes_of(message), kContribution);
    communicator.receive(0, bytes_of(reply), kModel);
    communicator.wait_taken(0, sent, kContribution);
    worker.take(std::span<const float>(reply).first(stretch.returned));
    limit = static_cast<std::int64_t>(reply.back());
  }
}

}  // namespace triptych::parallel
