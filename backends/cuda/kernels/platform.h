// Includes of a kernel's source: CUDA C++ as this build of it understands it. The same source is
// compiled three times: by nvcc for GPUs (namespace gpu), and by g++ for the emulation, plain
// (emulated) and with every access counted and checked (counted).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "backends/cuda/kernels/kernels.h"
#include "core/base/host_device.h"

#if defined(__CUDACC__)
#define TRIPTYCH_PLATFORM gpu
#include "backends/cuda/device/launch.h"
#include "backends/cuda/kernels/memory.h"
#else
#include "backends/cuda/emulation/grid.h"
#include "backends/cuda/emulation/occupancy.h"
#include "backends/cuda/kernels/kernel_instance.h"
#if defined(TRIPTYCH_COUNTED)
#define TRIPTYCH_PLATFORM counted
#include "backends/cuda/emulation/counted_memory.h"
#else
#define TRIPTYCH_PLATFORM emulated
#include "backends/cuda/kernels/memory.h"
#endif

namespace triptych::cuda::TRIPTYCH_PLATFORM {

using emulation::__all_sync, emulation::__any_sync, emulation::__ballot_sync;
using emulation::__shfl_down_sync, emulation::__shfl_sync, emulation::__shfl_up_sync;
using emulation::__shfl_xor_sync, emulation::__syncthreads, emulation::__syncwarp;
using emulation::blockDim, emulation::blockIdx, emulation::gridDim, emulation::threadIdx;
using emulation::LaunchShape;

/// Runs kernel(arguments...) for every thread of the shape, after earlier launches on the stream.
template <class... Parameters, class... Arguments>
void launch(Stream* stream, const char* name, const LaunchShape& shape,
            void (*kernel)(Parameters...), const Arguments&... arguments) {
  static_cast<emulation::EmulatedStream*>(stream)->run(name, shape, [&] { kernel(arguments...); });
}

template <auto* kKernel>
const char* described() {
  return __PRETTY_FUNCTION__;
}

/// The same, told which instance of a kernel's template it is.
template <auto* kKernel, class... Arguments>
void launch(Stream* stream, const char* name, const LaunchShape& shape, KernelInstance<kKernel>,
            const Arguments&... arguments) {
  static const std::string instance = emulation::instance_name(described<kKernel>());
  static_cast<emulation::EmulatedStream*>(stream)->run(
      name, shape, [&] { kKernel(arguments...); }, instance);
}

/// Blocks that the GPU runs at once where each takes a multiprocessor for itself.
inline unsigned most_blocks(Stream* stream) {
  return static_cast<emulation::EmulatedStream*>(stream)->schedule().most_blocks;
}

/// The block's shared memory as a T, a struct of Shared arrays. A launch asks for sizeof(T) bytes.
template <class T>
T& shared() {
  return *reinterpret_cast<T*>(emulation::Block::current().shared().data());
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
#endif

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Number of the running thread in a grid of one dimension, and of all its threads.
__device__ inline std::int64_t global_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t all_threads() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
