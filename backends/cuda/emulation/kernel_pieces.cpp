// The function that the compiler's instrumentation (-fsanitize-coverage=trace-pc) calls at the
// beginning of each piece of straight code of the counted kernels.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/recorder.h"

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): the compiler's name
extern "C" void __sanitizer_cov_trace_pc();

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
void __sanitizer_cov_trace_pc() {
  using namespace triptych::cuda::emulation;
  if (!runs_kernel) return;
  // The frame tells calls apart. Its caller is unknown: kernels need no frame pointers.
  Recorder::current().pass(
      piece_of_code(__builtin_return_address(0), __builtin_frame_address(0), nullptr));
}
