// The host counts in managed memory while a kernel may count there, too.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>

__global__ void count(int* counter) { atomicAdd_system(counter, 1); }

int main(int argc, char**) {
  int* counter;
  cudaMallocManaged(&counter, sizeof(int));
  *counter = 0;
  count<<<2, 32>>>(counter);
  if (argc > 1) *counter += 1;  // no atomic operation
  for (int i = 0; i < 10; ++i) __sync_fetch_and_add(counter, 1);
  cudaDeviceSynchronize();
  std::printf("%d\n", *counter);
}
