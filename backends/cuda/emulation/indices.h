// Indices of the thread that runs now, for kernels that are part of the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/emulation/language.h"

namespace triptych::cuda::emulation {

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
inline thread_local constinit Dim3 threadIdx{}, blockIdx{}, blockDim{}, gridDim{};
// NOLINTEND(readability-identifier-naming)

/// The index of this number in a grid or block.
inline Dim3 index_in(const Dim3& size, unsigned number) {
  if (number < size.x) return {number, 0, 0};
  return {number % size.x, number / size.x % size.y, number / size.x / size.y};
}

}  // namespace triptych::cuda::emulation
