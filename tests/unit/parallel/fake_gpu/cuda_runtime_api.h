// In place of CUDA's header: the part that parallel/comm calls, which fake_gpu.cpp plays on the
// host.
// SPDX-License-Identifier: Apache-2.0
// NOLINTBEGIN(readability-identifier-naming): names are CUDA's
#pragma once

#include <cstddef>

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorNotReady = 600
};
enum cudaMemcpyKind { cudaMemcpyDefault = 4 };

using cudaStream_t = struct FakeStream*;
using cudaEvent_t = struct FakeEvent*;

inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMalloc(void** pointer, std::size_t bytes);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMemset(void* target, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
// NOLINTEND(readability-identifier-naming)
