// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/parameter_server.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/graph/passes/rewrite.h"
#include "core/ops/binary.h"
#include "core/ops/collectives.h"
#include "parallel/strategies/data_parallel.h"
#include "parallel/strategies/step_parts.h"

namespace triptych::parallel {
namespace {

class ServerRewriter {
 public:
  ServerRewriter(const TrainingGraph& training, const ParameterServerOptions& options)
      : training_(training),
        graph_(training.graph),
        options_(options),
        update_(update_node(training)),
        rewriter_(graph_, absent_states()) {
    const auto limit = options.central ? options.bucket_bytes : ~std::size_t{0} / 2;
    groups_ = group_by_first_reader(training, limit);
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const auto parameter : groups_[g]) group_of_[parameter] = g;
    const DataParallelOptions limits = {.bucket_bytes = options.bucket_bytes,
                                        .last_bucket_bytes = options.bucket_bytes};
    buckets_ = make_buckets(gradients_in_order(training), limits);
  }

  RankGraph run() {
    find_homes();
    if (works()) {
      work();
    } else {
      watch();
    }
    if (server()) collect();
    average_loss();
    RankGraph result{rewriter_.finish(), std::move(homes_)};
    result.share = options_.rank - (options_.central ? 1 : 0);
    return result;
  }

 private:
  bool server() const { return options_.rank == 0; }
  bool works() const { return !server() || !options_.central; }
  int workers() const { return options_.world_size - (options_.central ? 1 : 0); }

  /// The server owns the states of the optimiser except its count of steps. The workers own those
  /// of the layers.
  std::set<ValueId> absent_states() const {
    std::set<ValueId> updated, absent;
    for (const auto& update : update_.updates()) updated.insert(update.before);
    for (const auto state : graph_.values_of(ValueKind::State)) {
      const bool is_count = graph_.spec(state).dtype != DType::F32;
      const bool servers = updated.contains(state) && !is_count;
      if (servers ? !server() : !works() && !is_count) absent.insert(state);
    }
    if (!works()) {
      for (const auto& input : training_.batch_inputs) absent.insert(graph_.find(input));
    }
    if (!server()) absent.insert(learning_rate(training_));
    return absent;
  }

  void find_homes() {
    std::set<ValueId> updated;
    for (const auto& update : update_.updates()) updated.insert(update.before);
    for (const auto state : graph_.values_of(ValueKind::State)) {
      const auto& value = graph_.value(state);
      if (value.spec.dtype != DType::F32) continue;
      if (!updated.contains(state) && !options_.central) continue;
      homes_[value.name] = {
          .rank = updated.contains(state) ? 0 : 1, .whole = value.spec, .role = value.role};
    }
  }

  void work() {
    const auto loss = loss_value(training_).id;
    std::size_t next_bucket = 0;
    for (const auto& node : graph_.nodes()) {
      if (&node == &update_) continue;
      for (const auto input : node.inputs) provide(input);
      rewriter_.copy(node);
      for (const auto output : node.outputs) {
        if (output == loss && options_.central) provided_.clear();
        const bool completes = next_bucket < buckets_.size() &&
                               graph_.value(output).name == buckets_[next_bucket].gradients.back();
        if (completes && !server()) push(buckets_[next_bucket]);
        if (completes) ++next_bucket;
      }
    }
    loss_ = rewriter_.mapped(loss);
  }

  /// Sends parameters as the workers read them, and takes part in their sums with zeros.
  void watch() {
    Graph& graph = rewriter_.target();
    loss_ = graph.constant(scalar_tensor(0.0F));
    const auto loss = loss_value(training_).producer;
    for (const auto& node : graph_.nodes()) {
      if (&node == &update_) continue;
      for (const auto input : node.inputs) provide(input);
      if (node.op->collective()) {
        std::vector<ValueId> zeros;
        for (const auto input : node.inputs)
          zeros.push_back(graph.constant(Tensor(graph_.spec(input))));
        graph.add_node(node.op, zeros, node.name);
      }
      if (node.id == loss) provided_.clear();
    }
  }

  /// Brings the parameter with its group from the server to the workers, unless it is there. The
  /// server sends without waiting.
  void provide(ValueId value) {
    const auto group = group_of_.find(value);
    if (group == group_of_.end() || !provided_.insert(group->second).second) return;
    const auto& parameters = groups_[group->second];
    if (server()) {
      for (int to = 1; to < options_.world_size; ++to)
        send(to, rewriter_.mapped(parameters), fmt::format("parameters.to_rank{}", to));
      return;
    }
    const auto values = receive(0, parameters, "parameters");
    for (std::size_t i = 0; i < values.size(); ++i) rewriter_.map(parameters[i], values[i]);
  }

  std::vector<ValueId> gradients_of(const Bucket& bucket) const {
    std::vector<ValueId> values;
    values.reserve(bucket.gradients.size());
    for (const auto& name : bucket.gradients) values.push_back(graph_.find(name));
    return values;
  }
  void push(const Bucket& bucket) {
    send(0, rewriter_.mapped(gradients_of(bucket)), "gradients.to_server");
  }

  /// Adds up each bucket in the order of the ranks, and updates.
  void collect() {
    const auto share =
        rewriter_.target().constant(scalar_tensor(1.0F / static_cast<float>(workers())));
    for (const auto& bucket : buckets_) {
      const auto gradients = gradients_of(bucket);
      std::vector<ValueId> sums;
      if (works()) sums = rewriter_.mapped(gradients);
      for (int from = 1; from < options_.world_size; ++from) {
        const auto received = receive(from, gradients, fmt::format("gradients.of_rank{}", from));
        if (sums.empty()) {
          sums = received;
          continue;
        }
        for (std::size_t i = 0; i < sums.size(); ++i)
          sums[i] = combine(BinaryKind::Add, sums[i], received[i]);
      }
      for (std::size_t i = 0; i < sums.size(); ++i)
        rewriter_.map(gradients[i], combine(BinaryKind::Mul, sums[i], share));
    }
    rewriter_.copy(update_);
  }

  void average_loss() {
    AllReduce average;
    average.scale = 1.0F / static_cast<float>(workers());
    average.label = "loss";
    const std::vector<ValueId> own = {loss_};
    const auto loss = loss_value(training_).id;
    rewriter_.map(loss, rewriter_.target().add_node(make_op(average), own, "loss.average").front());
    // A server that does not work has no logits.
    for (const auto& output : graph_.outputs())
      if (!works() && output.value != loss) rewriter_.map(output.value, loss_);
  }

  ValueId combine(BinaryKind kind, ValueId a, ValueId b) {
    const std::vector<ValueId> terms = {a, b};
    return rewriter_.target().add_node(make_op(Binary(kind)), terms, "gradients.sum").front();
  }
  void send(int to, const std::vector<ValueId>& values, const std::string& name) {
    Send op;
    op.axis = "dp";
    op.to = to;
    op.label = name;
    rewriter_.target().add_node(make_op(op), values, name);
  }
  std::vector<ValueId> receive(int from, const std::vector<ValueId>& like,
                               const std::string& name) {
    Receive op;
    op.axis = "dp";
    op.from = from;
    op.label = name;
    for (const auto value : like) op.add(graph_.spec(value));
    return rewriter_.target().add_node(make_op(op), {}, name);
  }

  const TrainingGraph& training_;
  const Graph& graph_;
  ParameterServerOptions options_;
  const Node& update_;
  Rewriter rewriter_;
  std::vector<std::vector<ValueId>> groups_;  // parameters that are fetched together
  std::map<ValueId, std::size_t> group_of_;
  std::vector<Bucket> buckets_;
  std::set<std::size_t> provided_;
  ValueId loss_;
  std::map<std::string, StateHome> homes_;
};

}  // namespace

RankGraph parameter_server(const TrainingGraph& training, const ParameterServerOptions& options) {
  return ServerRewriter(training, options).run();
}

}  // namespace triptych::parallel
