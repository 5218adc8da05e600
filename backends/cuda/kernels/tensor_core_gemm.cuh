// Products y[m, n] = sum over k of a(m, k) b(k, n) on the tensor cores, of operands that lie in
// memory as bfloat16 (bf16_operands.h). A block of four warps owns 128 x 128 elements of y, a warp
// 64 x 64 of them. Tiles of 64 values of k come by asynchronous copies, three stages deep: while
// one is multiplied, two are on their way.
//
// A Problem has `sizes` and `entry(batch)`, which gives one product of the batch: arrays `left` and
// `right`. `at_a(m, k)` and `at_b(k, n)`, where in them the eight elements from there on lie along
// k or, as kRowsAlongK and kColumnsAlongN say, along m and n. `store(m, n, sum)`, and
// `store_inside` for two neighbours along n, the first even, as far as they lie inside of y.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "backends/cuda/kernels/gemm.cuh"
#include "backends/cuda/kernels/tensor_core.cuh"
#include "core/base/checked_math.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Where a piece of an operand lies. Not `inside`: it is zeros.
struct PiecePlace {
  std::int64_t index;
  bool inside;
};

struct TensorTiles {
  static constexpr int kSize = 128, kDepth = 64, kStages = 3, kThreads = 128;
  /// Rows of m with k along them, or rows of k, with those of m < 64 before the others.
  Swizzled<kStages * kSize> a, b;
};

/// The share of the blocks that divide one product among them along k: `count` of them, each
/// `steps` tiles. Each leaves its sums in `partial`, [split, batch, m, n].
struct Splits {
  int count = 1, steps = 0;
  Global<float> partial;
};

/// Contents of a piece of a tile.
struct TilePlace {
  int along, k;  ///< `along` counts m of a, or n of b
};
template <bool kAlongK>
__device__ TilePlace tile_place(int row, int piece) {
  if constexpr (kAlongK) return {row, piece * 8};
  return {row / TensorTiles::kDepth * 64 + piece * 8, row % TensorTiles::kDepth};
}

/// Asks for one operand's tile: eight pieces per thread.
template <bool kAlongK, class At>
__device__ void copy_tile(CopyQueue& queue, Swizzled<TensorTiles::kStages * TensorTiles::kSize>& to,
                          int stage, Global<const BFloat16> from, const At& at) {
  const int thread = static_cast<int>(threadIdx.x), piece = thread % 8;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = thread / 8 + i * (TensorTiles::kThreads / 8);
    const PiecePlace place = at(tile_place<kAlongK>(row, piece));
    queue.copy(to, stage * TensorTiles::kSize + row, piece, from, place.index, place.inside);
  }
}

/// The warp's 64 rows of a at one k of 16, from `m` of the tile on.
template <bool kAlongK, class Tile>
__device__ void load_a(Tile& tile, int stage, int m, int k, FragmentA (&a)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, first = stage * TensorTiles::kSize;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kAlongK) {
      load_matrices(tile, first + m + 16 * i + lane % 16, k / 8 + lane / 16, a[i].pairs);
    } else {
      const int column = 16 * i + lane / 8 % 2 * 8;
      load_matrices_transposed(tile, first + m + k + lane / 16 * 8 + lane % 8, column / 8,
                               a[i].pairs);
    }
  }
}

/// The warp's 64 columns of b, as load_a.
template <bool kAlongK, class Tile>
__device__ void load_b(Tile& tile, int stage, int n, int k, FragmentB (&b)[8]) {
  const int lane = static_cast<int>(threadIdx.x) % 32, first = stage * TensorTiles::kSize;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    Pair pairs[4];  // of two fragments
    if constexpr (kAlongK) {
      load_matrices(tile, first + n + 16 * j + lane / 16 * 8 + lane % 8, k / 8 + lane / 8 % 2,
                    pairs);
    } else {
      const int column = 16 * j + lane / 16 * 8;
      load_matrices_transposed(tile, first + n + k + lane / 8 % 2 * 8 + lane % 8, column / 8,
                               pairs);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) b[2 * j + i / 2].pairs[i % 2] = pairs[i];
  }
}

/// Where tile `number` of y lies, of `down` times `across` tiles: columns of 16 tiles of m after
/// another, so that the blocks that run together read few rows of a and columns of b, and find them
/// in the L2 cache.
struct TileNumber {
  std::int64_t m, n;
};
__device__ inline TileNumber tile_number(std::int64_t number, std::int64_t down,
                                         std::int64_t across) {
  constexpr std::int64_t kTogether = 16;
  const std::int64_t first = number / (kTogether * across) * kTogether;
  const std::int64_t height = down - first < kTogether ? down - first : kTogether;
  const std::int64_t rest = number % (kTogether * across);
  return {first + rest % height, rest / height};
}

/// Multiplies the data of one stage.
template <class Problem>
__device__ void multiply_tile(TensorTiles& tiles, int stage, int m, int n,
                              FragmentC (&sums)[4][8]) {
#pragma unroll
  for (int k = 0; k < TensorTiles::kDepth; k += 16) {
    FragmentA a[4];
    FragmentB b[8];
    load_a<Problem::kRowsAlongK>(tiles.a, stage, m, k, a);
    load_b<!Problem::kColumnsAlongN>(tiles.b, stage, n, k, b);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) multiply(sums[i][j], a[i], b[j]);
    }
  }
}

/// Hands the warp's sums, from (m, n) of y on, to store(m, n, first, second).
template <class Store>
__device__ void for_each_pair(const FragmentC (&sums)[4][8], std::int64_t m, std::int64_t n,
                              const Store& store) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        store(m + 16 * i + 8 * half + lane / 4, n + 8 * j + lane % 4 * 2, sums[i][j].sums[2 * half],
              sums[i][j].sums[2 * half + 1]);
      }
    }
  }
}

/// Grid: (tiles of y, splits, batch).
template <class Problem>
__global__ void __launch_bounds__(128, 2) tensor_core_gemm_kernel(Problem problem, Splits splits) {
  constexpr int kSize = TensorTiles::kSize, kDepth = TensorTiles::kDepth;
  constexpr int kStages = TensorTiles::kStages;
  auto& tiles = shared<TensorTiles>();
  const auto& sizes = problem.sizes;
  const auto entry = problem.entry(blockIdx.z);
  const TileNumber number =
      tile_number(blockIdx.x, (sizes.m + kSize - 1) / kSize, (sizes.n + kSize - 1) / kSize);
  const std::int64_t m0 = number.m * kSize, n0 = number.n * kSize;
  const int first = static_cast<int>(blockIdx.y) * splits.steps;
  const int all = static_cast<int>((sizes.k + kDepth - 1) / kDepth);
  const int last = all < first + splits.steps ? all : first + splits.steps;
  CopyQueue queue;
  const auto copy_step = [&](int step) {
    if (step < last) {
      const std::int64_t k0 = std::int64_t{step} * kDepth;
      const int stage = (step - first) % kStages;
      copy_tile<Problem::kRowsAlongK>(queue, tiles.a, stage, entry.left, [&](const TilePlace& at) {
        return entry.at_a(m0 + at.along, k0 + at.k);
      });
      copy_tile<!Problem::kColumnsAlongN>(
          queue, tiles.b, stage, entry.right,
          [&](const TilePlace& at) { return entry.at_b(k0 + at.k, n0 + at.along); });
    }
    queue.commit();  // an empty group too: wait counts them
  };
  for (int step = first; step < first + kStages - 1; ++step) copy_step(step);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int m = warp / 2 * 64, n = warp % 2 * 64;
  FragmentC sums[4][8];
  for (int step = first; step < last; ++step) {
    queue.wait<kStages - 2>();
    // The pieces of this step have landed for all, and all have read the stage that is filled next.
    __syncthreads();
    copy_step(step + kStages - 1);
    multiply_tile<Problem>(tiles, (step - first) % kStages, m, n, sums);
  }
  if (splits.count > 1) {
    const std::int64_t slice = std::int64_t{blockIdx.y} * sizes.batch + blockIdx.z;
    for_each_pair(sums, m0 + m, n0 + n,
                  [&](std::int64_t row, std::int64_t column, float x, float y) {
                    if (row >= sizes.m) return;
                    const std::int64_t at = (slice * sizes.m + row) * sizes.n + column;
                    if (column < sizes.n) splits.partial[at] = x;
                    if (column + 1 < sizes.n) splits.partial[at + 1] = y;
                  });
    return;
  }
  for_each_pair(sums, m0 + m, n0 + n, [&](std::int64_t row, std::int64_t column, float x, float y) {
    entry.store_inside(row, column, x, y);
  });
}

/// The sums of all splits, in their order: one thread per element of y.
template <class Problem>
__global__ void add_splits_kernel(Problem problem, Splits splits) {
  const auto& sizes = problem.sizes;
  const std::int64_t elements = sizes.batch * sizes.m * sizes.n;
  for (std::int64_t i = global_thread(); i < elements; i += all_threads()) {
    float sum = splits.partial[i];
    for (int split = 1; split < splits.count; ++split) sum += splits.partial[split * elements + i];
    const auto entry = problem.entry(i / sizes.n / sizes.m);
    entry.store(i / sizes.n % sizes.m, i % sizes.n, sum);
  }
}

/// How many blocks divide a product: as many as keep a large GPU busy, each with some tiles to do.
/// It depends on the sizes alone, so that a run has the same bits on every GPU.
inline Splits splits_for(const GemmSizes& sizes) {
  constexpr std::int64_t kBlocksWanted = 264, kFewestSteps = 8, kMost = 64;
  const auto steps = ceil_div(sizes.k, TensorTiles::kDepth);
  const auto tiles =
      sizes.batch * ceil_div(sizes.m, TensorTiles::kSize) * ceil_div(sizes.n, TensorTiles::kSize);
  const auto wanted =
      std::min({kBlocksWanted / std::max<std::int64_t>(tiles, 1), steps / kFewestSteps, kMost});
  Splits splits;
  splits.steps = static_cast<int>(ceil_div(steps, std::max<std::int64_t>(wanted, 1)));
  splits.count = splits.steps > 0 ? static_cast<int>(ceil_div(steps, splits.steps)) : 1;
  return splits;
}

/// Bytes of scratch for the sums of the splits.
inline std::size_t partial_bytes(const GemmSizes& sizes) {
  const auto splits = splits_for(sizes);
  if (splits.count == 1) return 0;
  return static_cast<std::size_t>(splits.count * sizes.batch * sizes.m * sizes.n) * sizeof(float);
}

/// `scratch`: partial_bytes of it.
template <class Problem>
void launch_tensor_core_gemm(Stream* stream, const char* name, const Problem& problem,
                             std::byte* scratch) {
  const auto& sizes = problem.sizes;
  const auto elements = sizes.batch * sizes.m * sizes.n;
  if (elements == 0) return;
  auto splits = splits_for(sizes);
  if (splits.count > 1) {
    splits.partial = {reinterpret_cast<float*>(scratch), splits.count * elements};
  }
  const auto tiles = ceil_div(sizes.m, TensorTiles::kSize) * ceil_div(sizes.n, TensorTiles::kSize);
  launch(stream, name,
         {{static_cast<unsigned>(tiles), static_cast<unsigned>(splits.count),
           static_cast<unsigned>(sizes.batch)},
          {TensorTiles::kThreads},
          sizeof(TensorTiles)},
         kInstance<tensor_core_gemm_kernel<Problem>>, problem, splits);
  if (splits.count > 1) {
    launch(stream, "add_splits", {{static_cast<unsigned>(ceil_div(elements, 256))}, {256}},
           kInstance<add_splits_kernel<Problem>>, problem, splits);
  }
}

/// Within the index range of the kernel. Tensor cores round where other contracts do not.
inline Verdict accepts_tensor_core(const GemmSizes& sizes, Contract contract) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (contract != Contract::Bf16) {
    return Verdict::no("multiplies bfloat16 in the tensor cores' order: for the contract bf16");
  }
  if (sizes.batch > 65535) return Verdict::no("takes up to 65,535 batch entries");
  if (sizes.m >= kMost || sizes.n >= kMost || sizes.k >= kMost) {
    return Verdict::no("numbers rows, columns and depth by 31 bits");
  }
  if (ceil_div(sizes.m, TensorTiles::kSize) * ceil_div(sizes.n, TensorTiles::kSize) >= kMost) {
    return Verdict::no("numbers tiles by 31 bits");
  }
  return Verdict::yes();
}

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
