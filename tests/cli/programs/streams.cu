// Copies and kernels in several streams, with pinned memory, events and a callback.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <deque>

__global__ void square(int* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= data[i];
}

void CUDART_CB finished(cudaStream_t, cudaError_t status, void* data) {
  if (status == cudaSuccess) ++*static_cast<int*>(data);
}

// Kernels read a clock of their own.
__global__ void wait(long* waited) {
  const clock_t begin = clock();
  while (clock() - begin < 10000) continue;
  *waited = clock() - begin >= 10000;
}

// Advice changes no result: a policy of the L2 cache, a pool of memory.
int advised(cudaStream_t stream) {
  cudaStreamAttrValue value = {};
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1 << 20);
  cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
  cudaMemPool_t pool;
  cudaDeviceGetDefaultMemPool(&pool, 0);
  long *waited, host = 0;
  cudaMallocFromPoolAsync(&waited, sizeof(long), pool, stream);
  wait<<<1, 1, 0, stream>>>(waited);
  cudaMemcpyAsync(&host, waited, sizeof(long), cudaMemcpyDeviceToHost, stream);
  cudaFreeAsync(waited, stream);
  std::deque<int> results(3, int(host));
  return results.back();
}

int main() {
  const int streams = 3, n = 256;
  int *host = nullptr, *device = nullptr, *mapped = nullptr, *alias = nullptr, calls = 0;
  cudaMallocHost((void**)&host, streams * n * sizeof(int));
  cudaHostAlloc(&mapped, n * sizeof(int), cudaHostAllocMapped);
  cudaHostGetDevicePointer(&alias, mapped, 0);
  cudaMalloc(&device, streams * n * sizeof(int));
  for (int i = 0; i < streams * n; ++i) host[i] = i % 100;
  for (int i = 0; i < n; ++i) mapped[i] = 3;
  cudaStream_t stream[streams];
  cudaEvent_t done;
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  for (int s = 0; s < streams; ++s) {
    cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking);
    int *from = host + s * n, *to = device + s * n;
    cudaMemcpyAsync(to, from, n * sizeof(int), cudaMemcpyHostToDevice, stream[s]);
    square<<<n / 64, 64, 0, stream[s]>>>(to, n);
    cudaMemcpyAsync(from, to, n * sizeof(int), cudaMemcpyDeviceToHost, stream[s]);
    cudaStreamAddCallback(stream[s], finished, &calls, 0);
  }
  square<<<n / 64, 64>>>(alias, n);
  cudaEventRecord(done, stream[2]);
  cudaStreamWaitEvent(stream[0], done, 0);
  for (int s = 0; s < streams; ++s) cudaStreamSynchronize(stream[s]);
  int wrong = advised(stream[1]) != 1;
  for (int i = 0; i < streams * n; ++i) wrong += host[i] != (i % 100) * (i % 100);
  printf("%d wrong, %d calls, mapped %d, %s\n", wrong, calls, mapped[n - 1],
         cudaEventQuery(done) == cudaSuccess ? "ready" : "not ready");
  for (int s = 0; s < streams; ++s) cudaStreamDestroy(stream[s]);
  cudaEventDestroy(done);
  cudaFree(device);
  cudaFreeHost(host);
  cudaFreeHost(mapped);
}
