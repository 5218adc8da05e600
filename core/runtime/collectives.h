// Who runs the collective nodes of a graph: one rank of a group, which core does not know.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/runtime/kernel.h"

namespace triptych {

/// Kernels of collective operators (Op::collective). They run on the host, between the devices'
/// work, on operands of the device given, which they read and write through its copies.
class CollectiveRunner {
 public:
  virtual ~CollectiveRunner() = default;
  virtual KernelTable kernels() const = 0;
  /// True when a kernel may return before its outputs are there. Its inputs it has read by then.
  virtual bool overlaps() const { return false; }
  /// Returns when the outputs of all kernels that ran are there but of the last `behind`.
  virtual void finish(std::size_t behind) { static_cast<void>(behind); }
  /// Hears between two nodes that this rank computes: others that wait for it wait on.
  virtual void computes() {}
};

}  // namespace triptych
