// Reverse-mode automatic differentiation: graph in, the same graph with gradient nodes appended
// out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace triptych {

/// Scope of the names of the nodes that add_gradients adds: "grad.down1.conv0.convtranspose".
inline constexpr std::string_view kGradientScope = "grad";

/// Appends d(loss)/d(v) for each v of `wanted` and returns them in that order. `loss` is a scalar
/// (one element). The nodes are marked as backward ones, each with the forward node that it
/// differentiates. A value that the loss does not depend on gets a constant zero gradient.
/// Composite operators on the way are differentiated through their expansion, except Attention,
/// which has a rule of its own. Throws InvalidArgument naming the node when a needed operator has
/// no gradient.
std::vector<ValueId> add_gradients(Graph& graph, ValueId loss, Values wanted);

}  // namespace triptych
