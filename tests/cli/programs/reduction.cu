// Sums an array in two passes, with shared memory of the launch's size and warp shuffles.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

template <typename T, unsigned kBlock>
__global__ void __launch_bounds__(kBlock) reduce(const T* __restrict__ in, T* out, unsigned n) {
  extern __shared__ unsigned char raw[];
  T* sums = reinterpret_cast<T*>(raw);
  T sum = 0;
  for (unsigned i = blockIdx.x * kBlock + threadIdx.x; i < n; i += kBlock * gridDim.x) sum += in[i];
#pragma unroll
  for (int offset = warpSize / 2; offset > 0; offset /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (threadIdx.x % warpSize == 0) sums[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x < warpSize) {
    sum = threadIdx.x < kBlock / warpSize ? sums[threadIdx.x] : 0;
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
      sum += __shfl_down_sync(~0u, sum, offset);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  }
}

template <typename T>
T sum(const T* host, unsigned n, const char* name) {
  const unsigned blocks = 4, threads = 128;
  T *in, *partial, result;
  cudaMalloc(&in, n * sizeof(T));
  cudaMalloc(&partial, blocks * sizeof(T));
  cudaMemcpy(in, host, n * sizeof(T), cudaMemcpyHostToDevice);
  reduce<T, threads><<<blocks, threads, threads / 32 * sizeof(T)>>>(in, partial, n);
  reduce<T, 32><<<1, 32, sizeof(T)>>>(partial, partial, blocks);
  cudaMemcpy(&result, partial, sizeof(T), cudaMemcpyDeviceToHost);
  cudaFree(in);
  cudaFree(partial);
  return result;
}

int main() {
  const unsigned n = 1 << 12;
  int* whole = (int*)malloc(n * sizeof(int));
  double* real = (double*)malloc(n * sizeof(double));
  for (unsigned i = 0; i < n; ++i) real[i] = 0.5 * (whole[i] = i);
  printf("int %d\n", sum(whole, n, "int"));
  printf("double %.1f\n", sum(real, n, "double"));
  free(whole);
  free(real);
}
