// CUDA's runtime as a user's program calls it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/program/types.h"

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
using namespace triptych::cuda::program;

/// Functions without a line of their own: the call's place is the user's.
#define TRIPTYCH_PASS __attribute__((always_inline, nodebug)) inline

extern "C" {
#define TRIPTYCH_OR(value) = value
// Two calls that were merged into one would have one place.
#define TRIPTYCH_CALL(name, arguments, ...) __attribute__((nomerge)) cudaError_t name(__VA_ARGS__);
#include "backends/cuda/program/calls.inc"
#undef TRIPTYCH_CALL
#undef TRIPTYCH_OR

#define TRIPTYCH_CUDA_ERROR(name, number, text) \
  case name:                                    \
    return #name;
inline __host__ __device__ const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#include "backends/cuda/program/runtime_errors.inc"
  }
  return "unrecognized error code";
}
#undef TRIPTYCH_CUDA_ERROR
#define TRIPTYCH_CUDA_ERROR(name, number, text) \
  case name:                                    \
    return text;
inline __host__ __device__ const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#include "backends/cuda/program/runtime_errors.inc"
  }
  return "unrecognized error code";
}
#undef TRIPTYCH_CUDA_ERROR
}

// A launch: clang calls this for <<< >>>, then cudaSetupArgument and cudaLaunch in the kernel's
// host function.
extern "C" TRIPTYCH_PASS cudaError_t cudaConfigureCall(dim3 grid, dim3 block,
                                                       size_t shared_bytes = 0,
                                                       cudaStream_t stream = 0) {
  const unsigned grid_sizes[] = {grid.x, grid.y, grid.z};
  const unsigned block_sizes[] = {block.x, block.y, block.z};
  return triptychConfigure(grid_sizes, block_sizes, shared_bytes, stream);
}

// Memory. The typed forms know an element's size.
template <class T>
inline constexpr size_t triptych_element = sizeof(T);
template <>
inline constexpr size_t triptych_element<void> = 0;
template <class T>
TRIPTYCH_PASS void** triptych_untyped(T** pointer) {
  return const_cast<void**>(reinterpret_cast<const volatile void* const*>(pointer));
}

#define TRIPTYCH_ALLOCATION(name, call, ...)                              \
  template <class T>                                                      \
  TRIPTYCH_PASS cudaError_t name(T** pointer, size_t bytes __VA_ARGS__) { \
    return call(triptych_untyped(pointer), bytes, triptych_element<T>);   \
  }
TRIPTYCH_ALLOCATION(cudaMalloc, triptychMalloc)
TRIPTYCH_ALLOCATION(cudaMallocManaged, triptychMallocManaged, , unsigned = 1)
TRIPTYCH_ALLOCATION(cudaMallocHost, triptychMallocHost, , unsigned = 0)
TRIPTYCH_ALLOCATION(cudaHostAlloc, triptychMallocHost, , unsigned)
#undef TRIPTYCH_ALLOCATION
template <class T>
TRIPTYCH_PASS cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
  return triptychMallocPitch(reinterpret_cast<void**>(pointer), pitch, width, height,
                             triptych_element<T>);
}
template <class T>
TRIPTYCH_PASS cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned flags) {
  return cudaHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags);
}

// Variables.
template <class T>
TRIPTYCH_PASS cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, size_t bytes,
                                             size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return triptychCopyToSymbol(&symbol, from, bytes, offset, kind, nullptr);
}
template <class T>
TRIPTYCH_PASS cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t bytes,
                                                  size_t offset, cudaMemcpyKind kind,
                                                  cudaStream_t stream = 0) {
  return triptychCopyToSymbol(&symbol, from, bytes, offset, kind, stream);
}
template <class T>
TRIPTYCH_PASS cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes,
                                               size_t offset = 0,
                                               cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return triptychCopyFromSymbol(to, &symbol, bytes, offset, kind, nullptr);
}
template <class T>
TRIPTYCH_PASS cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes,
                                                    size_t offset, cudaMemcpyKind kind,
                                                    cudaStream_t stream = 0) {
  return triptychCopyFromSymbol(to, &symbol, bytes, offset, kind, stream);
}
template <class T, class U>
TRIPTYCH_PASS cudaError_t cudaGetSymbolAddress(T** address, const U& symbol) {
  return triptychSymbolAddress(const_cast<void**>(reinterpret_cast<const void* const*>(address)),
                               &symbol);
}
template <class T>
TRIPTYCH_PASS cudaError_t cudaGetSymbolSize(size_t* bytes, const T& symbol) {
  return triptychSymbolSize(bytes, &symbol);
}

// Textures.
template <class T>
inline __host__ __device__ cudaChannelFormatDesc cudaCreateChannelDesc() {
  return channels_of<T>();
}
inline __host__ __device__ cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                                       cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
  return {width, height, depth};
}
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
inline cudaPitchedPtr make_cudaPitchedPtr(void* pointer, size_t pitch, size_t width,
                                          size_t height) {
  return {pointer, pitch, width, height};
}
TRIPTYCH_PASS cudaError_t cudaBindTexture(size_t* offset, const textureReference& reference,
                                          const void* memory, const cudaChannelFormatDesc& channels,
                                          size_t bytes = 0xFFFFFFFF) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {const_cast<void*>(memory), channels, bytes};
  if (offset != nullptr) *offset = 0;
  return triptychBindTexture(&reference, &resource);
}
TRIPTYCH_PASS cudaError_t cudaBindTexture(size_t* offset, const textureReference& reference,
                                          const void* memory, size_t bytes = 0xFFFFFFFF) {
  return cudaBindTexture(offset, reference, memory, reference.channelDesc, bytes);
}
TRIPTYCH_PASS cudaError_t cudaBindTexture(size_t* offset, const textureReference* reference,
                                          const void* memory, const cudaChannelFormatDesc* channels,
                                          size_t bytes = 0xFFFFFFFF) {
  return cudaBindTexture(offset, *reference, memory, *channels, bytes);
}
TRIPTYCH_PASS cudaError_t cudaBindTexture2D(size_t* offset, const textureReference& reference,
                                            const void* memory,
                                            const cudaChannelFormatDesc& channels, size_t width,
                                            size_t height, size_t pitch) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D = {const_cast<void*>(memory), channels, width, height, pitch};
  if (offset != nullptr) *offset = 0;
  return triptychBindTexture(&reference, &resource);
}
TRIPTYCH_PASS cudaError_t cudaBindTextureToArray(const textureReference& reference,
                                                 cudaArray_const_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = const_cast<cudaArray_t>(array);
  return triptychBindTexture(&reference, &resource);
}
TRIPTYCH_PASS cudaError_t cudaBindTextureToArray(const textureReference& reference,
                                                 cudaArray_const_t array,
                                                 const cudaChannelFormatDesc&) {
  return cudaBindTextureToArray(reference, array);
}
TRIPTYCH_PASS cudaError_t cudaUnbindTexture(const textureReference& reference) {
  return cudaUnbindTexture(&reference);
}

// Kernels.
template <class T>
TRIPTYCH_PASS cudaError_t cudaLaunchKernel(T* kernel, dim3 grid, dim3 block, void** arguments,
                                           size_t shared_bytes = 0, cudaStream_t stream = 0) {
  const KernelNode launch = {reinterpret_cast<const void*>(kernel),
                             {grid.x, grid.y, grid.z},
                             {block.x, block.y, block.z},
                             shared_bytes,
                             arguments,
                             false};
  return triptychLaunch(&launch, stream);
}
template <class T>
TRIPTYCH_PASS cudaError_t cudaLaunchCooperativeKernel(T* kernel, dim3 grid, dim3 block,
                                                      void** arguments, size_t shared_bytes = 0,
                                                      cudaStream_t stream = 0) {
  const KernelNode launch = {reinterpret_cast<const void*>(kernel),
                             {grid.x, grid.y, grid.z},
                             {block.x, block.y, block.z},
                             shared_bytes,
                             arguments,
                             true};
  return triptychLaunch(&launch, stream);
}
template <class T>
TRIPTYCH_PASS cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, T* kernel) {
  return triptychFuncAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <class T>
TRIPTYCH_PASS cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute attribute, int value) {
  return triptychSetFuncAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class T>
inline cudaError_t cudaFuncSetCacheConfig(T*, cudaFuncCache) {
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaFuncSetSharedMemConfig(T*, cudaSharedMemConfig) {
  return cudaSuccess;
}
template <class T>
TRIPTYCH_PASS cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, T* kernel,
                                                                        int threads,
                                                                        size_t shared_bytes) {
  return triptychOccupancy(blocks, reinterpret_cast<const void*>(kernel), threads, shared_bytes);
}
/// The block size with the most threads on a multiprocessor, and the grid that fills the GPU.
template <class F, class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, T* kernel,
                                                                  F shared_bytes_of,
                                                                  int limit = 0) {
  int multiprocessors = 0, most = 0, best = 0;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxThreadsPerBlock, 0);
  if (limit > 0 && limit < most) most = limit;
  for (int threads = most; threads > 0; threads -= 32) {
    int blocks = 0;
    const auto error = triptychOccupancy(&blocks, reinterpret_cast<const void*>(kernel), threads,
                                         shared_bytes_of(threads));
    if (error != cudaSuccess) return error;
    if (blocks * threads <= best) continue;
    best = blocks * threads;
    *grid = blocks * multiprocessors;
    *block = threads;
  }
  return cudaSuccess;
}
template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, T* kernel,
                                                      size_t shared_bytes = 0, int limit = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
      grid, block, kernel, [shared_bytes](int) { return shared_bytes; }, limit);
}
TRIPTYCH_PASS cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}
TRIPTYCH_PASS cudaError_t cudaFreeAsync(void* pointer) { return cudaFreeAsync(pointer, nullptr); }

inline constexpr unsigned cudaHostAllocDefault = 0, cudaHostAllocPortable = 1,
                          cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4,
                          cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1,
                          cudaHostRegisterMapped = 2, cudaStreamNonBlocking = 1,
                          cudaEventDefault = 0, cudaEventBlockingSync = 1,
                          cudaEventDisableTiming = 2, cudaMemAttachGlobal = 1,
                          cudaMemAttachHost = 2, cudaMemAttachSingle = 4,
                          cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1,
                          cudaDeviceScheduleYield = 2, cudaDeviceScheduleBlockingSync = 4,
                          cudaDeviceBlockingSync = 4, cudaDeviceMapHost = 8,
                          cudaOccupancyDefault = 0;
// Guards of NVIDIA's headers, by which other headers know that they were included.
#define __DRIVER_TYPES_H__
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__
#define __VECTOR_TYPES_H__
#define __VECTOR_FUNCTIONS_H__
#define __DEVICE_LAUNCH_PARAMETERS_H__
#define CUDART_CB
#define CUDARTAPI
// 0, which is a stream, too.
#define cudaStreamDefault 0
#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1))
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(2))
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

#include "backends/cuda/program/graph_api.h"

#include "backends/cuda/program/hints.h"
