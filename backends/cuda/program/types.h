// Types of CUDA's runtime, as far as it is emulated: for users' programs, for the bridge that they
// are linked with, and for this program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// NOLINTBEGIN(readability-identifier-naming,readability-identifier-length): CUDA's own names.
/// A row for each error: name, number, text.
#define TRIPTYCH_CUDA_ERRORS(row)                                                                  \
  row(cudaSuccess, 0, "no error") row(cudaErrorInvalidValue, 1, "invalid argument") row(           \
      cudaErrorMemoryAllocation, 2, "out of memory") row(cudaErrorInitializationError, 3,          \
                                                         "initialization error")                   \
      row(cudaErrorInvalidConfiguration, 9, "invalid configuration argument") row(                 \
          cudaErrorInvalidPitchValue, 12,                                                          \
          "invalid pitch argument") row(cudaErrorInvalidSymbol, 13, "invalid device symbol")       \
          row(cudaErrorInvalidDevicePointer, 17, "invalid device pointer") row(                    \
              cudaErrorInvalidTexture, 18,                                                         \
              "invalid texture reference") row(cudaErrorInvalidChannelDescriptor, 20,              \
                                               "invalid channel descriptor")                       \
              row(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy") row(   \
                  cudaErrorInsufficientDriver, 35,                                                 \
                  "CUDA driver version is insufficient") row(cudaErrorInvalidDeviceFunction, 98,   \
                                                             "invalid device function")            \
                  row(cudaErrorNoDevice, 100, "no CUDA-capable device is detected") row(           \
                      cudaErrorInvalidDevice, 101,                                                 \
                      "invalid device ordinal") row(cudaErrorPeerAccessAlreadyEnabled, 704,        \
                                                    "peer access is already enabled")              \
                      row(cudaErrorPeerAccessNotEnabled, 705,                                      \
                          "peer access has not been enabled") row(cudaErrorNotReady, 600,          \
                                                                  "device not ready")              \
                          row(cudaErrorInvalidResourceHandle, 400, "invalid resource handle") row( \
                              cudaErrorIllegalAddress, 700,                                        \
                              "an illegal memory access was encountered")                          \
                              row(cudaErrorLaunchOutOfResources, 701,                              \
                                  "too many resources requested for launch")                       \
                                  row(cudaErrorLaunchTimeout, 702,                                 \
                                      "the launch timed out and was terminated")                   \
                                      row(cudaErrorAssert, 710, "device-side assert triggered")    \
                                          row(cudaErrorHostMemoryAlreadyRegistered, 712,           \
                                              "the memory is already registered")                  \
                                              row(cudaErrorHostMemoryNotRegistered, 713,           \
                                                  "the memory is not registered")                  \
                                                  row(cudaErrorLaunchFailure, 719,                 \
                                                      "unspecified launch failure")                \
                                                      row(cudaErrorCooperativeLaunchTooLarge, 720, \
                                                          "too many blocks in cooperative launch") \
                                                          row(cudaErrorNotSupported, 801,          \
                                                              "operation not supported")           \
                                                              row(cudaErrorUnknown, 999,           \
                                                                  "unknown error")                 \
                                                                  TRIPTYCH_CUDA_GRAPH_ERRORS(row)

#define TRIPTYCH_CUDA_GRAPH_ERRORS(row)                                                           \
  row(cudaErrorIllegalState, 401, "the operation cannot be performed in the present state") row(  \
      cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing") \
      row(cudaErrorStreamCaptureInvalidated, 901,                                                 \
          "operation failed due to a previous error during capture")                              \
          row(cudaErrorStreamCaptureMerge, 902,                                                   \
              "operation would result in a merge of separate capture sequences")                  \
              row(cudaErrorStreamCaptureUnmatched, 903,                                           \
                  "capture was not ended in the same stream as it began")                         \
                  row(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")  \
                      row(cudaErrorStreamCaptureIsolation, 905,                                   \
                          "dependency created on uncaptured work in another stream")              \
                          row(cudaErrorStreamCaptureImplicit, 906,                                \
                              "operation would make the legacy stream depend on a capturing "     \
                              "blocking stream") row(cudaErrorCapturedEvent, 907,                 \
                                                     "operation not permitted on an event last "  \
                                                     "recorded in a capturing stream")            \
                              row(cudaErrorGraphExecUpdateFailure, 910,                           \
                                  "the graph update was not performed because it included "       \
                                  "changes which violated constraints specific to instantiated "  \
                                  "graph update")

/// Properties of the host's memory, as rows of TRIPTYCH_CUDA_ATTRIBUTES.
#define TRIPTYCH_CUDA_HOST_ATTRIBUTES(row)                                   \
  row(cudaDevAttrHostNativeAtomicSupported, 86, p.hostNativeAtomicSupported) \
      row(cudaDevAttrPageableMemoryAccess, 88, p.pageableMemoryAccess) row(  \
          cudaDevAttrCanUseHostPointerForRegisteredMem, 91, p.canUseHostPointerForRegisteredMem)

/// A row for each property of a device that can be asked for by number: name, number, expression
/// of a cudaDeviceProp p.
#define TRIPTYCH_CUDA_ATTRIBUTES(row)                                                              \
  row(cudaDevAttrMaxThreadsPerBlock, 1, p.maxThreadsPerBlock) row(                                 \
      cudaDevAttrMaxBlockDimX, 2,                                                                  \
      p.maxThreadsDim[0]) row(cudaDevAttrMaxBlockDimY, 3,                                          \
                              p.maxThreadsDim[1]) row(cudaDevAttrMaxBlockDimZ, 4,                  \
                                                      p.maxThreadsDim[2])                          \
      row(cudaDevAttrMaxGridDimX, 5, p.maxGridSize[0]) row(                                        \
          cudaDevAttrMaxGridDimY, 6,                                                               \
          p.maxGridSize[1]) row(cudaDevAttrMaxGridDimZ, 7,                                         \
                                p.maxGridSize[2]) row(cudaDevAttrMaxSharedMemoryPerBlock, 8,       \
                                                      static_cast<int>(p.sharedMemPerBlock))       \
          row(cudaDevAttrTotalConstantMemory, 9, static_cast<int>(p.totalConstMem)) row(           \
              cudaDevAttrWarpSize, 10,                                                             \
              p.warpSize) row(cudaDevAttrMaxPitch, 11,                                             \
                              static_cast<int>(                                                    \
                                  p.memPitch)) row(cudaDevAttrMaxRegistersPerBlock, 12,            \
                                                   p.regsPerBlock) row(cudaDevAttrClockRate, 13,   \
                                                                       p.clockRate)                \
              row(cudaDevAttrTextureAlignment, 14, static_cast<int>(p.textureAlignment)) row(      \
                  cudaDevAttrGpuOverlap, 15, p.deviceOverlap) row(cudaDevAttrMultiProcessorCount,  \
                                                                  16, p.multiProcessorCount)       \
                  row(cudaDevAttrKernelExecTimeout, 17, p.kernelExecTimeoutEnabled) row(           \
                      cudaDevAttrIntegrated, 18, p.integrated) row(cudaDevAttrCanMapHostMemory,    \
                                                                   19, p.canMapHostMemory)         \
                      row(cudaDevAttrComputeMode, 20, p.computeMode) row(                          \
                          cudaDevAttrConcurrentKernels, 31,                                        \
                          p.concurrentKernels) row(cudaDevAttrEccEnabled, 32,                      \
                                                   p.ECCEnabled) row(cudaDevAttrMemoryClockRate,   \
                                                                     36, p.memoryClockRate)        \
                          row(cudaDevAttrGlobalMemoryBusWidth, 37, p.memoryBusWidth) row(          \
                              cudaDevAttrL2CacheSize,                                              \
                              38,                                                                  \
                              p.l2CacheSize) row(cudaDevAttrMaxThreadsPerMultiProcessor, 39,       \
                                                 p                                                 \
                                                     .maxThreadsPerMultiProcessor)                 \
                              row(cudaDevAttrAsyncEngineCount, 40, p.asyncEngineCount) row(        \
                                  cudaDevAttrUnifiedAddressing, 41, p.unifiedAddressing)           \
                                  row(cudaDevAttrComputeCapabilityMajor, 75, p.major) row(         \
                                      cudaDevAttrComputeCapabilityMinor, 76,                       \
                                      p.minor) row(cudaDevAttrMaxSharedMemoryPerMultiprocessor,    \
                                                   81,                                             \
                                                   static_cast<int>(p.sharedMemPerMultiprocessor)) \
                                      row(cudaDevAttrMaxRegistersPerMultiprocessor, 82,            \
                                          p.regsPerMultiprocessor)                                 \
                                          row(cudaDevAttrManagedMemory, 83, p.managedMemory) row(  \
                                              cudaDevAttrConcurrentManagedAccess, 89,              \
                                              p.concurrentManagedAccess)                           \
                                              row(cudaDevAttrCooperativeLaunch, 95,                \
                                                  p.cooperativeLaunch)                             \
                                                  row(cudaDevAttrMaxSharedMemoryPerBlockOptin, 97, \
                                                      static_cast<int>(p.sharedMemPerBlockOptin))  \
                                                      row(cudaDevAttrMemoryPoolsSupported, 115,    \
                                                          p.memoryPoolsSupported)

namespace triptych::cuda::program {

#define TRIPTYCH_ENUMERATOR(name, number, text) name = (number),
enum cudaError { TRIPTYCH_CUDA_ERRORS(TRIPTYCH_ENUMERATOR) };
using cudaError_t = cudaError;
enum cudaDeviceAttr {
  TRIPTYCH_CUDA_ATTRIBUTES(TRIPTYCH_ENUMERATOR) TRIPTYCH_CUDA_HOST_ATTRIBUTES(TRIPTYCH_ENUMERATOR)
};
#undef TRIPTYCH_ENUMERATOR

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaFuncCache {
  cudaFuncCachePreferNone,
  cudaFuncCachePreferShared,
  cudaFuncCachePreferL1,
  cudaFuncCachePreferEqual
};
enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault,
  cudaSharedMemBankSizeFourByte,
  cudaSharedMemBankSizeEightByte
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaSharedCarveout {
  cudaSharedmemCarveoutDefault = -1,
  cudaSharedmemCarveoutMaxL1 = 0,
  cudaSharedmemCarveoutMaxShared = 100
};
enum cudaLimit {
  cudaLimitStackSize,
  cudaLimitPrintfFifoSize,
  cudaLimitMallocHeapSize,
  cudaLimitDevRuntimeSyncDepth,
  cudaLimitDevRuntimePendingLaunchCount
};
enum cudaComputeMode {
  cudaComputeModeDefault,
  cudaComputeModeExclusive,
  cudaComputeModeProhibited,
  cudaComputeModeExclusiveProcess
};
enum cudaMemoryType {
  cudaMemoryTypeUnregistered,
  cudaMemoryTypeHost,
  cudaMemoryTypeDevice,
  cudaMemoryTypeManaged
};
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly,
  cudaMemAdviseSetPreferredLocation,
  cudaMemAdviseUnsetPreferredLocation,
  cudaMemAdviseSetAccessedBy,
  cudaMemAdviseUnsetAccessedBy
};

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaStreamCallback_t = void (*)(cudaStream_t stream, cudaError_t status, void* data);
using cudaHostFn_t = void (*)(void* data);

inline constexpr int cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2;

struct cudaUUID_t {
  char bytes[16];
};

struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  std::size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  std::size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
  std::size_t totalConstMem;
  int major, minor;
  std::size_t textureAlignment, texturePitchAlignment;
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory,
      computeMode, maxTexture1D, maxTexture1DMipmap, maxTexture2D[2], maxTexture3D[3],
      maxTexture1DLayered[2], maxTexture2DLayered[3];
  std::size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver,
      asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize,
      persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported,
      globalL1CacheSupported, localL1CacheSupported;
  std::size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID,
      hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess,
      concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
      cooperativeLaunch, cooperativeMultiDeviceLaunch;
  std::size_t sharedMemPerBlockOptin;
  int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize, memoryPoolsSupported;
  std::size_t reservedSharedMemPerBlock;
};

struct cudaFuncAttributes {
  std::size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA,
      maxDynamicSharedSizeBytes, preferredShmemCarveout;
};

struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
};

}  // namespace triptych::cuda::program
// NOLINTEND(readability-identifier-naming,readability-identifier-length)

#include "backends/cuda/program/texture_types.h"

#include "backends/cuda/program/graph_types.h"
