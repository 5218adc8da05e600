// Signals that a kernel raises, as faults of the thread that raised them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

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

/// The calling thread of the processor runs a block whose steps nobody counts: a thread of it that
/// takes so much of the processor's time without progress (Block::progress) fails as endless. Until
/// the SignalGuard ends.
void limit_time(std::chrono::microseconds most);
/// True when that time is over: for a thread that waits inside of the emulator.
bool is_time_over();
[[noreturn]] void fail_as_endless(const emulation::Location& where);

/// The library with the kernel that the calling thread of the processor runs, or nullptr.
const KernelLibrary* watched_library();

}  // namespace triptych::cuda::plain
