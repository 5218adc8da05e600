// One thread per element, in a grid that strides over all of them. An addition reads two elements
// and writes one, so memory is the limit.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "core/base/float16.h"
#include "parallel/comm/gpu_sum.h"
#include "parallel/comm/sum_element.h"

namespace triptych::parallel {
namespace {

constexpr int kThreads = 256, kMostBlocks = 4096;

template <class T>
__global__ void add_kernel(T* target, const T* source, std::size_t elements) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements;
       i += stride)
    target[i] = sum_of(target[i], source[i]);
}

__global__ void scale_kernel(float* target, std::size_t elements, float factor) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements;
       i += stride)
    target[i] = plain_product(target[i], factor);
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
      return add<BFloat16>(target, source, elements, stream);
    case DType::F16:
      return add<Float16>(target, source, elements, stream);
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
