// The products of gemm.cuh for large matrices: the same chains, hence the same bits, with every
// access 16 bytes wide and the next tiles on their way while the present ones are multiplied.
// A block of 256 threads owns 128 x 128 elements of y, a warp 32 x 64, a thread 8 x 8 in four
// pieces of 4 x 4: lanes that read one row of a tile together then read 16 bytes next to each
// other. In addition to the demands of gemm.cuh, an entry of a Problem has `a4(m, k)`, `b4(k, n)`
// (four operands along the contiguous axis) and `store4(m, n, sums)` (along n).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/gemm.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

using Four = Vector<float, 4>;

/// Two stages of tiles of a and b, [k, m] and [k, n]: one is multiplied while the other is filled.
struct WideTile {
  static constexpr int kSize = 128, kDepth = 8;
  static constexpr int kThreads = kSize * kDepth / 4;  ///< each brings four elements of either
  /// Four more columns: the four elements that a thread writes down a column, and those of its 31
  /// neighbours, then lie in 32 banks.
  Shared<float, 2 * kDepth, kSize + 4> a, b;
};

/// Where the elements that a thread brings lie in the tile of an operand: the first of them.
struct WidePlace {
  int k, along;  ///< `along` counts m of a, or n of b
};

/// Contiguous along k: a warp reads whole sectors, 8 elements of 16 rows. Else a row of 128.
template <bool kAlongK>
__device__ WidePlace wide_place() {
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (kAlongK) return {thread % 2 * 4, thread / 2};
  constexpr int kVectors = WideTile::kSize / 4;
  return {thread / kVectors, thread % kVectors * 4};
}

/// Reads the elements that a thread loads of the tiles at k0.
template <class Problem, class Entry>
__device__ void fetch_tiles(const Problem& problem, const Entry& entry, std::int64_t m0,
                            std::int64_t n0, std::int64_t k0, Four& of_a, Four& of_b) {
  const WidePlace a = wide_place<Problem::kRowsAlongK>();
  const WidePlace b = wide_place<!Problem::kColumnsAlongN>();
  const bool a_inside = m0 + a.along < problem.sizes.m, b_inside = n0 + b.along < problem.sizes.n;
  of_a = a_inside ? entry.a4(m0 + a.along, k0 + a.k) : Four{};
  of_b = b_inside ? entry.b4(k0 + b.k, n0 + b.along) : Four{};
}

template <bool kAlongK, class Tile>
__device__ void store_operand(const Four& fetched, Tile& tile, int stage) {
  const WidePlace place = wide_place<kAlongK>();
  const int k = stage * WideTile::kDepth + place.k;
  if constexpr (kAlongK) {
#pragma unroll
    for (int e = 0; e < 4; ++e) tile(k + e, place.along) = fetched[e];
  } else {
    tile.template store<4>(k, place.along, fetched);
  }
}

/// A thread's first row and column in the tile. Its pieces lie 16 rows and 32 columns apart.
struct WidePosition {
  static constexpr int kRowStep = 16, kColumnStep = 32;
  int row, column;
};
__device__ inline WidePosition wide_position() {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  return {warp / 2 * 32 + lane / 8 * 4, warp % 2 * 64 + lane % 8 * 4};
}

/// Adds the products of one stage to the thread's sums, k ascending.
__device__ inline void multiply_stage(WideTile& tile, int stage, const WidePosition& at,
                                      float (&sum)[8][8]) {
#pragma unroll 2  // more, and ptxas reads so far ahead that it spills registers on 8.0
  for (int k = 0; k < WideTile::kDepth; ++k) {
    Four a[2], b[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = stage * WideTile::kDepth + k;
      a[half] = tile.a.template load<4>(row, at.row + half * WidePosition::kRowStep);
      b[half] = tile.b.template load<4>(row, at.column + half * WidePosition::kColumnStep);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        sum[i][j] = multiply_add(a[i / 4][i % 4], b[j / 4][j % 4], sum[i][j]);
      }
    }
  }
}

/// Grid: (tiles of m, tiles of n, batch).
template <class Problem>
__global__ void __launch_bounds__(256, 2) vectorised_gemm_kernel(Problem problem) {
  constexpr int kSize = WideTile::kSize, kDepth = WideTile::kDepth;
  auto& tile = shared<WideTile>();
  const auto& sizes = problem.sizes;
  const std::int64_t m0 = std::int64_t{blockIdx.x} * kSize, n0 = std::int64_t{blockIdx.y} * kSize;
  const auto entry = problem.entry(blockIdx.z);
  const WidePosition at = wide_position();
  Four of_a, of_b;
  const auto store_stage = [&](int stage) {
    store_operand<Problem::kRowsAlongK>(of_a, tile.a, stage);
    store_operand<!Problem::kColumnsAlongN>(of_b, tile.b, stage);
  };
  float sum[8][8] = {};  // [m, n]
  fetch_tiles(problem, entry, m0, n0, 0, of_a, of_b);
  store_stage(0);
  __syncthreads();
  int stage = 0;
  for (std::int64_t k0 = kDepth; k0 < sizes.k; k0 += kDepth, stage ^= 1) {
    fetch_tiles(problem, entry, m0, n0, k0, of_a, of_b);
    multiply_stage(tile, stage, at, sum);
    // The other stage was read before the last barrier.
    store_stage(stage ^ 1);
    __syncthreads();
  }
  multiply_stage(tile, stage, at, sum);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t m = m0 + at.row + i / 4 * WidePosition::kRowStep + i % 4;
      const std::int64_t n = n0 + at.column + half * WidePosition::kColumnStep;
      if (m >= sizes.m || n >= sizes.n) continue;
      Four sums;
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[j] = canonical(sum[i][half * 4 + j]);
      entry.store4(m, n, sums);
    }
  }
}

template <class Problem>
void launch_vectorised_gemm(Stream* stream, const char* name, const Problem& problem) {
  const auto& sizes = problem.sizes;
  const auto tiles = [](std::int64_t count) {
    return static_cast<unsigned>((count + WideTile::kSize - 1) / WideTile::kSize);
  };
  launch(stream, name,
         {{tiles(sizes.m), tiles(sizes.n), static_cast<unsigned>(sizes.batch)},
          {WideTile::kThreads},
          sizeof(WideTile)},
         kInstance<vectorised_gemm_kernel<Problem>>, problem);
}

/// Large enough for a tile, and whole in vectors of four: rows of n, and of m where it is a's
/// contiguous axis. Whole tiles of k, for an added zero could turn a -0 into +0.
inline Verdict accepts_vectorised(const GemmSizes& sizes, bool rows_along_k) {
  if (sizes.m < WideTile::kSize || sizes.n < WideTile::kSize) {
    return Verdict::no("needs at least 128 rows and 128 columns");
  }
  if (sizes.k == 0 || sizes.k % WideTile::kDepth != 0) {
    return Verdict::no("needs a depth that is a multiple of 8");
  }
  if (sizes.n % 4 != 0 || (!rows_along_k && sizes.m % 4 != 0)) {
    return Verdict::no("needs rows that are multiples of 4 elements");
  }
  return Verdict::yes();
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
