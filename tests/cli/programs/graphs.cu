// CUDA graphs: nodes one by one, captured streams, memory of a graph, conditions, updates.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                      \
  do {                                                                   \
    const cudaError_t error = call;                                      \
    if (error != cudaSuccess) {                                          \
      std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(error)); \
      std::exit(1);                                                      \
    }                                                                    \
  } while (0)

constexpr int kCount = 64;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void add(int* to, const int* from, int value) {
  to[threadIdx.x] += from[threadIdx.x] + value;
}

__global__ void count_down(int* left, cudaGraphConditionalHandle handle) {
  *left -= 1;
  cudaGraphSetConditional(handle, *left != 0);
}

void CUDART_CB note_call(void* calls) { ++*static_cast<int*>(calls); }

cudaKernelNodeParams kernel_node(void** arguments) {
  cudaKernelNodeParams node = {};
  node.func = (void*)add;
  node.gridDim = dim3(1);
  node.blockDim = dim3(kCount);
  node.kernelParams = arguments;
  return node;
}

// to = 0; from = host; to += from + 1, two times: once in a child graph.
void add_nodes(cudaStream_t stream, int* to, int* from, int* host, int* result) {
  cudaGraph_t graph, child, clone;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphCreate(&child, 0));
  cudaGraphNode_t set, copy, kernel, nested, back, call, inside;
  cudaMemsetParams memset = {to, 0, 0, 4, kCount, 1};
  CHECK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &memset));
  cudaMemcpy3DParms parameters = {};
  parameters.srcPtr = make_cudaPitchedPtr(host, kBytes, kCount, 1);
  parameters.dstPtr = make_cudaPitchedPtr(from, kBytes, kCount, 1);
  parameters.extent = make_cudaExtent(kBytes, 1, 1);
  parameters.kind = cudaMemcpyHostToDevice;
  CHECK(cudaGraphAddMemcpyNode(&copy, graph, nullptr, 0, &parameters));
  int value = 1;
  void* arguments[] = {&to, &from, &value};
  auto node = kernel_node(arguments);
  const cudaGraphNode_t both[] = {set, copy};
  CHECK(cudaGraphAddKernelNode(&kernel, graph, both, 2, &node));
  CHECK(cudaGraphAddKernelNode(&inside, child, nullptr, 0, &node));
  CHECK(cudaGraphAddChildGraphNode(&nested, graph, &kernel, 1, child));
  CHECK(cudaGraphAddMemcpyNode1D(&back, graph, &nested, 1, result, to, kBytes,
                                 cudaMemcpyDeviceToHost));
  int calls = 0;
  cudaHostNodeParams host_node = {note_call, &calls};
  CHECK(cudaGraphAddHostNode(&call, graph, nullptr, 0, &host_node));
  CHECK(cudaGraphAddDependencies(graph, &back, &call, 1));
  CHECK(cudaGraphClone(&clone, graph));
  size_t nodes = 0, roots = 0, after = 0;
  CHECK(cudaGraphGetNodes(clone, nullptr, &nodes));
  CHECK(cudaGraphGetRootNodes(clone, nullptr, &roots));
  cudaGraphNode_t copied;
  CHECK(cudaGraphNodeFindInClone(&copied, kernel, clone));
  CHECK(cudaGraphNodeGetDependencies(copied, nullptr, &after));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, clone, nullptr, nullptr, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphDestroy(child));
  value = 100;  // a node has copies of the values
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  const int first = result[2];
  CHECK(cudaGraphExecKernelNodeSetParams(exec, copied, &node));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  std::printf("%zu nodes, %zu roots, %zu after; %d %d, %d calls\n", nodes, roots, after, first,
              result[2], calls);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(clone));
}

cudaGraph_t capture(cudaStream_t stream, cudaStream_t side, int* to, int* from, int* host,
                    int value) {
  cudaEvent_t fork, join;
  CHECK(cudaEventCreate(&fork));
  CHECK(cudaEventCreate(&join));
  cudaGraph_t graph;
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(side, fork));
  CHECK(cudaMemsetAsync(to, 0, kBytes, side));
  CHECK(cudaEventRecord(join, side));
  CHECK(cudaStreamIsCapturing(side, &status));
  CHECK(cudaMemcpyAsync(from, host, kBytes, cudaMemcpyHostToDevice, stream));
  CHECK(cudaStreamWaitEvent(stream, join));
  add<<<1, kCount, 0, stream>>>(to, from, value);
  int* temporary;
  CHECK(cudaMallocAsync(&temporary, kBytes, stream));
  CHECK(cudaMemcpyAsync(temporary, to, kBytes, cudaMemcpyDeviceToDevice, stream));
  add<<<1, kCount, 0, stream>>>(to, temporary, 0);
  CHECK(cudaFreeAsync(temporary, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  if (status != cudaStreamCaptureStatusActive) std::printf("the second stream is not captured\n");
  CHECK(cudaEventDestroy(fork));
  CHECK(cudaEventDestroy(join));
  return graph;
}

void capture_streams(cudaStream_t stream, int* to, int* from, int* host, int* result) {
  cudaStream_t side;
  CHECK(cudaStreamCreate(&side));
  cudaGraph_t graph = capture(stream, side, to, from, host, 1);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < 2; ++i) CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaMemcpy(result, to, kBytes, cudaMemcpyDeviceToHost));
  const int first = result[2];
  cudaGraph_t other = capture(stream, side, to, from, host, 5);
  cudaGraphExecUpdateResultInfo information;
  CHECK(cudaGraphExecUpdate(exec, other, &information));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaMemcpy(result, to, kBytes, cudaMemcpyDeviceToHost));
  std::printf("captured %d, updated %d\n", first, result[2]);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphDestroy(other));
  CHECK(cudaStreamDestroy(side));
}

// Memory that lives longer than the launch, and a loop.
void use_memory_and_conditions(cudaStream_t stream, int* host) {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams allocation = {};
  allocation.bytesize = kBytes;
  cudaGraphNode_t allocate, copy, loop, inside;
  CHECK(cudaGraphAddMemAllocNode(&allocate, graph, nullptr, 0, &allocation));
  CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &allocate, 1, allocation.dptr, host, kBytes,
                                 cudaMemcpyHostToDevice));
  cudaGraphConditionalHandle handle;
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams parameters = {cudaGraphNodeTypeConditional};
  parameters.conditional.handle = handle;
  parameters.conditional.type = cudaGraphCondTypeWhile;
  parameters.conditional.size = 1;
  CHECK(cudaGraphAddNode(&loop, graph, &copy, nullptr, 1, &parameters));
  int* last = static_cast<int*>(allocation.dptr) + kCount - 1;
  void* arguments[] = {&last, &handle};
  cudaKernelNodeParams node = {};
  node.func = (void*)count_down;
  node.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&inside, parameters.conditional.phGraph_out[0], nullptr, 0, &node));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph));
  size_t used[3];
  int left[2];
  CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used[0]));
  for (int i = 0; i < 2; ++i) {
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used[1]));
    CHECK(cudaMemcpy(&left[i], last, sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(allocation.dptr));
  }
  CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used[2]));
  std::printf("left %d %d, bytes %zu %zu %zu\n", left[0], left[1], used[0], used[1], used[2]);
}

int main() {
  std::vector<int> host(kCount), result(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = i;
  int *to, *from;
  cudaStream_t stream;
  CHECK(cudaMalloc(&to, kBytes));
  CHECK(cudaMalloc(&from, kBytes));
  CHECK(cudaStreamCreate(&stream));
  add_nodes(stream, to, from, host.data(), result.data());
  capture_streams(stream, to, from, host.data(), result.data());
  host[kCount - 1] = 5;
  use_memory_and_conditions(stream, host.data());
}
