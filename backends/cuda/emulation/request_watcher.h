// Requests of a launch one by one, for who wants to see more of them than sums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/emulation/counters.h"
#include "backends/cuda/emulation/language.h"
#include "backends/cuda/emulation/recorder.h"

namespace triptych::cuda::emulation {

/// Who asks, and where in the source.
struct RequestPlace {
  Location where;
  Space space = Space::Global;
  Access access = Access::Load;
  Dim3 block;         ///< its index
  unsigned warp = 0;  ///< of the block
  /// Identifies where, space and access for this thread of the processor in this launch, from 0.
  std::uint32_t number = 0;
};

/// A piece of straight code that a warp begins.
struct PiecePlace {
  PieceCode code;
  Dim3 block;
  unsigned warp = 0;
  std::uint32_t number = 0;  ///< of the code, as that of a RequestPlace
};

/// A line of source that the running thread begins, in a function with this frame and stack pointer
/// that `caller` called.
struct LineBegin {
  const void *pc = nullptr, *frame = nullptr, *stack = nullptr, *caller = nullptr;
};

class RequestWatcher {
 public:
  virtual ~RequestWatcher() = default;
  /// False: the block with this number in the grid only runs. Nothing counts or checks it.
  virtual bool observes(std::uint64_t block) const {
    static_cast<void>(block);
    return true;
  }
  /// The next request of this warp at this place, as it is counted: when its block has passed a
  /// barrier or the warp has ended. Addresses in shared memory count from the block's first byte.
  /// Called on the threads of the device, on several at once where it has several.
  virtual void asked(const RequestPlace& place, const Request& request) = 0;
  /// The lanes of `mask` begin a piece of code, in the order of the requests. Only of kernels that
  /// are compiled to be watched so.
  virtual void passed(const PiecePlace&, std::uint32_t mask) { static_cast<void>(mask); }
  /// The lanes that passed there together leave that piece on more than one path.
  virtual void parted(const PiecePlace&) {}
  /// The running thread begins a line. True: `passed` will report it, as a piece of code. Only of
  /// kernels that are compiled for the debugger.
  virtual bool begins_line(const LineBegin&) { return false; }
  /// The running thread is about to write these bytes of global or shared memory.
  virtual void writes(const void* address, std::size_t bytes) {
    static_cast<void>(address);
    static_cast<void>(bytes);
  }
};

}  // namespace triptych::cuda::emulation
