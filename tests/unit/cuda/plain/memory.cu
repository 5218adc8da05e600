// Accesses whose counts have closed forms.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

__global__ void copy(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];
}

/// A warp reads a column of a matrix of 32 columns.
__global__ void column(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x * 32]; }

__global__ void stride(const float* x, float* y, int step) {
  y[threadIdx.x] = x[threadIdx.x * step];
}

__global__ void vectors(const float4* x, float4* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = x[i];
  v.x *= 2;
  v.w += 1;
  y[i] = v;
}

__global__ void cached(const float* __restrict__ x, float* y) {
  y[threadIdx.x] = __ldg(x + threadIdx.x) + __ldg(&x[0]);
}

/// Three floats have no instruction of their own: each is loaded by itself.
__global__ void triples(const float3* x, float* y) {
  const float3 v = x[threadIdx.x];
  y[threadIdx.x] = v.x + v.y + v.z;
}

/// A tile is written by rows and read by columns, a row kPitch elements after the other.
template <int kPitch>
__global__ void transposed(const float* x, float* y) {
  __shared__ float tile[32][kPitch];
  tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  y[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
template __global__ void transposed<32>(const float*, float*);
template __global__ void transposed<33>(const float*, float*);

__global__ void dynamic(const float* x, float* y) {
  extern __shared__ float part[];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
}

/// Half of each warp takes the one way, half the other.
__global__ void parted(float* y) {
  float value = threadIdx.x;
  if (threadIdx.x % 2 == 0) {
    value = value * value;
  } else {
    value = -value;
  }
  y[threadIdx.x] = value;
}

__constant__ float mask[3];

__global__ void filtered(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 3; ++k) {
    if (i + k < n) sum += mask[k] * x[i + k];
  }
  if (i < n) y[i] = sum;
}
