// The time that each unit of a GPU needs at least for a kernel's counted work: a roofline with more
// than two roofs. Modelled from published figures, without latencies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "backends/cuda/emulation/gpu.h"
#include "backends/cuda/emulation/kernel_costs.h"
#include "core/runtime/kernel_counters.h"

namespace triptych::cuda::emulation {

struct UnitBound {
  std::string_view unit;  ///< "memory"
  double work = 0;
  std::string_view work_unit;  ///< "bytes"
  double seconds = 0;
};

/// For all launches of a kernel together, the longest time first. Units without work are left out.
/// A launch uses as many multiprocessors as it has blocks, as far as the GPU has them.
std::vector<UnitBound> bounds_of(const Gpu& gpu, const KernelCounters& counters,
                                 const KernelCosts& costs);

}  // namespace triptych::cuda::emulation
