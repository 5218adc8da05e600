// The parts of a training step that strategies treat apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "core/nn/training_graph.h"

namespace triptych::parallel {

/// Nodes of a training step told apart: forward ones up to the loss, which are its first,
/// backward ones, and the optimiser.
class Anatomy {
 public:
  explicit Anatomy(const TrainingGraph& training);

  std::size_t forward_count() const { return forward_count_; }
  static bool is_forward(const Node& node) { return node.phase == Phase::Forward; }
  static bool is_update(const Node& node) { return node.phase == Phase::Update; }
  /// Number of the forward node that it is or differentiates.
  std::size_t forward_of(const Node& node) const {
    return is_forward(node) ? node.id.index() : graph_.value(node.differentiates).producer.index();
  }

 private:
  const Graph& graph_;
  std::size_t forward_count_;
};

/// The output "loss".
const Value& loss_value(const TrainingGraph& training);

/// The optimiser: the node that updates the parameters.
const Node& update_node(const TrainingGraph& training);

/// The optimiser's first input.
ValueId learning_rate(const TrainingGraph& training);

/// The parameters in the order of their first readers, cut into groups of up to `limit` bytes. A
/// larger one has a group of its own.
std::vector<std::vector<ValueId>> group_by_first_reader(const TrainingGraph& training,
                                                        std::size_t limit);

}  // namespace triptych::parallel
