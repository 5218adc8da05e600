// Indices of maxima for the gradient of max pooling. The plan runs this pass, because it knows the
// device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/graph/graph.h"

namespace triptych {

/// MaxPool that has a gradient becomes MaxPoolWithIndex, and its gradient reads the index instead
/// of x. Only nodes for which `joins` holds. The bits do not change.
Graph index_max_pools(const Graph& graph, const std::function<bool(const Node&)>& joins);

/// A sum of a MaxPoolIndexGradient that nothing else reads, and of another gradient of its input:
/// the gradient of the pooling adds the other one. Only nodes for which `joins` holds. The bits do
/// not change.
Graph add_in_pool_gradients(const Graph& graph, const std::function<bool(const Node&)>& joins);

}  // namespace triptych
