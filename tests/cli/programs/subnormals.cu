// Subnormal numbers are kept, as by nvcc without -ftz=true.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdio>

#define BLOCKS 2
#define THREADS 64

/// The first thread of each block stores after a barrier, at which threads change.
__global__ void halve(float* floats, double* doubles, float normal, double wide) {
  __shared__ float half[THREADS];
  half[threadIdx.x] = normal * 0.5f;
  __syncthreads();
  if (threadIdx.x > 0) return;
  floats[blockIdx.x] = half[1] + half[2] * 0.25f;
  doubles[blockIdx.x] = wide * 0.5;
}

int main() {
  float* floats;
  double* doubles;
  cudaMalloc(&floats, BLOCKS * sizeof(float));
  cudaMalloc(&doubles, BLOCKS * sizeof(double));
  halve<<<BLOCKS, THREADS>>>(floats, doubles, FLT_MIN, DBL_MIN);
  float f[BLOCKS];
  double d[BLOCKS];
  cudaMemcpy(f, floats, sizeof(f), cudaMemcpyDeviceToHost);
  cudaMemcpy(d, doubles, sizeof(d), cudaMemcpyDeviceToHost);
  for (int i = 0; i < BLOCKS; ++i)
    printf("%d %d\n", f[i] == FLT_MIN * 0.625f, d[i] == DBL_MIN * 0.5);
}
