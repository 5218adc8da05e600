// CUDA's driver API and NVRTC as a user's program calls them: cuda.h and nvrtc.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifndef __cplusplus
#error "the emulated driver API is for C++: give the file the suffix .cpp"
#endif

#include "backends/cuda/program/driver_types.h"

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
extern "C" {
#define TRIPTYCH_DRIVER_CALL(result, name, arguments, ...) \
  __attribute__((nomerge)) result name(__VA_ARGS__);
#include "backends/cuda/program/driver_calls.inc"
#undef TRIPTYCH_DRIVER_CALL
}

// Contexts as CUDA 12 and CUDA 13 create them.
TRIPTYCH_PASS CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  return triptychCtxCreate(context, flags, device);
}
TRIPTYCH_PASS CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams*, unsigned flags,
                                   CUdevice device) {
  return triptychCtxCreate(context, flags, device);
}
TRIPTYCH_PASS CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, CUfunction function, int threads, size_t shared_bytes, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared_bytes);
}
/// As cudaOccupancyMaxPotentialBlockSize.
TRIPTYCH_PASS CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                                        CUoccupancyB2DSize shared_bytes_of,
                                                        size_t shared_bytes, int limit) {
  int blocks = 0;
  const auto result = cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 32, 0);
  if (result != CUDA_SUCCESS) return result;
  return static_cast<CUresult>(cudaOccupancyMaxPotentialBlockSizeVariableSMem(
      grid, block, reinterpret_cast<const void*>(function),
      [=](int threads) {
        return shared_bytes_of == nullptr ? shared_bytes : shared_bytes_of(threads);
      },
      limit));
}

inline void *const CU_LAUNCH_PARAM_END = nullptr,
                   *const CU_LAUNCH_PARAM_BUFFER_POINTER = reinterpret_cast<void*>(1),
                   *const CU_LAUNCH_PARAM_BUFFER_SIZE = reinterpret_cast<void*>(2);
inline const CUstream CU_STREAM_LEGACY = cudaStreamLegacy,
                      CU_STREAM_PER_THREAD = cudaStreamPerThread;
#define CUDA_CB
#define CUDAAPI
#define __cuda_cuda_h__

inline nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = CUDA_VERSION / 1000;
  *minor = CUDA_VERSION % 1000 / 10;
  return NVRTC_SUCCESS;
}
inline const char* nvrtcGetErrorString(nvrtcResult result) {
#define TRIPTYCH_CU_ERROR(name, number, text)
#define TRIPTYCH_NVRTC_RESULT(name, number) \
  case name:                                \
    return #name;
  switch (result) {
#include "backends/cuda/program/driver_errors.inc"
  }
#undef TRIPTYCH_CU_ERROR
#undef TRIPTYCH_NVRTC_RESULT
  return "NVRTC_ERROR unknown";
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
