// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/sharded.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "core/graph/passes/rewrite.h"
#include "core/ops/collectives.h"
#include "parallel/strategies/data_parallel.h"
#include "parallel/strategies/step_parts.h"

namespace triptych::parallel {
namespace {

class Sharder {
 public:
  Sharder(const TrainingGraph& training, const ShardOptions& options)
      : training_(training),
        options_(options),
        update_(update_node(training)),
        rewriter_(training.graph, sharded_states()),
        groups_(group_by_first_reader(training, options.bucket_bytes)) {
    add_parts();
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (const auto parameter : groups_[g]) group_of_[parameter] = g;
    for (auto& bucket : gradient_buckets()) buckets_.emplace(bucket.gradients.back(), bucket);
  }

  RankGraph run() {
    const Graph& graph = training_.graph;
    const auto loss = loss_value(training_).id;
    for (const auto& node : graph.nodes()) {
      if (&node == &update_) {
        copy_update();
        continue;
      }
      for (const auto input : node.inputs) provide(input);
      rewriter_.copy(node);
      for (const auto output : node.outputs) {
        const auto bucket = buckets_.find(graph.value(output).name);
        if (bucket != buckets_.end()) scatter(bucket->second);
        // The backward pass gathers again, so that nothing stays in memory in between.
        if (output == loss && options_.stage == 3) gathered_.clear();
      }
    }
    AllReduce average;
    average.order = options_.order;
    average.scale = 1.0F / static_cast<float>(options_.world_size);
    average.label = "loss";
    const std::vector<ValueId> own = {rewriter_.mapped(loss)};
    rewriter_.map(loss, rewriter_.target().add_node(make_op(average), own, "loss.average").front());
    return {rewriter_.finish(), std::move(homes_)};
  }

 private:
  /// States that the optimiser updates, except the count of steps: parameters and moments.
  std::set<ValueId> sharded_states() const {
    std::set<ValueId> states;
    for (const auto& update : update_.updates())
      if (training_.graph.spec(update.before).dtype == DType::F32) states.insert(update.before);
    return states;
  }

  void add_parts() {
    for (const auto state : sharded_states()) {
      const auto& value = training_.graph.value(state);
      parts_[state] = rewriter_.target().add_state(
          value.name, part_of_tensor(*value.data, options_.rank, options_.world_size), value.role);
      homes_[value.name] = {.whole = value.spec, .role = value.role};
    }
  }

  std::vector<Bucket> gradient_buckets() const {
    DataParallelOptions limits = {.bucket_bytes = options_.bucket_bytes};
    limits.last_bucket_bytes = limits.bucket_bytes;
    if (options_.stage == 1) limits.bucket_bytes = std::numeric_limits<std::size_t>::max() / 2;
    return make_buckets(gradients_in_order(training_), limits);
  }

  /// Gathers the parameter and its group, unless it is there.
  void provide(ValueId value) {
    const auto group = group_of_.find(value);
    if (group == group_of_.end() || !gathered_.insert(group->second).second) return;
    AllGather gather;
    gather.parts = options_.world_size;
    std::vector<ValueId> parts;
    for (const auto parameter : groups_[group->second]) {
      gather.add_shape(training_.graph.spec(parameter).shape);
      parts.push_back(parts_.at(parameter));
    }
    gather.label = fmt::format("parameters.group{}", group->second + 1);
    const auto whole = rewriter_.target().add_node(make_op(gather), parts, gather.label);
    for (std::size_t i = 0; i < whole.size(); ++i)
      rewriter_.map(groups_[group->second][i], whole[i]);
  }

  void scatter(const Bucket& bucket) {
    ReduceScatter sum;
    sum.order = options_.order;
    sum.scale = 1.0F / static_cast<float>(options_.world_size);
    sum.parts = options_.world_size;
    std::vector<ValueId> values;
    for (const auto& name : bucket.gradients) values.push_back(training_.graph.find(name));
    sum.label = fmt::format("gradients.bucket{}", ++bucket_count_);
    const auto sums =
        rewriter_.target().add_node(make_op(sum), rewriter_.mapped(values), sum.label);
    for (std::size_t i = 0; i < values.size(); ++i) rewriter_.map(values[i], sums[i]);
  }

  void copy_update() {
    for (const auto& [state, part] : parts_) rewriter_.map(state, part);
    // No bucket has the gradient of a parameter that the loss does not depend on.
    for (const auto& name : training_.parameter_gradients) {
      const auto& gradient = training_.graph.value(training_.graph.find(name));
      if (gradient.kind != ValueKind::Constant) continue;
      rewriter_.map(gradient.id, rewriter_.target().constant(part_of_tensor(
                                     *gradient.data, options_.rank, options_.world_size)));
    }
    rewriter_.copy(update_);
  }

  const TrainingGraph& training_;
  ShardOptions options_;
  const Node& update_;
  Rewriter rewriter_;
  std::map<ValueId, ValueId> parts_;  // by state of `training`
  std::map<std::string, StateHome> homes_;
  std::vector<std::vector<ValueId>> groups_;
  std::map<ValueId, std::size_t> group_of_;
  std::set<std::size_t> gathered_;         // groups with gathered parameters
  std::map<std::string, Bucket> buckets_;  // by the gradient that completes it
  int bucket_count_ = 0;
};

}  // namespace

RankGraph shard(const TrainingGraph& training, const ShardOptions& options) {
  return Sharder(training, options).run();
}

}  // namespace triptych::parallel
