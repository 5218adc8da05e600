// Linear maps along axes (core/ops/axis_taps.h) on the vector unit. The axes that a map leaves
// alone fill the lanes, so that a position of the others is a run of values in DRAM.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/systolic/kernels/vector_kernel.h"
#include "core/ops/axis_taps.h"

namespace triptych::systolic {

/// Refuses operands that are not dense or not of float32, empty ones, and very long programs.
Verdict accepts_taps(const KernelQuery& query, const std::vector<AxisTaps>& taps);

/// y = the map of x. `copies`: each output is one input, bit for bit.
VectorTask tap_task(const std::vector<AxisTaps>& taps, const Shape& x, const Shape& y, bool copies,
                    const mmu::MachineConfig& machine);

}  // namespace triptych::systolic
