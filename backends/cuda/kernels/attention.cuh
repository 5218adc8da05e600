// Parts of the attention kernels on CUDA cores. A block of 16 x 16 threads has tiles of 64 rows of
// a head in shared memory, the columns first. A thread owns 4 queries and 4 keys of a tile of
// scores.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/gemm.cuh"
#include "backends/cuda/kernels/reduction.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Rows of a tile: queries or keys.
inline constexpr int kFlashRows = 64, kFlashThreads = 256;
/// Threads that share 4 queries: half a warp.
inline constexpr int kRowThreads = 16;

using Four = Vector<float, 4>;

/// [column, row], with rows of four more elements, for vectors of four and so that 8 x 4 lanes meet
/// in 32 banks.
template <int kHead>
using HeadTile = Shared<float, kHead, kFlashRows + 4>;

/// to[d, row] = x[row, d] of 64 rows, `rows` of them there, and zeros up to column `filled`. A warp
/// brings 8 neighbours of 4 rows: whole sectors, and 32 banks.
template <bool kRound, class Tile>
__device__ inline void load_transposed(const Global<const float>& x, std::int64_t row_stride,
                                       std::int64_t rows, std::int64_t size, std::int64_t filled,
                                       Tile& to) {
  const int thread = static_cast<int>(threadIdx.x);
  const int eighth = thread % 8, row = thread / 8;
  for (std::int64_t d = eighth; d < filled; d += 8) {
    for (int r = row; r < kFlashRows; r += kFlashThreads / 8) {
      float value = 0;
      if (r < rows && d < size) value = operand<kRound>(x[r * row_stride + d]);
      to(static_cast<int>(d), r) = value;
    }
  }
}

/// The products of 4 queries with 4 keys. kUnroll: steps at once, which take registers.
template <int kUnroll, class Tile>
__device__ inline void score(Tile& queries, Tile& keys, int row, int column, int size,
                             float (&s)[4][4]) {
#pragma unroll kUnroll
  for (int d = 0; d < size; ++d) {
    const Four q = queries.template load<4>(d, row), k = keys.template load<4>(d, column);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) s[i][j] = multiply_add(q[i], k[j], s[i][j]);
    }
  }
}

/// Folds a value of each of the threads that share queries. All get the result.
template <class Combine>
__device__ inline float fold_row(float value) {
#pragma unroll
  for (int step = kRowThreads / 2; step > 0; step /= 2) {
    value = Combine()(value, __shfl_xor_sync(kWholeWarp, value, step));
  }
  return value;
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
