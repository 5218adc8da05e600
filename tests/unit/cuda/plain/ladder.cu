// The first steps of the ladder of matrix products (backends/cuda/kernels/matmul.cu) in plain CUDA:
// the same accesses in the same order, so that the counts must be the same.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

constexpr int kTile = 32;

__global__ void naive(const float* a, const float* b, float* y, const long long* offsets,
                      long long rows, long long columns, long long depth) {
  const long long m = blockIdx.x * blockDim.x + threadIdx.x;
  const long long n = blockIdx.y * blockDim.y + threadIdx.y;
  if (m >= rows || n >= columns) return;
  a += offsets[0];
  b += offsets[1];
  float sum = 0;
  for (long long k = 0; k < depth; ++k) sum += a[m * depth + k] * b[k * columns + n];
  y[m * columns + n] = sum;
}

__global__ void coalesced(const float* a, const float* b, float* y, const long long* offsets,
                          long long rows, long long columns, long long depth) {
  const long long m = blockIdx.x * blockDim.y + threadIdx.y;
  const long long n = blockIdx.y * blockDim.x + threadIdx.x;
  if (m >= rows || n >= columns) return;
  a += offsets[0];
  b += offsets[1];
  float sum = 0;
  for (long long k = 0; k < depth; ++k) sum += a[m * depth + k] * b[k * columns + n];
  y[m * columns + n] = sum;
}

/// kTransposed: the tile of b lies column by column, kPitch elements apart.
template <bool kTransposed, int kPitch>
__global__ void __launch_bounds__(1024)
    tiled(const float* a, const float* b, float* y, const long long* offsets, long long rows,
          long long columns, long long depth) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kPitch];
  const int row = threadIdx.y, column = threadIdx.x;
  const long long m = blockIdx.x * kTile + row, n = blockIdx.y * kTile + column;
  a += offsets[0];
  b += offsets[1];
  float sum = 0;
  for (long long k0 = 0; k0 < depth; k0 += kTile) {
    tile_a[row][column] = m < rows && k0 + column < depth ? a[m * depth + k0 + column] : 0.0f;
    const float value = n < columns && k0 + row < depth ? b[(k0 + row) * columns + n] : 0.0f;
    if (kTransposed) {
      tile_b[column][row] = value;
    } else {
      tile_b[row][column] = value;
    }
    __syncthreads();
    const int steps = depth - k0 < kTile ? depth - k0 : kTile;
#pragma unroll 1
    for (int k = 0; k < steps; ++k) {
      sum += tile_a[row][k] * (kTransposed ? tile_b[column][k] : tile_b[k][column]);
    }
    __syncthreads();
  }
  if (m < rows && n < columns) y[m * columns + n] = sum;
}

template __global__ void tiled<false, 32>(const float*, const float*, float*, const long long*,
                                          long long, long long, long long);
template __global__ void tiled<true, 32>(const float*, const float*, float*, const long long*,
                                         long long, long long, long long);
template __global__ void tiled<true, 33>(const float*, const float*, float*, const long long*,
                                         long long, long long, long long);
