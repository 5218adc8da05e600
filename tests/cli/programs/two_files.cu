// The part with main of a program of three files.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

int expected_sum(int n, int value);  // two_files_host.cpp
std::vector<int> copied(const int* device, int n);
void add_on_device(int* data, int n, int value);  // two_files_device.cu
__device__ int twice(int value);

__global__ void start(int* data, int n) {
  const int i = threadIdx.x;
  if (i < n) data[i] = twice(i);
}

int main() {
  int *data, host[32];
  cudaMalloc(&data, sizeof(host));
  start<<<1, 32>>>(data, 32);
  add_on_device(data, 32, 100);
  cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost);
  int sum = 0;
  for (int value : copied(data, 32)) sum += value;
  printf("%d %d %d\n", host[0], host[31], sum - expected_sum(32, 100));
  cudaFree(data);
}
