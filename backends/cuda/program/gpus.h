// Properties of GPUs as a program asks for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/emulation/gpu.h"
#include "backends/cuda/program/types.h"

namespace triptych::cuda::program {

using emulation::Gpu, emulation::gpus, emulation::multiprocessor_of;

cudaDeviceProp properties_of(const Gpu& gpu);

}  // namespace triptych::cuda::program
