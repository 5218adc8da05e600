// A program whose word chooses a mistake of the host's code. Each has a comment with its name.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

constexpr int kCount = 64;
constexpr size_t kBytes = kCount * sizeof(int);

__constant__ int table[4];
int plain_table[4];

__global__ void add(int* data, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += value;  // access
}

__global__ void read(cudaTextureObject_t texture, float* to) {
  *to = tex1D<float>(texture, 0.5f);  // read of a texture
}

__global__ void write(cudaSurfaceObject_t surface, int x) {
  surf2Dwrite(1.0f, surface, x, 0);  // write to a surface
}

void use_arrays(const std::string& which, float* device) {
  float host[16] = {};
  const auto floats = cudaCreateChannelDesc<float>(), ints = cudaCreateChannelDesc<int>();
  cudaArray_t array, integers;
  cudaMallocArray(&array, &floats, 4, 4);
  cudaMallocArray(&integers, &ints, 4, 4, cudaArraySurfaceLoadStore);
  cudaMemcpy2DToArray(array, 0, 0, host, 16, 16, 4, cudaMemcpyHostToDevice);
  cudaResourceDesc resource = {};
  resource.res.array.array = array;
  cudaTextureDesc how = {};
  cudaTextureObject_t texture = 0;
  cudaCreateTextureObject(&texture, &resource, &how, nullptr);
  if (which == "wrong shape") read<<<1, 1>>>(texture, device);
  if (which == "destroyed texture") {
    cudaDestroyTextureObject(texture);
    read<<<1, 1>>>(texture, device);
  }
  if (which == "plain array") {
    cudaCreateSurfaceObject(&texture, &resource);  // plain array
  }
  if (which == "wide rows") {
    cudaMemcpy2DToArray(array, 4, 0, host, 16, 16, 4, cudaMemcpyHostToDevice);  // wide rows
  }
  if (which == "freed array") {
    cudaFreeArray(array);
    cudaMemcpyToArray(array, 0, 0, host, 64, cudaMemcpyHostToDevice);  // freed array
  }
  resource.res.array.array = integers;
  how.filterMode = cudaFilterModeLinear;
  if (which == "filtered integers") {
    cudaCreateTextureObject(&texture, &resource, &how, nullptr);  // filtered integers
  }
  if (which == "beyond a surface") {
    cudaCreateSurfaceObject(&texture, &resource);
    write<<<1, 1>>>(texture, 16);
  }
  if (which == "registered twice") {
    cudaHostRegister(host, sizeof(host), 0);
    cudaHostRegister(host + 4, 16, 0);  // registered twice
  }
  if (which == "not registered") cudaHostUnregister(host);  // not registered
}

void use_graphs(const std::string& which, int* device) {
  cudaStream_t stream, other;
  cudaStreamCreate(&stream);
  cudaStreamCreate(&other);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphNode_t node = nullptr, second = nullptr;
  cudaMemAllocNodeParams allocation = {};
  allocation.bytesize = kBytes;
  cudaGraphCreate(&graph, 0);
  cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &allocation);  // graph memory
  cudaGraphInstantiate(&exec, graph);
  int* early = static_cast<int*>(allocation.dptr);
  if (which == "memory before the launch") {
    cudaMemset(early, 0, kBytes);  // memory before the launch
  }
  if (which == "allocated twice") {
    cudaGraphLaunch(exec, stream);
    cudaGraphLaunch(exec, stream);
  }
  if (which == "cycle of nodes") {
    cudaGraphAddEmptyNode(&second, graph, &node, 1);
    cudaGraphAddDependencies(graph, &second, &node, 1);
    cudaGraphInstantiate(&exec, graph);  // cycle of nodes
  }
  if (which == "destroyed graph") {
    cudaGraphExecDestroy(exec);
    cudaGraphLaunch(exec, stream);  // destroyed graph
  }
  if (which == "foreign node") {
    cudaGraphCreate(&graph, 0);
    cudaGraphAddEmptyNode(&second, graph, &node, 1);  // foreign node
  }
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  if (which == "wait in a capture") {
    add<<<1, kCount, 0, stream>>>(device, kCount, 1);
    cudaStreamSynchronize(stream);  // wait in a capture
  }
  if (which == "default stream in a capture") {
    add<<<1, kCount>>>(device, kCount, 1);  // default stream in a capture
  }
  if (which == "unjoined capture") {
    cudaEvent_t event;
    cudaEventCreate(&event);
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(other, event);
    add<<<1, kCount, 0, other>>>(device, kCount, 1);
    cudaStreamEndCapture(stream, &graph);  // unjoined capture
  }
  if (which == "changed graph") {
    cudaGraphExecUpdateResultInfo result;
    cudaStreamEndCapture(stream, &graph);
    cudaGraphExecUpdate(exec, graph, &result);  // changed graph
  }
  if (which == "no capture") cudaStreamEndCapture(other, &graph);  // no capture
}

int main(int, char** words) {
  const std::string which = words[1];
  int host[2 * kCount] = {}, *device = nullptr, *managed = nullptr, *pinned = nullptr;
  cudaMalloc(&device, kBytes);  // allocation
  cudaMallocManaged(&managed, kBytes);
  cudaMallocHost(&pinned, kBytes);
  if (which != "missing copy") cudaMemcpy(device, host, kBytes, cudaMemcpyHostToDevice);
  if (which == "nothing") add<<<1, kCount>>>(device, kCount, 1);
  if (which == "missing copy") add<<<1, kCount>>>(device, kCount, 1);
  if (which == "large copy")
    cudaMemcpy(device, host, 2 * kBytes, cudaMemcpyHostToDevice);  // large copy
  if (which == "wrong direction")
    cudaMemcpy(host, device, kBytes, cudaMemcpyHostToDevice);  // wrong direction
  if (which == "null copy")
    cudaMemcpy(nullptr, device, kBytes, cudaMemcpyDeviceToHost);  // null copy
  if (which == "large set") cudaMemset(device + 32, 0, kBytes);   // large set
  if (which == "set of host") cudaMemset(host, 0, kBytes);        // set of host
  if (which == "freed twice") {
    cudaFree(device);
    cudaFree(device);  // freed twice
  }
  if (which == "freed inside") cudaFree(device + 1);     // freed inside
  if (which == "freed from host") cudaFree(host);        // freed from host
  if (which == "freed as pinned") cudaFreeHost(device);  // freed as pinned
  if (which == "freed and copied") {
    cudaFree(device);
    cudaMemcpy(host, device, kBytes, cudaMemcpyDeviceToHost);  // freed and copied
  }
  if (which == "freed and used") {
    cudaFree(device);
    add<<<1, kCount>>>(device, kCount, 1);
  }
  if (which == "host pointer") add<<<1, kCount>>>(host, kCount, 1);
  if (which == "wrong count") add<<<2, kCount>>>(device, 2 * kCount, 1);
  if (which == "large block") add<<<1, 2048>>>(device, kCount, 1);             // large block
  if (which == "empty grid") add<<<0, 32>>>(device, kCount, 1);                // empty grid
  if (which == "large shared") add<<<1, 32, 100 * 1024>>>(device, kCount, 1);  // large shared
  if (which == "wrong symbol") cudaMemcpyToSymbol(plain_table, host, 16);      // wrong symbol
  if (which == "large symbol") cudaMemcpyToSymbol(table, host, 32);            // large symbol
  if (which == "read on host") printf("%d\n", device[3]);                      // read on host
  if (which == "copied on host") memcpy(host, device, kBytes);                 // copied on host
  if (which == "not synchronised") {
    memset(managed, 0, kBytes);
    add<<<1, kCount>>>(managed, kCount, 1);
    printf("%d\n", managed[0]);  // not synchronised
  }
  if (which == "copy not awaited") {
    cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost);
    printf("%d\n", pinned[0]);  // copy not awaited
  }
  if (which == "nothing written") {
    int* other;
    cudaMalloc(&other, kBytes);
    cudaMemcpy(host, other, kBytes, cudaMemcpyDeviceToHost);  // nothing written
  }
  if (which == "destroyed stream") {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaStreamDestroy(stream);
    cudaStreamSynchronize(stream);  // destroyed stream
  }
  if (which == "event not recorded") {
    cudaEvent_t a, b;
    float time;
    cudaEventCreate(&a);
    cudaEventCreate(&b);
    cudaEventElapsedTime(&time, a, b);  // event not recorded
  }
  if (which == "wrong device") cudaSetDevice(3);                         // wrong device
  if (which == "too much memory") cudaMalloc(&device, size_t{1} << 45);  // too much memory
  if (which == "null pointer") {
    int* null = nullptr;
    *null = 1;  // null pointer
  }
  use_arrays(which, reinterpret_cast<float*>(managed));
  use_graphs(which, device);
  if (which == "exit") exit(3);
  if (which == "abort") abort();
  if (which == "assert") assert(which.empty());
  if (which == "exception") throw std::runtime_error("out of words");
  return 0;
}
