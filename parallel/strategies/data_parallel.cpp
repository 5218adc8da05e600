// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/data_parallel.h"

#include <fmt/format.h>

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
      : training_(training), rewriter_(training.graph) {
    average_.order = options.order;
    average_.scale = 1.0F / static_cast<float>(options.world_size);
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
    const auto averages =
        rewriter_.target().add_node(make_op(average_), rewriter_.mapped(values), name);
    for (std::size_t i = 0; i < values.size(); ++i) rewriter_.map(values[i], averages[i]);
  }

  const TrainingGraph& training_;
  Rewriter rewriter_;
  AllReduce average_;
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
