// Gives every value its place in the memory of each device that holds it.
//
// Memory is owned by a *root*: a view belongs to its input's root, an update to its state. Roots
// may share further: the inputs of a concat in place lie in its output, and a kernel may write over
// an input that dies at its node. The rest are blocks with a first and a last step, packed into one
// arena per device, with the scratch of each step at its start while the step runs. Inputs, outputs
// of the graph and copies of states live through the whole run, so that a run can be repeated.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "core/runtime/placement.h"
#include "core/runtime/plan.h"

namespace triptych {

/// Where a value lies in the memory of another.
struct ConcatPart {
  ValueId whole;                  ///< the concat's output, or the slice's input
  std::size_t offset = 0;         ///< bytes from its begin; of planes a multiple of kAlignment
  std::int64_t outer_stride = 0;  ///< elements
};

using ConcatParts = std::unordered_map<ValueId, ConcatPart>;

/// How values are stored, and which of them lie in others.
struct StoragePlan {
  Formats formats;
  ConcatParts parts;
};

/// Adds the inputs of all Concat nodes that need not run, in planes, to `storage`. A concat
/// qualifies as a whole or not at all: every input is the output of a kernel on the concat's
/// device, is neither an output of the graph nor an update nor viewed nor part of another concat,
/// and all kernels that touch it accept it at its new distance.
void find_concats_in_place(const Graph& graph, std::span<const NodePlacement> placements,
                           const PlacementOptions& options, StoragePlan& storage);

/// Adds the outputs of all Slice nodes that need not run, in planes, to `storage`. A slice
/// qualifies if it is a part of its input that begins aligned, with one distance along dimension 0.
/// Its input must be in planes and read by such slices alone. Both lie on the slice's device, are
/// neither outputs of the graph, nor updates, nor parts of concats, and all readers accept the
/// distance.
void find_slices_in_place(const Graph& graph, std::span<const NodePlacement> placements,
                          const PlacementOptions& options, StoragePlan& storage);

/// Fills `locations`, `arena_bytes`, `state_bytes` and `constant_bytes`; everything that
/// plan_crossings needs and fills must be set, and kernels prepared.
void plan_memory(Plan& plan, const StoragePlan& storage);

}  // namespace triptych
