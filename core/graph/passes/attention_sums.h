// Sums of attention for its gradient. The plan runs this pass, because it knows the device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/graph/graph.h"

namespace triptych {

/// A gradient of attention with at most so many keys is faster with its scores in memory.
inline constexpr std::int64_t kFewKeys = 64;

/// Attention that has an AttentionGradient becomes AttentionWithSums, and its gradient reads the
/// sums, too. A pair stays as it is where `joins` does not hold for both of its new nodes. With few
/// keys both become their expansions instead, which share the probabilities. So the form depends on
/// the device and on shapes.
Graph save_attention_sums(const Graph& graph,
                          const std::function<bool(const Graph&, const Node&)>& joins);

}  // namespace triptych
