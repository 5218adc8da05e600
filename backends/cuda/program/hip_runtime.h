// HIP's names for the CUDA runtime, as HIP defines them on NVIDIA's platform: a program of HIP is
// one of CUDA. A warp has 32 lanes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include "backends/cuda/program/cooperative_groups.h"

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): HIP's own names.
#define __HIP_PLATFORM_NVIDIA__ 1
#define __HIPCC__ 1
#define HIP_VERSION_MAJOR 6
#define HIP_VERSION_MINOR 0
#define HIP_VERSION 60000000
#define HIP_SYMBOL(name) name
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#if defined(HIP_TEMPLATE_KERNEL_LAUNCH)  // a function, for kernels with several template arguments
template <class... Values, class Kernel = void (*)(Values...)>
TRIPTYCH_PASS void hipLaunchKernelGGL(Kernel kernel, dim3 grid, dim3 block, size_t shared_bytes,
                                      cudaStream_t stream, Values... values) {
  kernel<<<grid, block, shared_bytes, stream>>>(values...);
}
#else
#define hipLaunchKernelGGL(kernel, grid, block, shared_bytes, stream, ...) \
  (kernel)<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
#endif

// Functions.
#define hipFree cudaFree
#define hipMalloc cudaMalloc
#define hipMemcpy cudaMemcpy
#define hipMemset cudaMemset
#define hipMemcpyAsync cudaMemcpyAsync
#define hipMemsetAsync cudaMemsetAsync
#define hipMallocManaged cudaMallocManaged
#define hipMallocAsync cudaMallocAsync
#define hipFreeAsync cudaFreeAsync
#define hipMallocPitch cudaMallocPitch
#define hipMemcpy2D cudaMemcpy2D
#define hipMemcpy2DAsync cudaMemcpy2DAsync
#define hipMemset2D cudaMemset2D
#define hipMemcpy3D cudaMemcpy3D
#define hipMallocArray cudaMallocArray
#define hipMalloc3DArray cudaMalloc3DArray
#define hipFreeArray cudaFreeArray
#define hipMemcpy2DToArray cudaMemcpy2DToArray
#define hipMemcpyToArray cudaMemcpyToArray
#define hipMemcpyFromArray cudaMemcpyFromArray
#define hipMemcpyToSymbol cudaMemcpyToSymbol
#define hipMemcpyFromSymbol cudaMemcpyFromSymbol
#define hipMemcpyToSymbolAsync cudaMemcpyToSymbolAsync
#define hipGetSymbolAddress cudaGetSymbolAddress
#define hipGetSymbolSize cudaGetSymbolSize
#define hipHostRegister cudaHostRegister
#define hipHostUnregister cudaHostUnregister
#define hipHostGetDevicePointer cudaHostGetDevicePointer
#define hipPointerGetAttributes cudaPointerGetAttributes
#define hipMemGetInfo cudaMemGetInfo
#define hipMemPrefetchAsync cudaMemPrefetchAsync
#define hipMemAdvise cudaMemAdvise
#define hipMemcpyPeer cudaMemcpyPeer
#define hipMemcpyPeerAsync cudaMemcpyPeerAsync
#define hipGetLastError cudaGetLastError
#define hipPeekAtLastError cudaPeekAtLastError
#define hipGetErrorString cudaGetErrorString
#define hipGetErrorName cudaGetErrorName
#define hipGetDeviceCount cudaGetDeviceCount
#define hipGetDevice cudaGetDevice
#define hipSetDevice cudaSetDevice
#define hipGetDeviceProperties cudaGetDeviceProperties
#define hipDeviceGetAttribute cudaDeviceGetAttribute
#define hipDeviceSynchronize cudaDeviceSynchronize
#define hipDeviceReset cudaDeviceReset
#define hipDeviceCanAccessPeer cudaDeviceCanAccessPeer
#define hipDeviceEnablePeerAccess cudaDeviceEnablePeerAccess
#define hipDeviceDisablePeerAccess cudaDeviceDisablePeerAccess
#define hipDriverGetVersion cudaDriverGetVersion
#define hipRuntimeGetVersion cudaRuntimeGetVersion
#define hipDeviceGetPCIBusId cudaDeviceGetPCIBusId
#define hipSetDeviceFlags cudaSetDeviceFlags
#define hipStreamCreate cudaStreamCreate
#define hipStreamCreateWithFlags cudaStreamCreateWithFlags
#define hipStreamCreateWithPriority cudaStreamCreateWithPriority
#define hipStreamDestroy cudaStreamDestroy
#define hipStreamSynchronize cudaStreamSynchronize
#define hipStreamQuery cudaStreamQuery
#define hipStreamWaitEvent cudaStreamWaitEvent
#define hipStreamAddCallback cudaStreamAddCallback
#define hipLaunchHostFunc cudaLaunchHostFunc
#define hipEventCreate cudaEventCreate
#define hipEventCreateWithFlags cudaEventCreateWithFlags
#define hipEventDestroy cudaEventDestroy
#define hipEventRecord cudaEventRecord
#define hipEventSynchronize cudaEventSynchronize
#define hipEventQuery cudaEventQuery
#define hipEventElapsedTime cudaEventElapsedTime
#define hipLaunchKernel cudaLaunchKernel
#define hipLaunchCooperativeKernel cudaLaunchCooperativeKernel
#define hipFuncGetAttributes cudaFuncGetAttributes
#define hipFuncSetAttribute cudaFuncSetAttribute
#define hipFuncSetCacheConfig cudaFuncSetCacheConfig
#define hipOccupancyMaxPotentialBlockSize cudaOccupancyMaxPotentialBlockSize
#define hipOccupancyMaxActiveBlocksPerMultiprocessor cudaOccupancyMaxActiveBlocksPerMultiprocessor
#define hipCreateTextureObject cudaCreateTextureObject
#define hipDestroyTextureObject cudaDestroyTextureObject
#define hipCreateSurfaceObject cudaCreateSurfaceObject
#define hipDestroySurfaceObject cudaDestroySurfaceObject
#define hipCreateChannelDesc cudaCreateChannelDesc

// Types and values.
#define hipError_t cudaError_t
#define hipStream_t cudaStream_t
#define hipEvent_t cudaEvent_t
#define hipMemcpyKind cudaMemcpyKind
#define hipArray_t cudaArray_t
#define hipChannelFormatDesc cudaChannelFormatDesc
#define hipResourceDesc cudaResourceDesc
#define hipTextureDesc cudaTextureDesc
#define hipTextureObject_t cudaTextureObject_t
#define hipSurfaceObject_t cudaSurfaceObject_t
#define hipExtent cudaExtent
#define hipPos cudaPos
#define hipPitchedPtr cudaPitchedPtr
#define hipMemcpy3DParms cudaMemcpy3DParms
#define hipPointerAttributes cudaPointerAttributes
#define hipFuncAttributes cudaFuncAttributes
#define hipSuccess cudaSuccess
#define hipErrorInvalidValue cudaErrorInvalidValue
#define hipErrorMemoryAllocation cudaErrorMemoryAllocation
#define hipErrorInvalidDevice cudaErrorInvalidDevice
#define hipErrorNotReady cudaErrorNotReady
#define hipErrorNotSupported cudaErrorNotSupported
#define hipErrorUnknown cudaErrorUnknown
#define hipErrorNoDevice cudaErrorNoDevice
#define hipErrorPeerAccessAlreadyEnabled cudaErrorPeerAccessAlreadyEnabled
#define hipMemcpyHostToHost cudaMemcpyHostToHost
#define hipMemcpyHostToDevice cudaMemcpyHostToDevice
#define hipMemcpyDeviceToHost cudaMemcpyDeviceToHost
#define hipMemcpyDeviceToDevice cudaMemcpyDeviceToDevice
#define hipMemcpyDefault cudaMemcpyDefault
#define hipStreamDefault cudaStreamDefault
#define hipStreamNonBlocking cudaStreamNonBlocking
#define hipEventDefault cudaEventDefault
#define hipEventBlockingSync cudaEventBlockingSync
#define hipEventDisableTiming cudaEventDisableTiming
#define hipHostRegisterDefault cudaHostRegisterDefault
#define hipMemAttachGlobal cudaMemAttachGlobal
#define hipChannelFormatKindSigned cudaChannelFormatKindSigned
#define hipChannelFormatKindUnsigned cudaChannelFormatKindUnsigned
#define hipChannelFormatKindFloat cudaChannelFormatKindFloat
#define hipResourceTypeArray cudaResourceTypeArray
#define hipResourceTypeLinear cudaResourceTypeLinear
#define hipResourceTypePitch2D cudaResourceTypePitch2D
#define hipAddressModeWrap cudaAddressModeWrap
#define hipAddressModeClamp cudaAddressModeClamp
#define hipAddressModeMirror cudaAddressModeMirror
#define hipAddressModeBorder cudaAddressModeBorder
#define hipFilterModePoint cudaFilterModePoint
#define hipFilterModeLinear cudaFilterModeLinear
#define hipReadModeElementType cudaReadModeElementType
#define hipReadModeNormalizedFloat cudaReadModeNormalizedFloat
#define hipArrayDefault cudaArrayDefault
#define hipArrayLayered cudaArrayLayered
#define hipArraySurfaceLoadStore cudaArraySurfaceLoadStore
#define hipArrayCubemap cudaArrayCubemap
#define hipBoundaryModeZero cudaBoundaryModeZero
#define hipBoundaryModeClamp cudaBoundaryModeClamp
#define hipBoundaryModeTrap cudaBoundaryModeTrap
#define hipFuncAttributeMaxDynamicSharedMemorySize cudaFuncAttributeMaxDynamicSharedMemorySize
#define hipCpuDeviceId cudaCpuDeviceId
#define hipComputeModeProhibited cudaComputeModeProhibited
#define hipComputeModeDefault cudaComputeModeDefault
#define hipMemoryTypeHost cudaMemoryTypeHost
#define hipMemoryTypeDevice cudaMemoryTypeDevice
#define hipMemoryTypeManaged cudaMemoryTypeManaged

// Other names.
#define hipHostMalloc cudaMallocHost
#define hipHostFree cudaFreeHost
#define hipDeviceProp_t cudaDeviceProp
#define hipHostMallocDefault cudaHostAllocDefault
#define hipHostMallocMapped cudaHostAllocMapped
#define hipHostMallocPortable cudaHostAllocPortable
#define hipHostMallocWriteCombined cudaHostAllocWriteCombined
#define hipDeviceAttribute_t cudaDeviceAttr
#define hipErrorOutOfMemory cudaErrorMemoryAllocation
#define hipMemcpyWithStream cudaMemcpyAsync
#define hipDeviceAttributeWarpSize cudaDevAttrWarpSize
#define hipDeviceAttributeMaxThreadsPerBlock cudaDevAttrMaxThreadsPerBlock
#define hipDeviceAttributeMultiprocessorCount cudaDevAttrMultiProcessorCount
#define hipDeviceAttributeClockRate cudaDevAttrClockRate
#define hipDeviceAttributeMaxSharedMemoryPerBlock cudaDevAttrMaxSharedMemoryPerBlock
#define hipDeviceAttributeComputeCapabilityMajor cudaDevAttrComputeCapabilityMajor
#define hipDeviceAttributeComputeCapabilityMinor cudaDevAttrComputeCapabilityMinor
#define hipDeviceAttributeCooperativeLaunch cudaDevAttrCooperativeLaunch
#define hipDeviceAttributeManagedMemory cudaDevAttrManagedMemory
#define hipDeviceAttributeConcurrentManagedAccess cudaDevAttrConcurrentManagedAccess
#define hipDeviceAttributeConcurrentKernels cudaDevAttrConcurrentKernels
#define hipDeviceAttributeMemoryClockRate cudaDevAttrMemoryClockRate
#define hipDeviceAttributeMemoryBusWidth cudaDevAttrGlobalMemoryBusWidth
#define hipDeviceAttributeL2CacheSize cudaDevAttrL2CacheSize
#define hipDeviceAttributeMaxThreadsPerMultiProcessor cudaDevAttrMaxThreadsPerMultiProcessor
#define hipDeviceAttributeTotalConstantMemory cudaDevAttrTotalConstantMemory

// Modules and hipRTC, as the driver API and NVRTC.
#define hipModule_t CUmodule
#define hipFunction_t CUfunction
#define hipDeviceptr_t CUdeviceptr
#define hiprtcProgram nvrtcProgram
#define hiprtcResult nvrtcResult
#define hiprtcCreateProgram nvrtcCreateProgram
#define hiprtcDestroyProgram nvrtcDestroyProgram
#define hiprtcCompileProgram nvrtcCompileProgram
#define hiprtcAddNameExpression nvrtcAddNameExpression
#define hiprtcGetLoweredName nvrtcGetLoweredName
#define hiprtcGetProgramLogSize nvrtcGetProgramLogSize
#define hiprtcGetProgramLog nvrtcGetProgramLog
#define hiprtcGetCodeSize nvrtcGetPTXSize
#define hiprtcGetCode nvrtcGetPTX
#define hiprtcGetErrorString nvrtcGetErrorString
inline constexpr auto HIPRTC_SUCCESS = NVRTC_SUCCESS,
                      HIPRTC_ERROR_COMPILATION = NVRTC_ERROR_COMPILATION;
inline void *const HIP_LAUNCH_PARAM_END = CU_LAUNCH_PARAM_END,
                   *const HIP_LAUNCH_PARAM_BUFFER_POINTER = CU_LAUNCH_PARAM_BUFFER_POINTER,
                   *const HIP_LAUNCH_PARAM_BUFFER_SIZE = CU_LAUNCH_PARAM_BUFFER_SIZE;
/// The driver's functions with the runtime's errors. A path may be a text of C++20's char8_t.
template <class Character>
TRIPTYCH_PASS hipError_t hipModuleLoad(hipModule_t* module, const Character* file) {
  return static_cast<hipError_t>(cuModuleLoad(module, reinterpret_cast<const char*>(file)));
}
TRIPTYCH_PASS hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  return static_cast<hipError_t>(cuModuleLoadData(module, image));
}
TRIPTYCH_PASS hipError_t hipModuleUnload(hipModule_t module) {
  return static_cast<hipError_t>(cuModuleUnload(module));
}
TRIPTYCH_PASS hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module,
                                              const char* name) {
  return static_cast<hipError_t>(cuModuleGetFunction(function, module, name));
}
TRIPTYCH_PASS hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x,
                                               unsigned grid_y, unsigned grid_z, unsigned block_x,
                                               unsigned block_y, unsigned block_z,
                                               unsigned shared_bytes, hipStream_t stream,
                                               void** parameters, void** extra) {
  return static_cast<hipError_t>(cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y,
                                                block_z, shared_bytes, stream, parameters, extra));
}

// Shuffles and votes of the whole warp.
#define TRIPTYCH_WHERE \
  triptych::cuda::plain::Location where = triptych::cuda::plain::Location::current()
#define TRIPTYCH_SHUFFLE(name, argument)                                                       \
  template <class T>                                                                           \
  TRIPTYCH_UNWATCHED __device__ T name(T value, argument by, int width = 32, TRIPTYCH_WHERE) { \
    return name##_sync(cooperative_groups::details::lanes_of_warp(), value, by, width, where); \
  }
TRIPTYCH_SHUFFLE(__shfl, int)
TRIPTYCH_SHUFFLE(__shfl_up, unsigned)
TRIPTYCH_SHUFFLE(__shfl_down, unsigned)
TRIPTYCH_SHUFFLE(__shfl_xor, int)
#undef TRIPTYCH_SHUFFLE
TRIPTYCH_UNWATCHED inline __device__ unsigned __ballot(int predicate, TRIPTYCH_WHERE) {
  return __ballot_sync(cooperative_groups::details::lanes_of_warp(), predicate, where);
}
TRIPTYCH_UNWATCHED inline __device__ int __any(int predicate, TRIPTYCH_WHERE) {
  return __any_sync(cooperative_groups::details::lanes_of_warp(), predicate, where);
}
TRIPTYCH_UNWATCHED inline __device__ int __all(int predicate, TRIPTYCH_WHERE) {
  return __all_sync(cooperative_groups::details::lanes_of_warp(), predicate, where);
}
#undef TRIPTYCH_WHERE
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
