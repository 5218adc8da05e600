// Blocks that only run under --sample give the same results: arrays, turns, shuffles and the heap.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

#define BLOCKS 10
#define THREADS 64

__device__ int* cells[BLOCKS];

__global__ void fill(float* x, bool races) {
  x[blockIdx.x * THREADS + threadIdx.x] = threadIdx.x;
  if (races && blockIdx.x == 1) x[0] = threadIdx.x;  // race
}

/// Each block reads what the block behind it wrote.
__global__ void mirror(const float* x, float* y) {
  __shared__ float tile[THREADS];
  const int behind = (blockIdx.x + 1) % gridDim.x;
  tile[threadIdx.x] = x[behind * THREADS + threadIdx.x];
  __syncthreads();
  const float value = tile[THREADS - 1 - threadIdx.x];
  y[blockIdx.x * THREADS + threadIdx.x] = value + __shfl_xor_sync(~0u, value, 1);
}

/// The first warp of a block waits for the second one.
__global__ void wait(int* flags, int* seen) {
  int* flag = flags + blockIdx.x;
  if (threadIdx.x == 0) {
    while (atomicAdd(flag, 0) == 0) {
    }
    seen[blockIdx.x] = 1;
  }
  if (threadIdx.x == 32) atomicExch(flag, 1);
}

__global__ void allocate() {
  cells[blockIdx.x] = (int*)malloc(sizeof(int));
  *cells[blockIdx.x] = blockIdx.x;
}

__global__ void release(int* values) {
  int* cell = cells[(blockIdx.x + 1) % gridDim.x];
  values[blockIdx.x] = *cell;
  free(cell);
}

__global__ void store_behind_null(int* array) {
  if (blockIdx.x == 1) array[threadIdx.x] = 1;  // null
}

int main(int count, char** words) {
  const bool races = count > 1 && strcmp(words[1], "race") == 0;
  if (count > 1 && !races) store_behind_null<<<2, 1>>>(nullptr);
  const int size = BLOCKS * THREADS;
  float *x, *y;
  int *flags, *seen, *values;
  cudaMalloc(&x, size * sizeof(float));
  cudaMalloc(&y, size * sizeof(float));
  cudaMalloc(&flags, BLOCKS * sizeof(int));
  cudaMalloc(&seen, BLOCKS * sizeof(int));
  cudaMalloc(&values, BLOCKS * sizeof(int));
  cudaMemset(flags, 0, BLOCKS * sizeof(int));
  fill<<<BLOCKS, THREADS>>>(x, races);
  mirror<<<BLOCKS, THREADS>>>(x, y);
  wait<<<BLOCKS, THREADS>>>(flags, seen);
  allocate<<<BLOCKS, 1>>>();
  release<<<BLOCKS, 1>>>(values);
  std::vector<float> mirrored(size);
  std::vector<int> waited(BLOCKS), numbers(BLOCKS);
  cudaMemcpy(mirrored.data(), y, size * sizeof(float), cudaMemcpyDeviceToHost);
  cudaMemcpy(waited.data(), seen, BLOCKS * sizeof(int), cudaMemcpyDeviceToHost);
  cudaMemcpy(numbers.data(), values, BLOCKS * sizeof(int), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < size; ++i) {
    const int mirror_of = THREADS - 1 - i % THREADS;
    wrong += mirrored[i] != mirror_of + (mirror_of ^ 1);
  }
  for (int i = 0; i < BLOCKS; ++i) wrong += (waited[i] != 1) + (numbers[i] != (i + 1) % BLOCKS);
  printf("%d wrong\n", wrong);
}
