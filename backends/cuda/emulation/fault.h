// What a kernel did that a GPU would not forgive, or would not even tell.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/cuda/emulation/language.h"
#include "core/base/error.h"

namespace triptych::cuda::emulation {

enum class FaultKind {
  OutOfBounds,       ///< an access outside of the array
  Race,              ///< two threads at one place of shared memory with no barrier between
  DivergentBarrier,  ///< not every thread of the block came to the same barrier
  MissingLane,       ///< a warp operation's mask names a lane that does not take part
  Uninitialised,     ///< shared memory read before it was written
};

std::string to_string(FaultKind kind);

/// Where it happened.
struct FaultPlace {
  std::string kernel, file;
  unsigned line = 0;
  Dim3 block, thread;
};

class KernelFault : public DeviceError {
 public:
  KernelFault(FaultKind kind, const FaultPlace& place, const std::string& what);
  FaultKind kind() const { return kind_; }
  const FaultPlace& place() const { return place_; }

 private:
  FaultKind kind_;
  FaultPlace place_;
};

}  // namespace triptych::cuda::emulation
