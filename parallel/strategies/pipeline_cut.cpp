// SPDX-License-Identifier: Apache-2.0
// Where a pipeline is cut, and the order of its passes.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "parallel/strategies/pipeline.h"
#include "parallel/strategies/step_parts.h"

namespace triptych::parallel {
namespace {

/// Seconds on any kind of machine: only ratios matter.
double modelled_seconds(const Graph& graph, const Node& node) {
  const auto cost = node.op->cost(graph.specs(node.inputs), graph.specs(node.outputs));
  return cost.flops / 50e9 + cost.bytes / 10e9;
}

/// How many stages the costs need when none may take longer than `limit`.
int stages_within(const std::vector<double>& costs, double limit) {
  int stages = 1;
  double sum = 0;
  for (const double cost : costs) {
    if (sum + cost > limit) {
      ++stages;
      sum = 0;
    }
    sum += cost;
  }
  return stages;
}

}  // namespace

void add_node_seconds(std::map<std::string, double>& node_seconds, const Node& node,
                      double seconds) {
  for (const auto& name : node.stands_for()) node_seconds[name] = std::exchange(seconds, 0.0);
}

std::vector<Pass> pipeline_passes(const PipelineOptions& options) {
  const int m = options.micro_batches;
  const bool gpipe = options.order == PipelineOrder::GPipe;
  // How many forward passes go before the first backward pass.
  const int ahead = gpipe ? m : std::min(m, options.stages - options.stage);
  std::vector<Pass> passes;
  int forward = 0, backward = 0;
  while (forward < ahead) passes.push_back({true, forward++});
  while (backward < m) {
    passes.push_back({false, backward++});
    if (forward < m) passes.push_back({true, forward++});
  }
  return passes;
}

std::vector<std::int64_t> stage_sizes(const std::vector<int>& stages) {
  std::vector<std::int64_t> sizes;
  for (const int stage : stages) {
    sizes.resize(std::max(sizes.size(), static_cast<std::size_t>(stage) + 1));
    ++sizes.back();
  }
  return sizes;
}

/// The stages of `nodes` forward nodes by a cut of before.
static std::vector<int> stages_of(const std::vector<std::int64_t>& cut, std::size_t nodes) {
  std::vector<int> stages;
  bool possible = true;
  for (std::size_t stage = 0; stage < cut.size() && possible; ++stage) {
    possible = cut[stage] >= 1 && std::cmp_less_equal(cut[stage], nodes - stages.size());
    if (possible)
      stages.insert(stages.end(), static_cast<std::size_t>(cut[stage]), static_cast<int>(stage));
  }
  if (!possible || stages.size() != nodes) {
    throw InvalidArgument(
        fmt::format("a cut into stages of {} nodes is of another model than this of {}",
                    fmt::join(cut, ", "), nodes));
  }
  return stages;
}

std::vector<int> cut_stages(const TrainingGraph& training, const PipelineOptions& options) {
  const Anatomy anatomy(training);
  std::vector<double> costs(anatomy.forward_count());
  if (std::ssize(costs) < options.stages) {
    throw InvalidArgument(fmt::format("{} stages of a model of {} nodes; use fewer ranks",
                                      options.stages, costs.size()));
  }
  if (std::ssize(options.cut) == options.stages) return stages_of(options.cut, costs.size());
  for (const auto& node : training.graph.nodes()) {
    if (anatomy.is_update(node)) continue;
    const auto known = options.node_seconds.find(node.name);
    const auto at = anatomy.forward_of(node);
    costs[at] += known != options.node_seconds.end() ? known->second
                                                     : modelled_seconds(training.graph, node);
  }
  // The smallest limit that the stages can keep, by bisection.
  double low = std::ranges::max(costs), high = std::accumulate(costs.begin(), costs.end(), 0.0);
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (stages_within(costs, middle) <= options.stages ? high : low) = middle;
  }
  std::vector<int> stages;
  int stage = 0, nodes = 0;  // of the stage
  double sum = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const auto left = std::ssize(costs) - static_cast<std::ptrdiff_t>(i);
    const bool full = sum + costs[i] > high;
    const bool needed = left <= options.stages - 1 - stage;  // none stays empty
    if (nodes > 0 && (full || needed) && stage < options.stages - 1) {
      ++stage;
      nodes = 0;
      sum = 0;
    }
    ++nodes;
    sum += costs[i];
    stages.push_back(stage);
  }
  return stages;
}

}  // namespace triptych::parallel
