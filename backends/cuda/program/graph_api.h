// CUDA graphs as a user's program calls them: types that hold a dim3, and forms of older and newer
// versions of CUDA.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOLINTBEGIN(readability-identifier-naming): CUDA's own names.
struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void **kernelParams, **extra;
};
struct cudaChildGraphNodeParams {
  cudaGraph_t graph;
};
struct cudaEventNodeParams {
  cudaEvent_t event;
};
struct cudaMemFreeNodeParams {
  void* dptr;
};
struct cudaMemcpyNodeParams {
  int flags, reserved[3];
  cudaMemcpy3DParms copyParams;
};
struct cudaGraphNodeParams {
  cudaGraphNodeType type;
  int reserved[3];
  union {
    long long rest[29];
    struct {
      void* func;
      uint3 gridDim, blockDim;
      unsigned sharedMemBytes;
      void **kernelParams, **extra;
    } kernel;
    cudaMemcpyNodeParams memcpy;
    cudaMemsetParams memset;
    cudaHostNodeParams host;
    cudaChildGraphNodeParams graph;
    cudaEventNodeParams eventWait, eventRecord;
    cudaMemAllocNodeParams alloc;
    cudaMemFreeNodeParams free;
    cudaConditionalNodeParams conditional;
  };
};
struct cudaGraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
struct cudaGraphExecUpdateResultInfo {
  cudaGraphExecUpdateResult result;
  cudaGraphNode_t errorNode, errorFromNode;
};
inline constexpr unsigned cudaGraphInstantiateFlagAutoFreeOnLaunch = 1,
                          cudaGraphInstantiateFlagUpload = 2,
                          cudaGraphInstantiateFlagDeviceLaunch = 4,
                          cudaGraphInstantiateFlagUseNodePriority = 8;

template <class Parameters>
TRIPTYCH_PASS KernelNode triptych_kernel_node(const Parameters& of) {
  return {of.func,
          {of.gridDim.x, of.gridDim.y, of.gridDim.z},
          {of.blockDim.x, of.blockDim.y, of.blockDim.z},
          of.sharedMemBytes,
          of.kernelParams,
          false};
}
TRIPTYCH_PASS cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                 const cudaGraphNode_t* after, size_t count,
                                                 const cudaKernelNodeParams* parameters) {
  const auto kernel = triptych_kernel_node(*parameters);
  return triptychAddKernelNode(node, graph, after, count, &kernel);
}
TRIPTYCH_PASS cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec,
                                                           cudaGraphNode_t node,
                                                           const cudaKernelNodeParams* parameters) {
  const auto kernel = triptych_kernel_node(*parameters);
  return triptychSetKernelNode(exec, node, &kernel);
}
TRIPTYCH_PASS cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                                       const cudaKernelNodeParams* parameters) {
  return cudaGraphExecKernelNodeSetParams(nullptr, node, parameters);
}
TRIPTYCH_PASS cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                                       const cudaMemcpy3DParms* parameters) {
  return cudaGraphExecMemcpyNodeSetParams(nullptr, node, parameters);
}
TRIPTYCH_PASS cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                                       const cudaMemsetParams* parameters) {
  return cudaGraphExecMemsetNodeSetParams(nullptr, node, parameters);
}
TRIPTYCH_PASS cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                                     const cudaHostNodeParams* parameters) {
  return cudaGraphExecHostNodeSetParams(nullptr, node, parameters);
}
TRIPTYCH_PASS cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* after, size_t count,
                                           cudaGraphNodeParams* of) {
  switch (of->type) {
    case cudaGraphNodeTypeKernel: {
      const auto kernel = triptych_kernel_node(of->kernel);
      return triptychAddKernelNode(node, graph, after, count, &kernel);
    }
    case cudaGraphNodeTypeMemcpy:
      return cudaGraphAddMemcpyNode(node, graph, after, count, &of->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
      return cudaGraphAddMemsetNode(node, graph, after, count, &of->memset);
    case cudaGraphNodeTypeHost:
      return cudaGraphAddHostNode(node, graph, after, count, &of->host);
    case cudaGraphNodeTypeGraph:
      return cudaGraphAddChildGraphNode(node, graph, after, count, of->graph.graph);
    case cudaGraphNodeTypeEmpty:
      return cudaGraphAddEmptyNode(node, graph, after, count);
    case cudaGraphNodeTypeWaitEvent:
      return cudaGraphAddEventWaitNode(node, graph, after, count, of->eventWait.event);
    case cudaGraphNodeTypeEventRecord:
      return cudaGraphAddEventRecordNode(node, graph, after, count, of->eventRecord.event);
    case cudaGraphNodeTypeMemAlloc:
      return cudaGraphAddMemAllocNode(node, graph, after, count, &of->alloc);
    case cudaGraphNodeTypeMemFree:
      return cudaGraphAddMemFreeNode(node, graph, after, count, of->free.dptr);
    case cudaGraphNodeTypeConditional:
      return triptychAddConditionalNode(node, graph, after, count, &of->conditional);
  }
  return cudaErrorInvalidValue;
}
TRIPTYCH_PASS cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* after, const cudaGraphEdgeData*,
                                           size_t count, cudaGraphNodeParams* parameters) {
  return cudaGraphAddNode(node, graph, after, count, parameters);
}

TRIPTYCH_PASS cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                               unsigned long long = 0) {
  return triptychInstantiate(exec, graph);
}
TRIPTYCH_PASS cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                               cudaGraphNode_t*, char*, size_t) {
  return triptychInstantiate(exec, graph);
}
TRIPTYCH_PASS cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                        unsigned long long = 0) {
  return triptychInstantiate(exec, graph);
}
TRIPTYCH_PASS cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                              cudaGraphNode_t*, cudaGraphExecUpdateResult* result) {
  return triptychUpdateGraph(exec, graph, result);
}
TRIPTYCH_PASS cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                              cudaGraphExecUpdateResultInfo* information) {
  *information = {};
  return triptychUpdateGraph(exec, graph, &information->result);
}

TRIPTYCH_PASS cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                                        const cudaGraphNode_t* after,
                                                        const cudaGraphEdgeData*, size_t count,
                                                        cudaStreamCaptureMode) {
  return triptychBeginCapture(stream, graph, after, count);
}
TRIPTYCH_PASS cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                                   cudaStreamCaptureStatus* status,
                                                   unsigned long long* number = nullptr,
                                                   cudaGraph_t* graph = nullptr,
                                                   const cudaGraphNode_t** after = nullptr,
                                                   size_t* count = nullptr) {
  return triptychCaptureInfo(stream, status, number, graph, after, count);
}
TRIPTYCH_PASS cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                                   cudaStreamCaptureStatus* status,
                                                   unsigned long long* number, cudaGraph_t* graph,
                                                   const cudaGraphNode_t** after,
                                                   const cudaGraphEdgeData** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return triptychCaptureInfo(stream, status, number, graph, after, count);
}
TRIPTYCH_PASS cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                                cudaStreamCaptureStatus* status) {
  return triptychCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr);
}
TRIPTYCH_PASS cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                              cudaGraphNode_t* after, size_t count,
                                                              unsigned flags = 0) {
  return triptychUpdateCapture(stream, after, count, flags);
}
TRIPTYCH_PASS cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
                                                              cudaGraphNode_t* after,
                                                              const cudaGraphEdgeData*,
                                                              size_t count, unsigned flags = 0) {
  return triptychUpdateCapture(stream, after, count, flags);
}
template <class T>
TRIPTYCH_PASS cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t stream) {
  return triptychMallocAsync(triptych_untyped(pointer), bytes, triptych_element<T>, stream);
}

/// Sets the value of a conditional node. A handle is the value's address.
TRIPTYCH_UNWATCHED inline __device__ void cudaGraphSetConditional(cudaGraphConditionalHandle handle,
                                                                  unsigned value) {
  *reinterpret_cast<unsigned*>(handle) = value;
}
// NOLINTEND(readability-identifier-naming)
