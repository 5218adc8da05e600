// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/program/gpus.h"

#include <cstring>

namespace triptych::cuda::program {
namespace {

constexpr std::size_t kMostWindowBytes = std::size_t{128} << 20;  // of an access policy

}  // namespace

cudaDeviceProp properties_of(const Gpu& gpu) {
  const auto& on = multiprocessor_of(gpu);
  cudaDeviceProp p{};
  std::memcpy(p.name, gpu.name.data(), gpu.name.size());
  p.major = gpu.architecture() / 10;
  p.minor = gpu.architecture() % 10;
  p.totalGlobalMem = gpu.memory_bytes;
  p.sharedMemPerBlock = std::size_t{48} << 10;
  p.sharedMemPerBlockOptin = static_cast<std::size_t>(on.block_shared_bytes);
  p.sharedMemPerMultiprocessor = static_cast<std::size_t>(on.shared_bytes);
  p.reservedSharedMemPerBlock = static_cast<std::size_t>(on.reserved_bytes);
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.memPitch = 0x7FFFFFFF;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7FFFFFFF;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.clockRate = gpu.clock_khz;
  p.memoryClockRate = gpu.memory_clock_khz;
  p.memoryBusWidth = gpu.bus_bits;
  p.l2CacheSize = static_cast<int>(gpu.l2_bytes);
  p.totalConstMem = std::size_t{64} << 10;
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
  p.surfaceAlignment = 512;
  // The same for all GPUs from compute capability 6.0 on (table of technical specifications of
  // CUDA's guide).
  p.maxTexture1D = 131072;
  p.maxTexture2D[0] = 131072;
  p.maxTexture2D[1] = 65536;
  p.maxTexture3D[0] = p.maxTexture3D[1] = p.maxTexture3D[2] = 16384;
  p.maxTexture1DLayered[0] = p.maxTexture2DLayered[0] = p.maxTexture2DLayered[1] = 32768;
  p.maxTexture1DLayered[1] = p.maxTexture2DLayered[2] = 2048;
  p.multiProcessorCount = gpu.multiprocessors;
  p.maxThreadsPerMultiProcessor = 32 * on.max_warps;
  p.maxBlocksPerMultiProcessor = on.max_blocks;
  p.deviceOverlap = p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = 1;
  p.asyncEngineCount = 3;
  p.streamPrioritiesSupported = p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.managedMemory = p.concurrentManagedAccess = p.computePreemptionSupported = 1;
  p.canUseHostPointerForRegisteredMem = p.memoryPoolsSupported = p.cooperativeLaunch = 1;
  if (p.major >= 8) {
    p.persistingL2CacheMaxSize = static_cast<int>(gpu.l2_bytes / 4 * 3);
    p.accessPolicyMaxWindowSize = static_cast<int>(kMostWindowBytes);
  }
  p.singleToDoublePrecisionPerfRatio = p.minor == 0 && p.major >= 8 ? 2 : 32;
  return p;
}

}  // namespace triptych::cuda::program
