// Products y[m, n] = sum over k of a(m, k) b(n, k) as Hopper (compute capability 9.0) wants them:
// the copy engine fills a ring of tiles while the tensor cores read them where they lie. A block of
// three warpgroups owns one tile of 128 x 256 or 64 x 512 elements of y after another. The first
// warpgroup asks for copies and keeps few registers. The two others own 64 rows and 256 columns
// each and multiply. Who waits for whom is a pair of barriers for each stage of the ring: `full`
// when its bytes have come, `empty` when both have read it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "backends/cuda/kernels/hopper.cuh"
#include "backends/cuda/kernels/tensor_core_gemm.cuh"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Parts of products, of tiles of 128 x 256 or 64 x 512. A Problem has `Tiles`, an instance of
/// this; `tile(number)`, which gives tile `number` of y as its own type; `steps()`, of 64 values of
/// k each. `load(tiles, stage, tile, step, full)`, which asks for kRows rows of a and kColumns rows
/// of b, and `store_pair(tile, m, n, first, second)`, sums of two neighbours along n, the first
/// even, counted from the tile's first. With kTurned the products are those of b with a, and a
/// thread stores neighbours along m: `rows_of(tile)`, a multiple of 8, counts the rows of the tile
/// inside of y, `finished(tile, m, sum)` is an element of y, and `store_piece(tile, m, n, piece)`
/// stores eight, rounded. With kDepthOutside each 64 rows of a stage are the 64 values of k, and
/// along them lie 64 rows of a or columns of b.
template <int kRowCount>
struct HopperTilesOf {
  static constexpr int kRows = kRowCount, kColumns = 128 * 256 / kRows, kDepth = 64;
  static constexpr int kStages = kRows == 128 ? 4 : 3;
  static constexpr int kConsumers = 2, kThreads = (1 + kConsumers) * 128;
  /// Each consumer owns 64 rows, or, where there are no more, 256 columns.
  static constexpr int kConsumerRows = kRows - 64, kConsumerColumns = kColumns - 256;
  static constexpr int kStageBytes = (kRows + kColumns) * kDepth * 2;
  Swizzled<kStages * kRows> a;
  Swizzled<kStages * kColumns> b;
  PhaseBarrier full[kStages], empty[kStages];
};
using HopperTiles = HopperTilesOf<128>;

/// The stage of the ring that comes next, and the parity of its phase.
template <int kStages>
struct RingPlace {
  int stage = 0;
  unsigned parity = 0;
  __device__ void advance() {
    stage = (stage + 1) % kStages;
    if (stage == 0) parity ^= 1U;
  }
};

/// One thread: asks for every stage of every tile of the block as soon as it is empty.
template <class Problem>
__device__ void produce(typename Problem::Tiles& tiles, const Problem& problem,
                        std::int64_t count) {
  const int steps = problem.steps();
  RingPlace<Problem::Tiles::kStages> place;
  for (std::int64_t number = blockIdx.x; number < count; number += gridDim.x) {
    const auto tile = problem.tile(number);
    for (int step = 0; step < steps; ++step, place.advance()) {
      PhaseBarrier& full = tiles.full[place.stage];
      // The phase before the first counts as over: all stages are empty.
      tiles.empty[place.stage].wait(place.parity ^ 1U);
      full.expect(Problem::Tiles::kStageBytes);
      problem.load(tiles, place.stage, tile, step, full);
    }
  }
}

/// A warp's 16 rows of a tile of y, from m on, and 256 columns.
template <class Problem>
__device__ void store_pairs(const Problem& problem, const typename Problem::Tile& tile, int m,
                            int first_column, const WarpgroupSums (&sums)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  m += lane / 4;
#pragma unroll
  for (int part = 0; part < 2; ++part) {
#pragma unroll
    for (int j = 0; j < WarpgroupSums::kColumns / 8; ++j) {
      const int n = first_column + part * WarpgroupSums::kColumns + 8 * j + lane % 4 * 2;
      const FragmentC& c = sums[part].columns[j];
      problem.store_pair(tile, m, n, c.sums[0], c.sums[1]);
      problem.store_pair(tile, m + 8, n, c.sums[2], c.sums[3]);
    }
  }
}

/// Four pairs of each of four threads turned: thread i of them gets pair i of all. kDistance: from
/// a thread to the next.
template <int kDistance>
__device__ void turn_pairs(Vector<Pair, 4>& pairs) {
  const auto exchange = [&](int low, int high) {
    const int distance = (high - low) * kDistance;
    const bool upper = (static_cast<int>(threadIdx.x) & distance) != 0;
    const Pair got = __shfl_xor_sync(~0U, upper ? pairs[low] : pairs[high], distance);
    pairs[low] = upper ? got : pairs[low];
    pairs[high] = upper ? pairs[high] : got;
  };
  exchange(0, 1);
  exchange(2, 3);
  exchange(0, 2);
  exchange(1, 3);
}

/// Column n of y, with kTurned, from the sums of a thread and its neighbours. Four threads exchange
/// sums, so that each stores eight rows at once. `half`: rows 0 to 7 or 8 to 15 of the sums.
template <class Problem>
__device__ void store_pieces(const Problem& problem, const typename Problem::Tile& tile, int n,
                             int half, const WarpgroupSums& sums) {
  const int rows = problem.rows_of(tile), lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int first = 0; first < WarpgroupSums::kColumns; first += 32) {
    if (first >= rows) continue;
    Vector<Pair, 4> pairs = {};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const FragmentC& c = sums.columns[first / 8 + j];
      const int m = first + 8 * j + lane % 4 * 2;
      if (m < rows) {
        pairs[j] = rounded_pair(problem.finished(tile, m, c.sums[2 * half]),
                                problem.finished(tile, m + 1, c.sums[2 * half + 1]));
      }
    }
    turn_pairs<1>(pairs);
    const int m = first + lane % 4 * 8;
    if (m < rows) problem.store_piece(tile, m, n, __builtin_bit_cast(Piece, pairs));
  }
}

/// A warp's 16 rows of y, with kTurned and tiles of 64 rows, whose products are not turned. Thread
/// 4 i + j has columns 2 j and 2 j + 1 of each eight, of row i of eight. Threads with neighbouring
/// rows exchange one of both columns. Then four exchange pairs of rows.
template <class Problem>
__device__ void store_turned(const Problem& problem, const typename Problem::Tile& tile, int m,
                             int first_column, const WarpgroupSums (&sums)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, row = lane / 4;
#pragma unroll
  for (int part = 0; part < 2; ++part) {
#pragma unroll
    for (int i = 0; i < 2 * WarpgroupSums::kColumns / 32; ++i) {
      const int half = i % 2, first = i / 2 * 4;  // of rows, of fragments
      Vector<Pair, 4> pairs = {};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const FragmentC& c = sums[part].columns[first + j];
        const int at = m + 8 * half + row;
        const Pair own = rounded_pair(problem.finished(tile, at, c.sums[2 * half]),
                                      problem.finished(tile, at, c.sums[2 * half + 1]));
        const Pair got = __shfl_xor_sync(~0U, own, 4);
        pairs[j] = row % 2 == 0 ? (own & 0xFFFFU) | got << 16 : got >> 16 | (own & 0xFFFF0000U);
      }
      turn_pairs<8>(pairs);
      const int n =
          part * WarpgroupSums::kColumns + 8 * (first + lane / 8) + lane % 4 * 2 + row % 2;
      problem.store_piece(tile, m + 8 * half, first_column + n, __builtin_bit_cast(Piece, pairs));
    }
  }
}

/// True when the products themselves are turned.
template <class Problem>
inline constexpr bool kTurnsProducts = Problem::Tiles::kRows == 128 && Problem::kTurned;

/// A warpgroup's share of a tile of y: 64 rows and 256 columns, or all rows and 128 columns.
template <class Problem>
__device__ void store_sums(const Problem& problem, std::int64_t number, int consumer,
                           const WarpgroupSums (&sums)[2]) {
  const auto tile = problem.tile(number);
  const int thread = static_cast<int>(threadIdx.x) % 128;
  if constexpr (kTurnsProducts<Problem>) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int n = (2 * consumer + part) * WarpgroupSums::kRows + thread / 32 * 16;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        store_pieces(problem, tile, n + 8 * half + thread % 32 / 4, half, sums[part]);
      }
    }
  } else {
    const int m = consumer * Problem::Tiles::kConsumerRows + thread / 32 * 16;
    const int n = consumer * Problem::Tiles::kConsumerColumns;
    if constexpr (Problem::kTurned) {
      store_turned(problem, tile, m, n, sums);
    } else {
      store_pairs(problem, tile, m, n, sums);
    }
  }
}

/// Starts a warpgroup's products of a stage.
template <class Problem>
__device__ void multiply_stage(typename Problem::Tiles& tiles, int stage, int consumer,
                               WarpgroupSums (&sums)[2]) {
  using Tiles = typename Problem::Tiles;
  constexpr int kRows = Tiles::kRows, kColumns = Tiles::kColumns;
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    if constexpr (kTurnsProducts<Problem>) {
      const int n = (2 * consumer + part) * WarpgroupSums::kRows;
      multiply_tiles<Problem::kDepthOutside>(sums[part], tiles.b, stage * kColumns + n, tiles.a,
                                             stage * kRows);
    } else {
      const int n = consumer * Tiles::kConsumerColumns;
      multiply_tiles<Problem::kDepthOutside>(
          sums[part], tiles.a, stage * kRows + consumer * Tiles::kConsumerRows, tiles.b,
          n + stage * kColumns + part * WarpgroupSums::kColumns);
    }
  }
}

template <class Problem>
__device__ void consume(typename Problem::Tiles& tiles, const Problem& problem, std::int64_t count,
                        int consumer) {
  const int steps = problem.steps();
  RingPlace<Problem::Tiles::kStages> place;
  for (std::int64_t number = blockIdx.x; number < count; number += gridDim.x) {
    WarpgroupSums sums[2];
    int before = -1;  // the stage with products that may not have finished
    for (int step = 0; step < steps; ++step, place.advance()) {
      tiles.full[place.stage].wait(place.parity);
      fence_products(sums);
      multiply_stage<Problem>(tiles, place.stage, consumer, sums);
      commit_products(sums);
      wait_products<1>(sums);  // but those just started
      if (before >= 0) tiles.empty[before].arrive_warpgroup();
      before = place.stage;
    }
    wait_products<0>(sums);
    if (before >= 0) tiles.empty[before].arrive_warpgroup();
    store_sums(problem, number, consumer, sums);
  }
}

/// Grid: as many blocks as the GPU runs at once. Tile `count` and those behind are not there.
template <class Problem>
__global__ void __launch_bounds__(384, 1)
    hopper_gemm_kernel(const __grid_constant__ Problem problem, std::int64_t count) {
  using Tiles = typename Problem::Tiles;
  auto& tiles = shared<Tiles>();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Tiles::kStages; ++stage) {
      tiles.full[stage].begin(1);
      tiles.empty[stage].begin_warpgroups(Tiles::kConsumers);
    }
    publish_barriers();
  }
  __syncthreads();
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  // 40 + 2 * 232 registers, times 128 threads: as many as there are.
  if (warpgroup == 0) {
    leave_registers<40>();
    if (threadIdx.x == 0) produce(tiles, problem, count);
  } else {
    take_registers<232>();
    consume(tiles, problem, count, warpgroup - 1);
  }
}

/// count: tiles of y.
template <class Problem>
void launch_hopper_gemm(Stream* stream, const char* name, const Problem& problem,
                        std::int64_t count) {
  launch(stream, name,
         {{static_cast<unsigned>(std::min<std::int64_t>(count, most_blocks(stream)))},
          {Problem::Tiles::kThreads},
          sizeof(typename Problem::Tiles)},
         kInstance<hopper_gemm_kernel<Problem>>, problem, count);
}

/// The division of the steps of `tiles` tiles with the least time on the 132 multiprocessors of an
/// H100, in steps. To store the sums of a tile and to add them takes about as long as twelve steps,
/// and to store a tile that is not divided as long as `whole`. It depends on the sizes alone, so
/// that a run has the same bits on every GPU.
inline Splits divide_steps(std::int64_t tiles, std::int64_t steps, std::int64_t whole) {
  constexpr std::int64_t kAtOnce = 132, kStoring = 12, kMost = 64;
  Splits best;
  std::int64_t least = 0;
  for (std::int64_t count = 1; count <= std::min(kMost, steps); ++count) {
    const auto each = ceil_div(steps, count);
    const auto time = ceil_div(tiles * count, kAtOnce) * (each + (count > 1 ? kStoring : whole));
    if (count > 1 && time >= least) continue;
    least = time;
    best.count = static_cast<int>(ceil_div(steps, each));
    best.steps = static_cast<int>(each);
  }
  return best;
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
