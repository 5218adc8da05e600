// Fault of a kernel that a GPU would not forgive, or would not even tell: the failure of a device
// that checks its kernels.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/base/error.h"

namespace triptych {

enum class FaultKind {
  OutOfBounds,       ///< an access outside of the array
  Race,              ///< two at one place of memory with nothing between that orders them
  DivergentBarrier,  ///< not every thread of the block came to the same barrier
  MissingLane,       ///< a warp operation's mask names a lane that does not take part
  Uninitialised,     ///< shared memory read before it was written
  Misaligned,        ///< an address is not aligned for its use
  UnderWay,          ///< a copy or a product is used, or left, before it was waited for
  Phase,             ///< arrivals or bytes do not fit the phase of a barrier
  Endless,           ///< a thread does not end
  Assertion,         ///< the kernel itself says that it went wrong
  Division,          ///< of an integer by zero
  StackOverflow,     ///< local arrays and calls need more than a thread has
};

std::string to_string(FaultKind kind);

/// Where it happened: the place in the source, and blockIdx and threadIdx.
struct FaultPlace {
  struct Index {
    unsigned x = 0, y = 0, z = 0;
  };
  std::string kernel, file;
  unsigned line = 0;
  Index block, thread;
};

/// "(1, 0, 0)".
std::string to_string(const FaultPlace::Index& index);

class KernelFault : public DeviceError {
 public:
  KernelFault(FaultKind kind, const FaultPlace& place, const std::string& reason);
  FaultKind kind() const { return kind_; }
  const FaultPlace& place() const { return place_; }
  /// Description of the fault, without kind and place.
  const std::string& reason() const { return reason_; }

 private:
  FaultKind kind_;
  FaultPlace place_;
  std::string reason_;
};

}  // namespace triptych
