// One thread per element, in a grid that strides over all of them; an addition reads two elements
// and writes one, so memory is the limit.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>

#include "parallel/comm/gpu_sum.h"

namespace triptych::parallel {
namespace {

constexpr int kThreads = 256, kMostBlocks = 4096;

__device__ float sum(float a, float b) { return __fadd_rn(a, b); }
__device__ __nv_bfloat16 sum(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __float2bfloat16_rn(__fadd_rn(__bfloat162float(a), __bfloat162float(b)));
}
__device__ __half sum(__half a, __half b) {
  return __float2half_rn(__fadd_rn(__half2float(a), __half2float(b)));
}
// Unsigned integers wrap, to the bits of signed ones.
__device__ std::uint8_t sum(std::uint8_t a, std::uint8_t b) {
  return static_cast<std::uint8_t>(a + b);
}
__device__ std::uint32_t sum(std::uint32_t a, std::uint32_t b) { return a + b; }
__device__ std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a + b; }

template <class T>
__global__ void add_kernel(T* target, const T* source, std::size_t elements) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements;
       i += stride)
    target[i] = sum(target[i], source[i]);
}

__global__ void scale_kernel(float* target, std::size_t elements, float factor) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements;
       i += stride)
    target[i] = __fmul_rn(target[i], factor);
}

int blocks_for(std::size_t elements) {
  const std::size_t blocks = (elements + kThreads - 1) / kThreads;
  return static_cast<int>(std::min<std::size_t>(blocks, kMostBlocks));
}

template <class T>
cudaError_t add(std::byte* target, const std::byte* source, std::size_t elements,
                cudaStream_t stream) {
  add_kernel<<<blocks_for(elements), kThreads, 0, stream>>>(
      reinterpret_cast<T*>(target), reinterpret_cast<const T*>(source), elements);
  return cudaGetLastError();
}

}  // namespace

cudaError_t gpu_add(std::byte* target, const std::byte* source, std::size_t elements, DType dtype,
                    cudaStream_t stream) {
  switch (dtype) {
    case DType::F32:
      return add<float>(target, source, elements, stream);
    case DType::BF16:
      return add<__nv_bfloat16>(target, source, elements, stream);
    case DType::F16:
      return add<__half>(target, source, elements, stream);
    case DType::I8:
    case DType::U8:
      return add<std::uint8_t>(target, source, elements, stream);
    case DType::I32:
      return add<std::uint32_t>(target, source, elements, stream);
    case DType::I64:
      return add<std::uint64_t>(target, source, elements, stream);
    case DType::Bool:
      break;
  }
  return cudaErrorInvalidValue;
}

cudaError_t gpu_scale(std::byte* target, std::size_t elements, float factor, cudaStream_t stream) {
  scale_kernel<<<blocks_for(elements), kThreads, 0, stream>>>(reinterpret_cast<float*>(target),
                                                              elements, factor);
  return cudaGetLastError();
}

}  // namespace triptych::parallel
