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
};

}  // namespace triptych
