// When each value's memory is in use, in the order of the nodes: the estimate that recomputation
// works with. Time is counted in nodes. A graph of n nodes ends at time n.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/graph/graph.h"

namespace triptych {

/// Memory is owned by a root: a view belongs to its input's, an update to its state's. Roots live
/// from their definition (inputs: from time 0) through their last reader, outputs of the graph to
/// the end. Constants and states have 0 bytes.
struct Lifetimes {
  std::vector<ValueId> root;       ///< per value
  std::vector<std::size_t> first;  ///< per root: when it is defined
  std::vector<std::size_t> last;   ///< per root: when it is last used
  std::vector<std::size_t> bytes;  ///< per root
  std::vector<std::size_t> live;   ///< per time: bytes in use

  static Lifetimes of(const Graph& graph);

  std::size_t peak() const;
  bool alive(ValueId value, std::size_t time) const;
};

}  // namespace triptych
