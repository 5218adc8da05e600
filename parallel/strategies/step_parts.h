// The parts of a training step that strategies treat apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "core/nn/training_graph.h"

namespace triptych::parallel {

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
