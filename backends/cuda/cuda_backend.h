// The backends "cuda", a real GPU, and "cuda-emulated", the same kernels on this processor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/device.h"

namespace triptych::cuda {

const Backend& gpu_backend();
const Backend& emulated_backend();

}  // namespace triptych::cuda
