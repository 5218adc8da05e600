// Graph-to-graph passes. Each takes a graph and returns a new one that computes the same outputs.
// Inputs, states and outputs keep their names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace triptych {

/// Replaces every composite operator by its expansion, except those `keep` names.
Graph expand_composites(const Graph& graph, std::span<const std::string_view> keep = {});
/// Replaces these nodes by their expansions, and leaves composites of those as they are.
Graph expand_nodes(const Graph& graph, const std::set<NodeId>& nodes);

/// Computes nodes that have only constant inputs, by the float64 reference rounded once. Left
/// alone: nodes of more than 1e8 FLOPs, and outputs above 1 MiB that are more than 4 times as large
/// as the inputs.
Graph fold_constants(const Graph& graph);

/// Drops unread nodes that update no state and are no collective, Identity of activations, and
/// unread constants. Inputs and states stay.
Graph eliminate_dead_code(const Graph& graph);

/// Conv followed by BatchNormalization in inference form, all parameters constant, becomes one
/// Conv: w' = w scale / sqrt(var + epsilon), b' = (b - mean) scale / sqrt(var + epsilon) + bias.
/// So do the Mul and Add of a constant per channel that follow the normalisation.
Graph fold_batch_normalization(const Graph& graph);

/// Conv followed by Add of a per-channel constant ([1, O, 1, 1] or [O, 1, 1], only if the Conv has
/// no bias yet), then by Relu, becomes one Conv with bias and activation. Either part may be
/// missing. The intermediate values must have no other reader.
Graph fuse_conv_epilogue(const Graph& graph);

/// x / 2 (1 + erf(x / sqrt 2)), written operator by operator, becomes Gelu, which rounds less.
Graph fuse_gelu(const Graph& graph);

/// Neighbouring elementwise operators of f32, each the only reader of the one before, become one
/// FusedElementwise, in the place of the last and with the names of all. Only nodes for which
/// `joins` holds. The bits do not change. No read of an updated state moves behind a later update.
Graph fuse_elementwise(const Graph& graph, const std::function<bool(const Node&)>& joins);

/// BatchNormalization and the Relu that alone reads its y, and the gradients of the two, become one
/// operator with an activation, in the place of the first forward and of the last backward, with
/// the names of both. The gradients compute the values that they need of the Relu's output again
/// from x. Only nodes for which `joins` holds. The bits do not change.
Graph fuse_normalization(const Graph& graph, const std::function<bool(const Node&)>& joins);

/// Turns states into constants with their initial values: the graph of a trained model, for
/// inference. States that a node updates are refused with InvalidArgument.
Graph freeze_states(const Graph& graph);

/// Recomputes cheap activations (normalisation, elementwise, pooling) just before their late
/// readers instead of keeping them, until `peak_activation_bytes` is at most `limit_bytes` or
/// nothing is left to gain. Random operators and updates are never repeated.
///
/// The idea is Chen et al.'s, "Training deep nets with sublinear memory cost", 2016. The choice is
/// simpler than theirs: greedily, one value at a time, the one first that frees most bytes at the
/// time of the peak. Convolutions and products are never repeated, so the saving has a floor.
///
/// Repeated nodes give the same bits. A BatchNormalization in training mode is repeated from the
/// statistics it saved, by the inference form with scale inverse_deviation as its scale.
Graph recompute_activations(const Graph& graph, std::size_t limit_bytes);

/// Peak bytes of inputs and activations alive at one time in the graph's order, each value dense
/// and none written over another. Views share their input's memory, updates their state's (which
/// does not count), and outputs of the graph live to the end.
std::size_t peak_activation_bytes(const Graph& graph);

/// Report of one pass, for `explain`.
struct PassReport {
  std::string_view name;
  std::size_t nodes_before = 0;
  std::size_t nodes_after = 0;
  std::string text_before;  ///< to_text of the graph, only when asked for
  std::string text_after;
};

struct PassOptions {
  bool inference = false;        ///< freeze and fold parameters first
  std::size_t memory_limit = 0;  ///< bytes. 0: no recomputation
  bool keep_text = false;        ///< fill text_before and text_after
};

/// The standard pipeline in its order. Appends one report per pass to `reports` when given.
Graph optimize(Graph graph, const PassOptions& options, std::vector<PassReport>* reports = nullptr);

}  // namespace triptych
