// Costs of the emulated GPU, for reports: names of backends/cuda/emulation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/emulation/gpu.h"
#include "backends/cuda/emulation/kernel_costs.h"
#include "backends/cuda/emulation/launch_bounds.h"

namespace triptych::kernels {

using cuda::emulation::BranchCounters, cuda::emulation::Gpu, cuda::emulation::KernelCosts;
using cuda::emulation::SiteCosts, cuda::emulation::bounds_of, cuda::emulation::find_gpu;

}  // namespace triptych::kernels
