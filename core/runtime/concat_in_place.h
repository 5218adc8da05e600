// Concat without a copy: where the pieces of its output are slabs at a constant distance, the
// producers of its inputs write them straight into the output's memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "core/runtime/placement.h"

namespace triptych {

/// Where a value lies in the memory of another.
struct ConcatPart {
  ValueId whole;                  ///< the concat's output
  std::size_t offset = 0;         ///< bytes from its begin, a multiple of kAlignment
  std::int64_t outer_stride = 0;  ///< elements
};

using ConcatParts = std::unordered_map<ValueId, ConcatPart>;

/// The inputs of all Concat nodes that need not run. A concat qualifies as a whole or not at all:
/// every input is the output of a kernel on the concat's device, is neither an output of the graph
/// nor an update nor viewed nor part of another concat, and all kernels that touch it accept it at
/// its new distance.
ConcatParts find_concats_in_place(const Graph& graph, std::span<const NodePlacement> placements,
                                  const PlacementOptions& options);

}  // namespace triptych
