// Which device and which kernel run each node. Strict: a node that the asked device cannot run is
// an error that names the node, the reason of every kernel and the flag that would allow another
// device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"
#include "core/runtime/collectives.h"
#include "core/runtime/device.h"
#include "core/runtime/kernel_choice.h"

namespace triptych {

/// A kernel that refused, or a device that has none for the node.
struct Refusal {
  std::string_view kernel;  ///< empty: the device has no kernel for the operator
  std::string reason;
  std::size_t device = 0;
};

/// `kernel "direct": stride 2`, or the reason alone.
std::string to_string(const Refusal& refusal);

/// Distances along dimension 0 of the values that are not dense (Operand).
using OuterStrides = std::unordered_map<ValueId, std::int64_t>;

/// How the values that are not planes are stored.
using Formats = std::unordered_map<ValueId, ChannelsLast>;

struct PlacementOptions {
  Contract contract = Contract::F32;
  /// Forced kernels by operator name ("Conv" -> "direct"). A forced kernel that refuses is an
  /// error, and so is one that no device has.
  std::map<std::string, std::string, std::less<>> forced_kernels;
  /// For operators that are not in forced_kernels: "own" leaves the libraries' kernels out,
  /// "library" takes them for every operator that has one, and the name of a kernel forces it for
  /// every operator that has it. A name that no operator of the graph has is an error.
  std::string forced;
  /// Kernels of Accuracy::Transformed (by Winograd's transforms) may be chosen where they are not
  /// forced by name.
  bool transformed = true;
  /// Called where several kernels of device 0 accept a node and none is forced by name. nullptr:
  /// the first is chosen. Must outlive the call.
  KernelChooser* chooser = nullptr;
  /// The plan may store activations channels last, so kernels are timed with such operands.
  /// make_plan sets it.
  bool channels_last = false;
  /// The device that is device 0's host (Backend::host). It runs the operators for which device 0
  /// has no kernel, and the nodes that optional kernels refuse. 0: none is.
  std::size_t host = 0;
  /// Runs the collective nodes. nullptr: a graph with such a node is refused.
  CollectiveRunner* collectives = nullptr;
};

/// A node's operands and constants, owned, for asking kernels about it. Graph and options
/// must outlive it.
class NodeQuery {
 public:
  NodeQuery(const Graph& graph, const Node& node, const PlacementOptions& options,
            const OuterStrides& strides = {}, const Formats& formats = {});
  // Implicit, so that a node is asked about like a query.
  operator KernelQuery() const {  // NOLINT(google-explicit-constructor)
    return {op_, inputs_, outputs_, options_.contract, constants_, options_.collectives};
  }

 private:
  const Op& op_;
  std::vector<Operand> inputs_;
  std::vector<Operand> outputs_;
  const PlacementOptions& options_;
  std::vector<const Tensor*> constants_;
};

/// Where one node runs and why.
struct NodePlacement {
  std::size_t device = 0;               ///< index into the devices asked. 0 is the preferred one
  const KernelEntry* kernel = nullptr;  ///< nullptr: a view, nothing runs
  std::string choice;                   ///< reason for the choice among several, may be empty
  std::vector<Refusal> refusals;        ///< on the devices and kernels tried before
};

/// True when a kernel of `device` accepts the node with dense operands. Views are accepted by all.
bool accepts(const Device& device, const Graph& graph, const Node& node,
             const PlacementOptions& options);

/// One entry per node. Devices are tried in order: the first is the one asked for, the others are
/// the allowed fallbacks. Operands are assumed to be dense. A view is
/// placed where its input is. Lessons are chosen only where they are forced. Throws
/// UnsupportedError when no kernel of any device accepts a node.
std::vector<NodePlacement> place(const Graph& graph, std::span<Device* const> devices,
                                 const PlacementOptions& options);

}  // namespace triptych
