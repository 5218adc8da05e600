// Which device and which kernel run each node. Strict: a node that the asked device cannot run is
// an error that names the node, the reason of every kernel and the flag that would allow another
// device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/runtime/device.h"

namespace triptych {

/// A kernel that was asked and refused.
struct Refusal {
  std::string_view kernel;
  std::string reason;
};

/// Where one node runs and why.
struct NodePlacement {
  std::size_t device = 0;               ///< index into the devices asked; 0 is the preferred one
  const KernelEntry* kernel = nullptr;  ///< nullptr: a view, nothing runs
  std::vector<Refusal> refusals;        ///< on the devices and kernels tried before
};

struct PlacementOptions {
  Contract contract = Contract::F32;
  /// Forced kernels by operator name ("Conv" -> "direct"); a forced kernel that refuses is an
  /// error.
  std::map<std::string, std::string, std::less<>> forced_kernels;
};

/// One entry per node. Devices are tried in order: the first is the one asked for, the others are
/// the allowed fallbacks. Operands are taken as dense. Throws UnsupportedError when no kernel of
/// any device accepts a node.
std::vector<NodePlacement> place(const Graph& graph, std::span<Device* const> devices,
                                 const PlacementOptions& options);

}  // namespace triptych
