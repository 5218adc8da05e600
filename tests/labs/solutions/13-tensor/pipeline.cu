// c = a b by mma.sync, ldmatrix and cp.async. a: M x K halves, b: K x N halves, c: M x N floats,
// all row by row.
// SPDX-License-Identifier: Apache-2.0
#include <cuda_fp16.h>

__device__ unsigned address_of(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ void start_copy(half* to, const half* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address_of(to)), "l"(from));
}

/// 16 x 16 halves: matrices above each other first.
__device__ void load(unsigned (&to)[4], const half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address_of(row)));
}

__device__ void load_columns(unsigned (&to)[4], const half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address_of(row)));
}

__device__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Grid (N / 64, M / 64), blocks of 128: a block has a tile of 64 x 64, each of its four warps a
/// quarter, 32 x 32.
__global__ void pipelined(const half* a, const half* b, float* c, int M, int N, int K) {
  // Rows of 48 and of 144 bytes: eight of them begin at different groups of 4 banks.
  constexpr int kLeft = 24, kRight = 72;
  __shared__ alignas(16) half lefts[2][64][kLeft], rights[2][16][kRight];
  const int thread = threadIdx.x, lane = thread % 32;
  const int row = thread / 64 * 32, column = thread / 32 % 2 * 32;
  const auto fetch = [&](int stage, int k) {
    start_copy(&lefts[stage][thread / 2][thread % 2 * 8],
               a + (blockIdx.y * 64 + thread / 2) * K + k + thread % 2 * 8);
    start_copy(&rights[stage][thread / 8][thread % 8 * 8],
               b + (k + thread / 8) * N + blockIdx.x * 64 + thread % 8 * 8);
  };
  float sums[2][4][4] = {};
  fetch(0, 0);
  asm volatile("cp.async.commit_group;");
  for (int k = 0; k < K; k += 16) {
    const int stage = k / 16 % 2;
    if (k + 16 < K) fetch(1 - stage, k + 16);
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 1;");
    __syncthreads();
    unsigned left[2][4], right[2][4];
    for (int i = 0; i < 2; ++i) {
      load(left[i], &lefts[stage][row + 16 * i + lane % 16][lane / 16 * 8]);
      load_columns(right[i], &rights[stage][lane % 16][column + 16 * i + lane / 16 * 8]);
    }
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 4; ++j) {
        multiply(sums[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
      }
    }
    __syncthreads();  // before the next copy to this stage
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int half_tile = 0; half_tile < 2; ++half_tile) {
        const int at_row = blockIdx.y * 64 + row + 16 * i + 8 * half_tile + lane / 4;
        const int at_column = blockIdx.x * 64 + column + 8 * j + lane % 4 * 2;
        float* to = c + at_row * N + at_column;
        to[0] = sums[i][j][2 * half_tile];
        to[1] = sums[i][j][2 * half_tile + 1];
      }
    }
  }
}
