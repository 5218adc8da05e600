// A sample of the blocks of many small launches: their numbers go on from launch to launch.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define BLOCKS 3
#define THREADS 64
#define LAUNCHES 10

/// Two threads of different warps store to one place in block `racing`.
__global__ void add(int* sums, int racing) {
  sums[blockIdx.x * THREADS + threadIdx.x] += 1;
  if (blockIdx.x == racing && threadIdx.x % 32 == 0) sums[BLOCKS * THREADS] = threadIdx.x;  // race
}

__global__ void read(const int* sums, int* copy) { *copy = sums[THREADS]; }

int main(int count, char** words) {
  const int racing_launch = count > 1 ? atoi(words[1]) : -1;
  int *sums, *copy, host[2 * THREADS];
  cudaMalloc(&sums, (BLOCKS * THREADS + 1) * sizeof(int));
  cudaMalloc(&copy, sizeof(int));
  cudaMemset(sums, 0, BLOCKS * THREADS * sizeof(int));
  for (int i = 0; i < LAUNCHES; ++i) {
    add<<<BLOCKS, THREADS>>>(sums, i == racing_launch ? 1 : -1);
    read<<<1, 1>>>(sums, copy);
  }
  cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost);
  cudaMemcpy(host, copy, sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d %d\n", host[0], host[THREADS + 1]);
}
