// Kernels of this build that need more of a GPU than its CUDA cores.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/platform.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Does this build have the code for compute capability 9.0a (wgmma)?
#if defined(__CUDACC__) && !defined(TRIPTYCH_BUILT_FOR_SM90A)
inline constexpr bool kBuiltForHopper = false;
#else
inline constexpr bool kBuiltForHopper = true;
#endif

KernelEntry hopper_matmul();
KernelEntry hopper_conv();
KernelEntry hopper_conv_transpose();
KernelEntry tensor_core_matmul();
KernelEntry tensor_core_attention();
KernelEntry tensor_core_conv();
KernelEntry tensor_core_conv_transpose();
KernelEntry tensor_core_weight_gradient();

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
