// Signals that a kernel raises, as faults of the thread that raised them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/plain/kernel_library.h"

namespace triptych::cuda::plain {

/// Turns segmentation faults and divisions by zero of kernels into faults, as long as it lives.
/// Those of anything else go where they went before.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
};

/// Prepares the calling thread of the processor for them.
void expect_signals();

/// The library with the kernel that the calling thread of the processor runs, or nullptr.
const KernelLibrary* watched_library();

}  // namespace triptych::cuda::plain
