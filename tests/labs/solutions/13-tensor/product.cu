// c = a b on tensor cores. a: M x K halves, b: K x N halves, c: M x N floats, all row by row.
// SPDX-License-Identifier: Apache-2.0
#include <mma.h>

using namespace nvcuda;

using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

/// Grid (N / 16, M / 16), blocks of 16 x 16: a thread has an element.
__global__ void plain(const half* a, const half* b, float* c, int M, int N, int K) {
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += __half2float(a[row * K + k]) * __half2float(b[k * N + column]);
  c[row * N + column] = sum;
}

/// Grid (N / 16, M / 16), blocks of 32: a warp has a tile of 16 x 16.
__global__ void tensor(const half* a, const half* b, float* c, int M, int N, int K) {
  int row = blockIdx.y * 16, column = blockIdx.x * 16;
  Left left;
  Right right;
  Sum sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < K; k += 16) {
    wmma::load_matrix_sync(left, a + row * K + k, K);
    wmma::load_matrix_sync(right, b + k * N + column, N);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(c + row * N + column, sum, N, wmma::mem_row_major);
}

/// Grid (N / 64, M / 64), blocks of 128: a block has a tile of 64 x 64, each of its four warps a
/// quarter, 32 x 32. Tiles of a and b lie in shared memory.
__global__ void tiled(const half* a, const half* b, float* c, int M, int N, int K) {
  // Rows of 80 halves begin 8 banks apart, as those of 16 do: four rows of a tile fill all banks.
  constexpr int kPitch = 80;
  __shared__ half lefts[64][16], rights[16][kPitch];
  int warp = threadIdx.x / 32;
  int row = warp / 2 * 32, column = warp % 2 * 32;
  Sum sums[2][2];
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sums[i][j], 0.0f);
  }
  for (int k = 0; k < K; k += 16) {
    for (int e = threadIdx.x; e < 64 * 16; e += 128) {
      lefts[e / 16][e % 16] = a[(blockIdx.y * 64 + e / 16) * K + k + e % 16];
      rights[e / 64][e % 64] = b[(k + e / 64) * N + blockIdx.x * 64 + e % 64];
    }
    __syncthreads();
    Right right[2];
    for (int j = 0; j < 2; ++j) {
      wmma::load_matrix_sync(right[j], &rights[0][column + 16 * j], kPitch);
    }
    for (int i = 0; i < 2; ++i) {
      Left left;
      wmma::load_matrix_sync(left, &lefts[row + 16 * i][0], 16);
      for (int j = 0; j < 2; ++j) wmma::mma_sync(sums[i][j], left, right[j], sums[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      float* to = c + (blockIdx.y * 64 + row + 16 * i) * N + blockIdx.x * 64 + column + 16 * j;
      wmma::store_matrix_sync(to, sums[i][j], N, wmma::mem_row_major);
    }
  }
}
