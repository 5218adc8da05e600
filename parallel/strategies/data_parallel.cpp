// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/data_parallel.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/graph/passes/rewrite.h"
#include "core/ops/collectives.h"
#include "parallel/strategies/step_parts.h"

namespace triptych::parallel {
namespace {

class DataParallelRewriter {
 public:
  DataParallelRewriter(const TrainingGraph& training, const DataParallelOptions& options)
      : training_(training), options_(options), rewriter_(training.graph) {
    if (!options.gradients) return;
    for (auto& bucket : make_buckets(gradients_in_order(training), options))
      buckets_.emplace(bucket.gradients.back(), std::move(bucket));
  }

  Graph run() {
    const Graph& graph = training_.graph;
    for (const auto& node : graph.nodes()) {
      rewriter_.copy(node);
      for (const auto output : node.outputs) {
        const auto bucket = buckets_.find(graph.value(output).name);
        if (bucket != buckets_.end()) average(bucket->second);
      }
    }
    average({loss_value(training_).id}, "loss.average");
    return rewriter_.finish();
  }

 private:
  void average(const Bucket& bucket) {
    std::vector<ValueId> values;
    for (const auto& name : bucket.gradients) values.push_back(training_.graph.find(name));
    average(values, fmt::format("gradients.bucket{}", ++bucket_count_));
  }
  void average(const std::vector<ValueId>& values, const std::string& name) {
    const auto own = rewriter_.mapped(values);
    const auto averages = options_.devices_per_node > 0
                              ? average_by_nodes(own, name)
                              : rewriter_.target().add_node(average_over("dp", name), own, name);
    for (std::size_t i = 0; i < values.size(); ++i) rewriter_.map(values[i], averages[i]);
  }

  OpPtr average_over(const char* axis, const std::string& name) const {
    AllReduce average;
    average.label = name;
    average.axis = axis;
    average.order = options_.order;
    average.scale = 1.0F / static_cast<float>(options_.world_size);
    return make_op(average);
  }

  /// Within each node every device adds up a part. Parts are summed over the nodes, and gathered.
  std::vector<ValueId> average_by_nodes(const std::vector<ValueId>& values,
                                        const std::string& name) {
    Graph& graph = rewriter_.target();
    ReduceScatter scatter;
    scatter.axis = "device";
    scatter.order =
        options_.order == ReductionOrder::Ring ? ReductionOrder::Ring : ReductionOrder::RankOrdered;
    scatter.parts = options_.devices_per_node;
    scatter.label = name;
    AllGather gather;
    gather.label = name;
    gather.axis = scatter.axis;
    gather.parts = scatter.parts;
    for (const auto value : values) gather.add_shape(graph.spec(value).shape);
    const auto parts = graph.add_node(make_op(scatter), values, name + ".of_device");
    const auto sums = graph.add_node(average_over("node", name), parts, name + ".over_nodes");
    return graph.add_node(make_op(gather), sums, name);
  }

  const TrainingGraph& training_;
  DataParallelOptions options_;
  Rewriter rewriter_;
  std::map<std::string, Bucket> buckets_;  // by the gradient that completes it
  int bucket_count_ = 0;
};

}  // namespace

std::vector<Bucket> gradients_in_order(const TrainingGraph& training) {
  const std::set<std::string> names(training.parameter_gradients.begin(),
                                    training.parameter_gradients.end());
  std::vector<Bucket> list;
  for (const auto& node : training.graph.nodes()) {
    for (const auto output : node.outputs) {
      const auto& value = training.graph.value(output);
      if (names.contains(value.name))
        list.push_back(
            {{value.name},
             static_cast<std::size_t>(value.spec.shape.elements()) * dtype_size(value.spec.dtype)});
    }
  }
  return list;
}

std::vector<Bucket> make_buckets(const std::vector<Bucket>& gradients,
                                 const DataParallelOptions& options) {
  std::vector<Bucket> buckets;  // the last one first
  for (auto gradient = gradients.rbegin(); gradient != gradients.rend(); ++gradient) {
    const auto limit = buckets.size() == 1 ? options.last_bucket_bytes : options.bucket_bytes;
    if (buckets.empty() || buckets.back().bytes + gradient->bytes > limit) buckets.emplace_back();
    auto& bucket = buckets.back();
    bucket.bytes += gradient->bytes;
    bucket.gradients.insert(bucket.gradients.begin(), gradient->gradients.begin(),
                            gradient->gradients.end());
  }
  std::ranges::reverse(buckets);
  return buckets;
}

TrainingGraph data_parallel(TrainingGraph training, const DataParallelOptions& options) {
  if (options.world_size == 1) return training;
  auto graph = DataParallelRewriter(training, options).run();
  training.graph = std::move(graph);
  return training;
}

}  // namespace triptych::parallel
