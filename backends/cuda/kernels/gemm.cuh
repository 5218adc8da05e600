// Products y[m, n] = sum over k of a(m, k) b(k, n) on the CUDA cores. Every element is one chain of
// fused multiply-adds in ascending k, so all of f32, bf16 and bf16-exact share this path. A Problem
// defines a, b and y as matrices or patches of images.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/kernels/platform.h"
#include "core/base/contract.h"
#include "core/base/exact_math.h"
#include "core/base/float16.h"
#include "core/base/quantized_math.h"

namespace triptych::cuda::TRIPTYCH_PLATFORM {

/// Parts of products. A Problem has these `sizes`, `entry(batch)`, which gives one product
/// of the batch, and for 0 <= m, n, k below the sizes that has `a(m, k)`, `b(k, n)` and `store(m,
/// n, sum)`. Neighbouring threads read a along k where kRowsAlongK, otherwise along m, and b along
/// n where kColumnsAlongN, otherwise along k: each Problem defines the contiguous axis. Its Value
/// is float, or std::int32_t of int8 operands.
struct GemmSizes {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};

inline constexpr int kTileSize = 64;

/// A block of threads owns a tile of y, a thread kEach x kEach elements of it. Tiles of a and b of
/// kDepth values of k pass through shared memory.
template <class T>
struct GemmTile {
  static constexpr int kSize = kTileSize, kDepth = 16, kEach = 4;
  static constexpr int kThreads = kSize / kEach * (kSize / kEach);
  /// Four more columns, so that the threads that fill a column of the tile meet in other banks.
  Shared<T, kDepth, kSize + 4> a, b;
};

/// Rounds an operand as the contract says. The NaN becomes the canonical one.
template <bool kRound>
TRIPTYCH_ALWAYS_INLINE float operand(float x) {
  if constexpr (kRound) return round_to_bf16(x);
  return x;
}

TRIPTYCH_ALWAYS_INLINE float multiply_add(float a, float b, float sum) {
  return std::fma(a, b, sum);
}
/// Wraps: the order of int8 products, therefore, does not matter.
TRIPTYCH_ALWAYS_INLINE std::int32_t multiply_add(std::int32_t a, std::int32_t b, std::int32_t sum) {
  return wrapping_add(sum, a * b);
}

/// Result of a chain: one NaN for all.
using exact::canonical;
TRIPTYCH_ALWAYS_INLINE std::int32_t canonical(std::int32_t sum) { return sum; }

/// Where a block's tile starts.
struct TileStart {
  std::int64_t m, n, k;
};

/// Element i of the tile of a, and of that of b.
template <class Problem, class Entry>
__device__ void load_elements(const Problem& problem, const Entry& entry, const TileStart& first,
                              int i, GemmTile<typename Problem::Value>& tile) {
  using Value = typename Problem::Value;
  using Tile = GemmTile<Value>;
  constexpr int kSize = Tile::kSize, kDepth = Tile::kDepth;
  const int am = Problem::kRowsAlongK ? i / kDepth : i % kSize;
  const int ak = Problem::kRowsAlongK ? i % kDepth : i / kSize;
  const bool a_inside = first.m + am < problem.sizes.m && first.k + ak < problem.sizes.k;
  tile.a(ak, am) = a_inside ? entry.a(first.m + am, first.k + ak) : Value{0};
  const int bn = Problem::kColumnsAlongN ? i % kSize : i / kDepth;
  const int bk = Problem::kColumnsAlongN ? i / kSize : i % kDepth;
  const bool b_inside = first.n + bn < problem.sizes.n && first.k + bk < problem.sizes.k;
  tile.b(bk, bn) = b_inside ? entry.b(first.k + bk, first.n + bn) : Value{0};
}

template <class Problem, class Entry>
__device__ void load_tiles(const Problem& problem, const Entry& entry, const TileStart& first,
                           GemmTile<typename Problem::Value>& tile) {
  using Tile = GemmTile<typename Problem::Value>;
  constexpr int kElements = Tile::kSize * Tile::kDepth;
  if constexpr (Problem::kRowsAlongK && !Problem::kColumnsAlongN) {
#pragma unroll 2  // with all four on their way at once, ptxas spills a register
    for (int i = static_cast<int>(threadIdx.x); i < kElements; i += Tile::kThreads) {
      load_elements(problem, entry, first, i, tile);
    }
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < kElements; i += Tile::kThreads) {
      load_elements(problem, entry, first, i, tile);
    }
  }
}

/// Grid: (tiles of m, tiles of n, batch).
template <class Problem>
__global__ void __launch_bounds__(256) gemm_kernel(Problem problem) {
  using Value = typename Problem::Value;
  using Tile = GemmTile<Value>;
  constexpr int kSize = Tile::kSize, kDepth = Tile::kDepth, kEach = Tile::kEach;
  static_assert(Tile::kThreads == 256);
  auto& tile = shared<Tile>();
  const int row = static_cast<int>(threadIdx.x) / (kSize / kEach) * kEach;
  const int column = static_cast<int>(threadIdx.x) % (kSize / kEach) * kEach;
  const std::int64_t m0 = std::int64_t{blockIdx.x} * kSize, n0 = std::int64_t{blockIdx.y} * kSize;
  const auto entry = problem.entry(blockIdx.z);
  Value sum[kEach][kEach] = {};  // [m, n]
  for (std::int64_t k0 = 0; k0 < problem.sizes.k; k0 += kDepth) {
    load_tiles(problem, entry, {m0, n0, k0}, tile);
    __syncthreads();
    // A last tile may be thinner: adding its zeros could turn a -0 into +0.
    const int depth =
        problem.sizes.k - k0 < kDepth ? static_cast<int>(problem.sizes.k - k0) : kDepth;
    for (int k = 0; k < depth; ++k) {
      const Vector<Value, kEach> a = tile.a.template load<kEach>(k, row);
      const Vector<Value, kEach> b = tile.b.template load<kEach>(k, column);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) sum[i][j] = multiply_add(a[i], b[j], sum[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      if (m0 + row + i >= problem.sizes.m || n0 + column + j >= problem.sizes.n) continue;
      entry.store(m0 + row + i, n0 + column + j, canonical(sum[i][j]));
    }
  }
}

template <class Problem>
void launch_gemm(Stream* stream, const char* name, const Problem& problem) {
  const auto& sizes = problem.sizes;
  if (sizes.batch == 0 || sizes.m == 0 || sizes.n == 0) return;
  const auto tiles = [](std::int64_t count) {
    return static_cast<unsigned>((count + kTileSize - 1) / kTileSize);
  };
  launch(stream, name,
         {{tiles(sizes.m), tiles(sizes.n), static_cast<unsigned>(sizes.batch)},
          {256},
          sizeof(GemmTile<typename Problem::Value>)},
         kInstance<gemm_kernel<Problem>>, problem);
}

/// Within the limits of a grid, with m on its first axis.
inline Verdict accepts_gemm(const GemmSizes& sizes, Contract contract) {
  constexpr std::int64_t kMost = 65535;
  if (contract == Contract::Int8)
    return Verdict::no("multiplies floating-point operands, not int8");
  if (sizes.batch > kMost || (sizes.n + kTileSize - 1) / kTileSize > kMost) {
    return Verdict::no("takes up to 65,535 batch entries and tiles of columns");
  }
  return Verdict::yes();
}

/// True when operands count as bfloat16 under this contract.
inline bool rounds_operands(Contract contract) { return contract != Contract::F32; }

}  // namespace triptych::cuda::TRIPTYCH_PLATFORM
