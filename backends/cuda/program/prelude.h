// CUDA C++ for clang's CUDA front end, in place of NVIDIA's headers: included before a user's whole
// program, both for its host part and for its kernels, which clang compiles for this processor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
// Words that clang's own wrappers of the standard library need.
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
/// Memory of the GPU's heap, beside the host's functions: new and delete in kernels use it.
extern "C" __device__ void* malloc(__SIZE_TYPE__ bytes) noexcept;
extern "C" __device__ void free(void* memory) noexcept;

// The library's parallel algorithms run on one thread: TBB's headers are the host's.
#define _GLIBCXX_USE_TBB_PAR_BACKEND 0
// Headers with declarations that must stay the host's, except what() of exceptions, which further
// headers override for both.
#include <cstdlib>
#include <ctime>
#pragma clang force_cuda_host_device begin
#include <bits/exception.h>
#pragma clang force_cuda_host_device end
#include <exception>
#include <new>

// Headers that CUDA's own bring, for host and kernels. A program's further ones of the C++ library
// are found in a folder that makes them so, too.
#pragma clang force_cuda_host_device begin
#include <bits/stl_algobase.h>

#include <array>
#include <bit>
#include <cassert>
#include <cfloat>
#include <climits>
// C++20 has a lerp, which math.h makes a global one. Many CUDA programs, which nvcc compiles as
// C++17, have their own.
#define lerp triptych_lerp
#include <math.h>
#include <cmath>
#undef lerp
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <source_location>
#include <type_traits>
#include <utility>

#undef __device__
#undef __host__
#if defined(TRIPTYCH_COMPILES_UNWATCHED)
#define TRIPTYCH_UNWATCHED
#else
#define TRIPTYCH_UNWATCHED __attribute__((noinline, no_sanitize("thread", "coverage", "undefined")))
#endif
// The emulator's own functions are no accesses of the user's.
#pragma clang attribute push(__attribute__((no_sanitize("thread", "coverage", "undefined"))), \
                             apply_to = function)
#include "backends/cuda/emulation/language.h"
#include "backends/cuda/plain/services.h"
#include "backends/cuda/plain/vector_types.h"

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
namespace triptych::cuda::plain {

extern __attribute__((device, visibility("hidden"))) const Services* services;

/// An index of the running thread, which is the same in all of a kernel.
#if defined(TRIPTYCH_COMPILES_UNWATCHED)
extern "C" __attribute__((device, const, nothrow)) unsigned triptych_index(unsigned which);
#define TRIPTYCH_INDEX_VALUE(which, member) triptych_index(which)
#else
#define TRIPTYCH_INDEX_VALUE(which, member) services->indices().member
#endif

/// threadIdx and its like: each use asks the running block.
#define TRIPTYCH_INDEX(type, member, first)                                                      \
  struct type {                                                                                  \
    __declspec(property(get = get_x)) unsigned x;                                                \
    __declspec(property(get = get_y)) unsigned y;                                                \
    __declspec(property(get = get_z)) unsigned z;                                                \
    TRIPTYCH_UNWATCHED static unsigned get_x() { return TRIPTYCH_INDEX_VALUE(first, member.x); } \
    TRIPTYCH_UNWATCHED static unsigned get_y() {                                                 \
      return TRIPTYCH_INDEX_VALUE(first + 1, member.y);                                          \
    }                                                                                            \
    TRIPTYCH_UNWATCHED static unsigned get_z() {                                                 \
      return TRIPTYCH_INDEX_VALUE(first + 2, member.z);                                          \
    }                                                                                            \
    TRIPTYCH_UNWATCHED operator dim3() const { return {get_x(), get_y(), get_z()}; }             \
    TRIPTYCH_UNWATCHED operator uint3() const { return {get_x(), get_y(), get_z()}; }            \
  };
TRIPTYCH_INDEX(ThreadIndex, thread, kThreadIndex)
TRIPTYCH_INDEX(BlockIndex, block, kBlockIndex)
TRIPTYCH_INDEX(BlockDim, block_dim, kBlockSize)
TRIPTYCH_INDEX(GridDim, grid_dim, kGridSize)
#undef TRIPTYCH_INDEX
#undef TRIPTYCH_INDEX_VALUE

}  // namespace triptych::cuda::plain

using triptych::cuda::emulation::__all_sync, triptych::cuda::emulation::__any_sync;
using triptych::cuda::emulation::__ballot_sync, triptych::cuda::emulation::__shfl_sync;
using triptych::cuda::emulation::__shfl_down_sync, triptych::cuda::emulation::__shfl_up_sync;
using triptych::cuda::emulation::__shfl_xor_sync, triptych::cuda::emulation::__syncthreads;
using triptych::cuda::emulation::__syncwarp, triptych::cuda::emulation::warpSize;

#include "backends/cuda/plain/device_functions.h"
#include "backends/cuda/program/directed_rounding.h"
#include "backends/cuda/program/types.h"
#include "backends/cuda/program/warp_functions.h"

#include "backends/cuda/program/texture_functions.h"
#pragma clang attribute pop
#pragma clang force_cuda_host_device end

#undef __global__
#undef __device__
#undef __host__
#undef __forceinline__
#undef __restrict__
#undef __grid_constant__
#define __global__ __attribute__((global, noinline))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __constant__ __attribute__((constant, used, visibility("protected")))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define __restrict__ __restrict
// clang accepts no alignas behind __shared__, and nvcc does. A type or a number, as in the
// language.
template <class T>
inline constexpr __SIZE_TYPE__ triptych_alignment() {
  return alignof(T);
}
template <__SIZE_TYPE__ bytes>
inline constexpr __SIZE_TYPE__ triptych_alignment() {
  return bytes;
}
#define alignas(...) __attribute__((aligned(triptych_alignment<__VA_ARGS__>())))
#define __grid_constant__
#define __managed__ _Static_assert(false, "not emulated: use cudaMallocManaged");
// A block runs on one thread of the processor, so that thread-local data belong to the block.
#if defined(TRIPTYCH_COMPILES_KERNELS)
#define __shared__ __attribute__((shared)) thread_local
#else
#define __shared__ __attribute__((shared))
#endif

extern const __device__ __attribute__((weak)) triptych::cuda::plain::ThreadIndex threadIdx;
extern const __device__ __attribute__((weak)) triptych::cuda::plain::BlockIndex blockIdx;
extern const __device__ __attribute__((weak)) triptych::cuda::plain::BlockDim blockDim;
extern const __device__ __attribute__((weak)) triptych::cuda::plain::GridDim gridDim;

/// A kernel's clock stands beside the host's.
TRIPTYCH_UNWATCHED inline __device__ clock_t clock() { return clock64(); }

#if defined(TRIPTYCH_COMPILES_KERNELS)
#undef __CUDA_ARCH__
#define __CUDA_ARCH__ TRIPTYCH_COMPILES_KERNELS
#endif
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 0
#define CUDART_VERSION 12080
#define CUDA_VERSION 12080
#define __CUDACC__ 1
#define __NVCC__ 1
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

#include "backends/cuda/program/runtime_api.h"
