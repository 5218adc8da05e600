// Requests of a launch one by one, for who wants to see more of them than sums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/emulation/counters.h"
#include "backends/cuda/emulation/language.h"

namespace triptych::cuda::emulation {

/// Who asks, and where in the source.
struct RequestPlace {
  Location where;
  Space space = Space::Global;
  Access access = Access::Load;
  Dim3 block;         ///< its index
  unsigned warp = 0;  ///< of the block
};

class RequestWatcher {
 public:
  virtual ~RequestWatcher() = default;
  /// The next request of this warp at this place, as it is counted: when its block has passed a
  /// barrier or the warp has ended. Addresses in shared memory count from the block's first byte.
  /// Called on the threads of the device, on several at once where it has several.
  virtual void asked(const RequestPlace& place, const Request& request) = 0;
};

}  // namespace triptych::cuda::emulation
