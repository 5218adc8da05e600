// One warp that reads memory by a rule, as a lesson on the cost of strides and offsets.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "backends/cuda/emulation/counters.h"
#include "backends/cuda/emulation/grid.h"

namespace triptych::cuda::counted {

/// Lane i reads `floats` float32 (1, 2 or 4) at element `first + i * stride`. Where a lane reads
/// several at once, stride and first are multiples of as many.
struct AccessPattern {
  emulation::Space space = emulation::Space::Global;
  int floats = 1;
  std::int64_t stride = 1, first = 0;
};

/// Launches the kernel. Its requests are on the stream's counters, and told to its watcher. Throws
/// InvalidArgument for a pattern that no GPU can read, or that reads more than 64 KiB.
void run_access_pattern(emulation::EmulatedStream& stream, const AccessPattern& pattern);

}  // namespace triptych::cuda::counted
