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
/// The only pool of a device: its handle is one more than the device.
inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  *pool = reinterpret_cast<cudaMemPool_t>(static_cast<size_t>(device) + 1);
  int size = 0;
  return cudaDeviceGetAttribute(&size, cudaDevAttrWarpSize, device);
}
inline int triptychDeviceOf(cudaMemPool_t pool) {
  return static_cast<int>(reinterpret_cast<size_t>(pool)) - 1;
}
inline cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
enum cudaMemAccessFlags {
  cudaMemAccessFlagsProtNone = 0,
  cudaMemAccessFlagsProtRead = 1,
  cudaMemAccessFlagsProtReadWrite = 3
};
struct cudaMemAccessDesc {
  cudaMemLocation location;
  cudaMemAccessFlags flags;
};
TRIPTYCH_PASS cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list,
                                               size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const auto error = triptychPoolAccess(triptychDeviceOf(pool), list[i].location.id,
                                          list[i].flags != cudaMemAccessFlagsProtNone);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
template <class T>
TRIPTYCH_PASS cudaError_t cudaMallocFromPoolAsync(T** pointer, size_t bytes, cudaMemPool_t pool,
                                                  cudaStream_t stream) {
  int current = 0;
  cudaGetDevice(&current);
  auto error = cudaSetDevice(triptychDeviceOf(pool));
  if (error != cudaSuccess) return error;
  error = cudaMallocAsync(pointer, bytes, stream);
  cudaSetDevice(current);
  return error;
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
TRIPTYCH_PASS cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute,
                                                    int device, int other) {
  return triptychPeerAttribute(value, attribute, device, other);
}
// NOLINTEND(readability-identifier-naming)
