// Sums in a GPU's memory, with the bits of sum.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "core/tensor/dtype.h"

namespace triptych::parallel {

/// target[i] += source[i], in the stream. For Bool cudaErrorInvalidValue.
cudaError_t gpu_add(std::byte* target, const std::byte* source, std::size_t elements, DType dtype,
                    cudaStream_t stream);
/// f32 target[i] *= factor, in the stream.
cudaError_t gpu_scale(std::byte* target, std::size_t elements, float factor, cudaStream_t stream);

}  // namespace triptych::parallel
