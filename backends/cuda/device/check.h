// Failures of the CUDA runtime as exceptions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "core/base/error.h"

namespace triptych::cuda::gpu {

/// Throws DeviceError with the action and the runtime's error text. The runtime then forgets the
/// error, because otherwise the next launch would report it.
inline void check(cudaError_t status, const char* doing) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw DeviceError(std::string("cuda: ") + doing + ": " + cudaGetErrorString(status));
}

}  // namespace triptych::cuda::gpu
