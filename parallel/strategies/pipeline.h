// Pipeline parallelism: the model is cut into stages, one per rank, and micro-batches of a batch
// follow one another through them, forwards and back. Any value that a later stage reads, a U-Net's
// skip connections too, is sent straight to it. GPipe (Huang et al., 2019) and 1F1B (Narayanan et
// al., 2019) differ in the order only. With one micro-batch it is a plain split by layers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "parallel/strategies/rank_graph.h"
#include "parallel/strategies/step_parts.h"

namespace triptych::parallel {

struct PipelineOptions {
  int stages = 1;
  int stage = 0;  ///< the graph of this rank
  int micro_batches = 1;
  PipelineOrder order = PipelineOrder::OneForwardOneBackward;
  /// Gradients and losses of the micro-batches are added as a balanced tree, not in their order,
  /// and so are their statistics: running ones move once per step, towards the mean. (Otherwise
  /// they move with each micro-batch.)
  bool tree = false;
  /// Seconds of nodes of the training graph by name, which the cut balances. Empty: modelled from
  /// their work.
  std::map<std::string, double> node_seconds;
  /// Forward nodes of each stage, which replace a balanced cut. Ignored for another number of
  /// stages.
  std::vector<std::int64_t> cut = {};
};

/// Adds the time of a node of a plan to PipelineOptions::node_seconds. A node that stands for
/// several of the training graph counts under the first, and the others take no time.
void add_node_seconds(std::map<std::string, double>& node_seconds, const Node& node,
                      double seconds);

/// A pass of one micro-batch through a stage.
struct Pass {
  bool forward = true;
  int micro_batch = 0;
  bool operator==(const Pass&) const = default;
};

/// Work of a stage in a step, in order.
std::vector<Pass> pipeline_passes(const PipelineOptions& options);

/// The stage of each forward node of `training`, in the order of its nodes up to the loss: stages
/// are runs of neighbours, cut so that the slowest, with its backward pass, is as fast as it can
/// be. Throws InvalidArgument when there are fewer nodes than stages, or a given cut is of another
/// model.
std::vector<int> cut_stages(const TrainingGraph& training, const PipelineOptions& options);

/// Forward nodes of each stage, from the result of cut_stages.
std::vector<std::int64_t> stage_sizes(const std::vector<int>& stages);

/// The stages of the values of a training step, and the values that cross between stages.
class StagePlaces {
 public:
  /// By stages, from and to.
  using Traffic = std::map<std::pair<int, int>, std::vector<ValueId>>;
  /// Sums over the micro-batches that the loss reads (TrainingGraph::share_means), which need no
  /// sum of a later level.
  struct SumLevel {
    std::set<NodeId> nodes;     ///< forward nodes that compute them
    std::vector<NodeId> means;  ///< the Identity nodes
    Traffic traffic;
  };

  /// `training` must outlive it. Throws UnsupportedError where two nodes update one state in turn.
  StagePlaces(const TrainingGraph& training, const PipelineOptions& options);

  /// The stage of a forward or backward node.
  int stage_of(const Node& node) const { return forward_[anatomy_.forward_of(node)]; }
  std::size_t forward_count() const { return anatomy_.forward_count(); }
  std::vector<std::int64_t> sizes() const { return stage_sizes(forward_); }
  /// The home of each state but the count of steps, which every stage has: its first reader's, of a
  /// moment its parameter's.
  const std::map<ValueId, int>& states() const { return states_; }
  /// States that another stage than their home reads, once per step.
  const Traffic& lent() const { return lent_; }
  /// Values that cross in each micro-batch, in each direction in the order of the nodes.
  const Traffic& traffic() const { return traffic_; }
  /// In their order. None with one micro-batch.
  const std::vector<SumLevel>& sums() const { return sums_; }
  bool is_mean(const Node& node) const { return means_.contains(node.id); }
  /// True when the batch alone decides its outputs, not the states.
  bool of_batch_alone(const Node& node) const { return of_batch_.contains(node.outputs.front()); }

 private:
  void require_separate_updates(const PipelineOptions& options) const;
  void find_states();
  void find_traffic();
  void find_sums();
  SumLevel level_of(const std::vector<NodeId>& means) const;

  const TrainingGraph& training_;
  const Graph& graph_;
  Anatomy anatomy_;
  std::vector<int> forward_;
  std::map<ValueId, int> states_;
  Traffic lent_, traffic_;
  std::vector<SumLevel> sums_;
  std::set<NodeId> means_;
  std::set<ValueId> of_batch_;
};

/// A stage's graph with the names of its own parameters and their gradients, so that it may be
/// replicated in turn.
struct StageGraph {
  TrainingGraph training;
  std::map<std::string, StateHome> homes;
  std::vector<std::int64_t> cut;  ///< forward nodes of each stage
};

/// The graph of a stage. `training` was built for one micro-batch. The stages that
/// read them have the inputs "x" (the first) and "target" (those that the loss is cut into), both
/// of the whole batch. Gradients and losses are averages over the micro-batches. Batch
/// normalisation takes its statistics from each of them. Sums that the loss reads are added over
/// the micro-batches before the first backward pass. Their nodes run once more for it. They are
/// `share_means` of the result.
StageGraph pipeline(const TrainingGraph& training, const PipelineOptions& options);

}  // namespace triptych::parallel
