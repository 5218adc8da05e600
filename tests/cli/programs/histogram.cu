// Counts bytes: private histograms in shared memory, merged with atomic additions.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>

#define BINS 64

__device__ unsigned int launches;

__global__ void histogram(const uchar4* data, int count, unsigned* bins) {
  __shared__ unsigned local[BINS];
  for (int i = threadIdx.x; i < BINS; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const uchar4 four = data[i];
    atomicAdd(&local[four.x % BINS], 1u);
    atomicAdd(&local[four.y % BINS], 1u);
    atomicAdd(&local[four.z % BINS], 1u);
    atomicAdd(&local[four.w % BINS], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < BINS; i += blockDim.x) {
    if (local[i] > 0) atomicAdd(bins + i, local[i]);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) atomicCAS_system(&launches, 0u, 1u);
}

int main() {
  const int bytes = 4096;
  cudaSetDeviceFlags(cudaDeviceBlockingSync);
  uint8_t* host = new uint8_t[bytes];
  for (int i = 0; i < bytes; ++i) host[i] = (uint8_t)(i * i % 64);
  uint8_t* data;
  unsigned *bins, result[BINS], expected[BINS] = {}, count = 7;
  cudaMalloc((void**)&data, bytes);
  cudaMalloc((void**)&bins, sizeof(result));
  cudaMemcpy(data, host, bytes, cudaMemcpyHostToDevice);
  cudaMemset(bins, 0, sizeof(result));
  histogram<<<dim3(4), dim3(64)>>>((const uchar4*)data, bytes / 4, bins);
  cudaMemcpy(result, bins, sizeof(result), cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(&count, launches, sizeof(count));
  for (int i = 0; i < bytes; ++i) ++expected[host[i] % BINS];
  int wrong = 0;
  for (int i = 0; i < BINS; ++i) wrong += result[i] != expected[i];
  printf("%d bins differ, %u launch\n", wrong, count);
  delete[] host;
  cudaFree(data);
  cudaFree(bins);
  return wrong;
}
