// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/array.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "systolic/twin/numerics.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace triptych::mmu {
namespace {

/// `kPositions` x kVector chains over all rows of a tile.
struct ChainBlock {
  const float* x;
  std::ptrdiff_t position_stride, row_stride;
  const float* weights;
  std::uint32_t weight_stride, rows;
  float* sums;  ///< [position][sum_stride]
  std::ptrdiff_t sum_stride;
};

#if defined(__x86_64__)
/// Reciprocal throughput asks for eight chains in flight; the caller has set flush-to-zero.
__attribute__((target("avx512f"))) void chain8_avx512(const ChainBlock& block) {
  __m512 sum[8];
  for (int m = 0; m < 8; ++m) sum[m] = _mm512_loadu_ps(block.sums + m * block.sum_stride);
  const float* x = block.x;
  const float* weights = block.weights;
  for (std::uint32_t r = 0; r < block.rows; ++r) {
    const __m512 weight = _mm512_loadu_ps(weights);
    for (int m = 0; m < 8; ++m)
      sum[m] = _mm512_fmadd_ps(_mm512_set1_ps(x[m * block.position_stride]), weight, sum[m]);
    x += block.row_stride;
    weights += block.weight_stride;
  }
  const __m512 nan = _mm512_set1_ps(std::bit_cast<float>(kCanonicalNan));
  for (int m = 0; m < 8; ++m) {
    const __mmask16 unordered = _mm512_cmp_ps_mask(sum[m], sum[m], _CMP_UNORD_Q);
    _mm512_storeu_ps(block.sums + m * block.sum_stride,
                     _mm512_mask_blend_ps(unordered, sum[m], nan));
  }
}

__attribute__((target("avx2,fma"))) void chain4_avx2(const ChainBlock& block, int half) {
  __m256 sum[4];
  for (int m = 0; m < 4; ++m)
    sum[m] = _mm256_loadu_ps(block.sums + m * block.sum_stride + 8 * half);
  const float* x = block.x;
  const float* weights = block.weights + 8 * half;
  for (std::uint32_t r = 0; r < block.rows; ++r) {
    const __m256 weight = _mm256_loadu_ps(weights);
    for (int m = 0; m < 4; ++m)
      sum[m] = _mm256_fmadd_ps(_mm256_set1_ps(x[m * block.position_stride]), weight, sum[m]);
    x += block.row_stride;
    weights += block.weight_stride;
  }
  const __m256 nan = _mm256_set1_ps(std::bit_cast<float>(kCanonicalNan));
  for (int m = 0; m < 4; ++m) {
    const __m256 unordered = _mm256_cmp_ps(sum[m], sum[m], _CMP_UNORD_Q);
    _mm256_storeu_ps(block.sums + m * block.sum_stride + 8 * half,
                     _mm256_blendv_ps(sum[m], nan, unordered));
  }
}

void chain8_avx2(const ChainBlock& block) {
  ChainBlock lower = block;
  lower.x += 4 * block.position_stride;
  lower.sums += 4 * block.sum_stride;
  for (int half = 0; half < 2; ++half) {
    chain4_avx2(block, half);
    chain4_avx2(lower, half);
  }
}
#endif

void chain8_soft(const ChainBlock& block) {
  for (int m = 0; m < 8; ++m) {
    float* sums = block.sums + m * block.sum_stride;
    for (std::uint32_t r = 0; r < block.rows; ++r) {
      const float x = block.x[m * block.position_stride + r * block.row_stride];
      const float* weights = block.weights + std::size_t{r} * block.weight_stride;
      for (std::uint32_t c = 0; c < kVector; ++c) sums[c] = soft_fma(x, weights[c], sums[c]);
    }
  }
}

using Chain8 = void (*)(const ChainBlock&);

Chain8 choose_chain() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return chain8_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return chain8_avx2;
#endif
  return chain8_soft;
}

/// Calls `work(first position, first column, chains)` for each group of eight positions and
/// kVector columns.
template <class Work>
void for_each_block(const ActivationBlock& block, const Tile& tile, Work work) {
  const std::uint32_t stride = padded(tile.columns);
  for (std::uint32_t m = 0; m < block.positions; m += 8)
    for (std::uint32_t c = 0; c < tile.columns; c += kVector) {
      ChainBlock chains{block.x + m * block.position_stride,
                        block.position_stride,
                        block.row_stride,
                        tile.weights.data() + c,
                        stride,
                        tile.rows,
                        nullptr,
                        kVector};
      work(m, c, chains);
    }
}

/// Whole sums onto what stands in an accumulator row (`keep`: all bits or none), wrapping.
inline void add_row(const float* sums, std::uint32_t columns, std::uint32_t keep,
                    std::int32_t* target) {
  for (std::uint32_t c = 0; c < columns; ++c) {
    const auto sum = static_cast<std::uint32_t>(static_cast<std::int32_t>(sums[c]));
    target[c] = static_cast<std::int32_t>((static_cast<std::uint32_t>(target[c]) & keep) + sum);
  }
}

}  // namespace

void multiply_bf16(const ActivationBlock& block, const Tile& tile, bool accumulate,
                   std::uint32_t row, Accumulators& accumulators) {
  static const Chain8 chain8 = choose_chain();
  for_each_block(block, tile, [&](std::uint32_t m, std::uint32_t c, ChainBlock& chains) {
    const std::uint32_t positions = std::min(8U, block.positions - m);
    const std::uint32_t columns = std::min(kVector, tile.columns - c);
    float* target = accumulators.real.data() + std::size_t{row + m} * accumulators.stride + c;
    if (accumulate && positions == 8 && columns == kVector) {
      chains.sums = target;
      chains.sum_stride = accumulators.stride;
      chain8(chains);
      return;
    }
    std::array<float, 8 * kVector> sums{};
    if (accumulate)
      for (std::uint32_t i = 0; i < positions; ++i)
        std::copy_n(target + i * accumulators.stride, columns, sums.data() + i * kVector);
    chains.sums = sums.data();
    chain8(chains);
    for (std::uint32_t i = 0; i < positions; ++i)
      std::copy_n(sums.data() + i * kVector, columns, target + i * accumulators.stride);
  });
}

// A tile's products sum to less than 2^24, so the floating-point chains are exact.
void multiply_int8(const ActivationBlock& block, const Tile& tile, bool accumulate,
                   std::uint32_t row, Accumulators& accumulators) {
  static const Chain8 chain8 = choose_chain();
  for_each_block(block, tile, [&](std::uint32_t m, std::uint32_t c, ChainBlock& chains) {
    const std::uint32_t positions = std::min(8U, block.positions - m);
    const std::uint32_t columns = std::min(kVector, tile.columns - c);
    std::array<float, 8 * kVector> sums{};
    chains.sums = sums.data();
    chain8(chains);
    const std::uint32_t keep = accumulate ? ~0U : 0U;
    for (std::uint32_t i = 0; i < positions; ++i) {
      std::int32_t* target =
          accumulators.whole.data() + std::size_t{row + m + i} * accumulators.stride + c;
      if (columns == kVector)
        add_row(sums.data() + i * kVector, kVector, keep, target);
      else
        add_row(sums.data() + i * kVector, columns, keep, target);
    }
  });
}

#if defined(__x86_64__)
FlushSubnormals::FlushSubnormals() : saved_(_mm_getcsr()) {
  // All exceptions masked, round to nearest, flush-to-zero, denormals-are-zero.
  _mm_setcsr(0x1F80 | 0x8000 | 0x0040);
}
FlushSubnormals::~FlushSubnormals() { _mm_setcsr(saved_); }
#else
FlushSubnormals::FlushSubnormals() = default;
FlushSubnormals::~FlushSubnormals() = default;
#endif

}  // namespace triptych::mmu
