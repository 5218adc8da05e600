// Results of CUDA's driver API and of NVRTC. Programs of the runtime compare its errors with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
namespace triptych::cuda::program {

#define TRIPTYCH_CU_ERROR(name, number, text) name = (number),
#define TRIPTYCH_NVRTC_RESULT(name, number)
enum cudaError_enum {
#include "backends/cuda/program/driver_errors.inc"
};
#undef TRIPTYCH_CU_ERROR
#undef TRIPTYCH_NVRTC_RESULT
using CUresult = cudaError_enum;

#define TRIPTYCH_CU_ERROR(name, number, text)
#define TRIPTYCH_NVRTC_RESULT(name, number) name = (number),
enum nvrtcResult {
#include "backends/cuda/program/driver_errors.inc"
};
#undef TRIPTYCH_CU_ERROR
#undef TRIPTYCH_NVRTC_RESULT

}  // namespace triptych::cuda::program
// NOLINTEND(readability-identifier-naming)
