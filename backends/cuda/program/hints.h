// Calls of CUDA's runtime that advise a GPU and change no result: policies of the L2 cache, places
// of managed memory, peers, and memory pools. Memory of a pool is memory of cudaMalloc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/program/driver_results.h"

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
enum cudaAccessProperty {
  cudaAccessPropertyNormal,
  cudaAccessPropertyStreaming,
  cudaAccessPropertyPersisting
};
struct cudaAccessPolicyWindow {
  void* base_ptr;
  size_t num_bytes;
  float hitRatio;
  cudaAccessProperty hitProp, missProp;
};
enum cudaStreamAttrID {
  cudaStreamAttributeAccessPolicyWindow = 1,
  cudaStreamAttributeSynchronizationPolicy = 3,
  cudaStreamAttributePriority = 8
};
union cudaStreamAttrValue {
  cudaAccessPolicyWindow accessPolicyWindow;
  int syncPolicy, priority;
};
inline cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID,
                                          const cudaStreamAttrValue*) {
  return cudaSuccess;
}
inline constexpr auto cudaLimitMaxL2FetchGranularity = static_cast<cudaLimit>(5),
                      cudaLimitPersistingL2CacheSize = static_cast<cudaLimit>(6);
inline cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }

using cudaMemPool_t = struct CUmemPoolHandle_st*;
enum cudaMemPoolAttr {
  cudaMemPoolReuseFollowEventDependencies = 1,
  cudaMemPoolReuseAllowOpportunistic,
  cudaMemPoolReuseAllowInternalDependencies,
  cudaMemPoolAttrReleaseThreshold
};
/// The only pool of the only device.
inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  *pool = reinterpret_cast<cudaMemPool_t>(1);
  return cudaSetDevice(device);
}
inline cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
template <class T>
TRIPTYCH_PASS cudaError_t cudaMallocFromPoolAsync(T** pointer, size_t bytes, cudaMemPool_t,
                                                  cudaStream_t stream) {
  return cudaMallocAsync(pointer, bytes, stream);
}

// Places as CUDA 13 names them.
TRIPTYCH_PASS cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice,
                                        cudaMemLocation at) {
  return cudaMemAdvise(pointer, bytes, advice,
                       at.type == cudaMemLocationTypeDevice ? at.id : cudaCpuDeviceId);
}
TRIPTYCH_PASS cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes,
                                               cudaMemLocation at, unsigned,
                                               cudaStream_t stream = 0) {
  return cudaMemPrefetchAsync(
      pointer, bytes, at.type == cudaMemLocationTypeDevice ? at.id : cudaCpuDeviceId, stream);
}

enum cudaDeviceP2PAttr {
  cudaDevP2PAttrPerformanceRank = 1,
  cudaDevP2PAttrAccessSupported,
  cudaDevP2PAttrNativeAtomicSupported,
  cudaDevP2PAttrCudaArrayAccessSupported
};
/// An error, as for every question about a peer of the only device.
TRIPTYCH_PASS cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int other) {
  *value = 0;
  return cudaDeviceEnablePeerAccess(other, 0);
}
// NOLINTEND(readability-identifier-naming)
