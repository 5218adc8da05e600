// Random small graphs, their checks, and the reduction of failing ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/conformance/random/grower.h"

namespace triptych::conformance {

/// A graph of about 3 to 15 nodes.
RandomGraph make_random_graph(std::uint64_t seed, const GraphOptions& options = {});

/// A smooth graph with the gradients of a loss among its outputs.
RandomGraph make_training_graph(std::uint64_t seed);

/// loss = scale * sum over the float32 outputs of weight * output, weights in [-1, 1]. Invalid when
/// there is no such output.
ValueId add_loss(Graph& graph, double scale = 1);

/// Inputs and states that may have a gradient: float32 ones that no node updates.
std::vector<ValueId> differentiable_leaves(const Graph& graph);

/// Returns the problem of a graph, or nothing when it passes.
using Check = std::function<std::string(const RandomGraph&)>;

/// A smaller graph that still fails: `check` gives a message for it, as for `failing`. Nodes are
/// dropped one after another, with their results as inputs, and outputs too, until none can go.
RandomGraph shrink(RandomGraph failing, const Check& check);

}  // namespace triptych::conformance
