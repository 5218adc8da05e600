// Plain CUDA C++ for g++: the counterpart of nvcc's own headers for a .cu file. Included before
// everything else by `triptych kernel`. The compiler itself reports each load and store of the code
// below (callbacks.cpp), so that kernels are written with bare pointers and __shared__ arrays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __clang__  // builds for the debugger
#define TRIPTYCH_UNWATCHED __attribute__((noinline, no_sanitize("thread", "coverage", "undefined")))
#else
#define TRIPTYCH_UNWATCHED \
  __attribute__((noinline, no_sanitize_thread, no_sanitize_coverage, no_sanitize_undefined))
#endif

#include <cassert>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backends/cuda/emulation/language.h"
#include "backends/cuda/plain/services.h"
#include "backends/cuda/plain/vector_types.h"

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
// A section of its own holds a kernel's address, where the program finds it.
#undef __global__
#define __global__ __attribute__((used, noinline, patchable_function_entry(1)))
// A block runs on one thread of the processor, so that thread-local data belong to the block.
#define __shared__ thread_local
#define __constant__ __attribute__((used, visibility("protected")))
#define __managed__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __noinline__ __attribute__((noinline))

namespace triptych::cuda::plain {

extern const Services* services __attribute__((visibility("hidden")));

TRIPTYCH_UNWATCHED inline uint3 as_uint3(const emulation::Dim3& at) { return {at.x, at.y, at.z}; }
TRIPTYCH_UNWATCHED inline uint3 thread_index() { return as_uint3(services->indices().thread); }
TRIPTYCH_UNWATCHED inline uint3 block_index() { return as_uint3(services->indices().block); }
TRIPTYCH_UNWATCHED inline dim3 block_dim() { return as_uint3(services->indices().block_dim); }
TRIPTYCH_UNWATCHED inline dim3 grid_dim() { return as_uint3(services->indices().grid_dim); }

}  // namespace triptych::cuda::plain

#define threadIdx (::triptych::cuda::plain::thread_index())
#define blockIdx (::triptych::cuda::plain::block_index())
#define blockDim (::triptych::cuda::plain::block_dim())
#define gridDim (::triptych::cuda::plain::grid_dim())

using triptych::cuda::emulation::__all_sync, triptych::cuda::emulation::__any_sync;
using triptych::cuda::emulation::__ballot_sync, triptych::cuda::emulation::__shfl_sync;
using triptych::cuda::emulation::__shfl_down_sync, triptych::cuda::emulation::__shfl_up_sync;
using triptych::cuda::emulation::__shfl_xor_sync, triptych::cuda::emulation::__syncthreads;
using triptych::cuda::emulation::__syncwarp, triptych::cuda::emulation::warpSize;

#include "backends/cuda/plain/device_functions.h"

/// The architecture of the emulated GPU. Headers of the C++ library, above, have another meaning of
/// it.
#define __CUDA_ARCH__ 900

#define memcpy(...) ::triptych::cuda::plain::copy(__VA_ARGS__)
#define memmove(...) ::triptych::cuda::plain::copy(__VA_ARGS__)
#define memset(...) ::triptych::cuda::plain::fill(__VA_ARGS__)
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
