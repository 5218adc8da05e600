// Evaluates a whole graph with the operators' float64 references, against which every backend is
// tested.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"

namespace triptych {

/// `tensor` as float64 values.
RefTensor to_reference(const Tensor& tensor);

/// `reference` rounded to its dtype.
Tensor from_reference(const RefTensor& reference);

/// The outputs of one operator for these inputs, shapes inferred.
std::vector<RefTensor> evaluate_reference(const Op& op, std::span<const RefTensor> inputs);

/// Every value of the graph, by id. `given` holds the inputs and, where they should differ from the
/// graph's own data, states and constants. Nodes with all outputs in `given` are not evaluated.
/// Throws InvalidArgument naming an input that is missing.
std::vector<RefTensor> evaluate_reference(const Graph& graph,
                                          std::unordered_map<ValueId, RefTensor> given);

}  // namespace triptych
