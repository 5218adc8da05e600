// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/array.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "systolic/twin/numerics.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace triptych::mmu {
namespace {

constexpr std::uint32_t kChains = 8;  ///< positions in flight, at most

/// Chains of up to kChains positions in one or two strips.
struct ChainBlock {
  const float* x;
  std::ptrdiff_t position_stride, row_stride;
  std::uint32_t positions;
  const Strip* strips;
  std::uint32_t strip_count;
  std::uint32_t rows;
  bool accumulate;
  float* sums[2];  ///< by strip: [position][sum_stride]
  std::ptrdiff_t sum_stride;
};

using Chain = void (*)(const ChainBlock&);

#if defined(__x86_64__)
// The caller has set flush-to-zero. Two fused multiply-adds of four cycles begin in each cycle:
// eight chains at least must be in flight.

template <int kPositions, int kStrips>
__attribute__((target("avx512f"))) void run_avx512(const ChainBlock& block) {
  __m512 sum[kPositions][kStrips];
  __mmask16 mask[kStrips];
  for (int s = 0; s < kStrips; ++s) {
    mask[s] = static_cast<__mmask16>((1U << block.strips[s].columns) - 1);
    for (int m = 0; m < kPositions; ++m)
      sum[m][s] = block.accumulate
                      ? _mm512_maskz_loadu_ps(mask[s], block.sums[s] + m * block.sum_stride)
                      : _mm512_setzero_ps();
  }
  const float* x = block.x;
  for (std::uint32_t r = 0; r < block.rows; ++r) {
    __m512 weight[kStrips];
    for (int s = 0; s < kStrips; ++s) weight[s] = _mm512_load_ps(block.strips[s].weights[r].lanes);
    for (int m = 0; m < kPositions; ++m) {
      const __m512 activation = _mm512_set1_ps(x[m * block.position_stride]);
      for (int s = 0; s < kStrips; ++s)
        sum[m][s] = _mm512_fmadd_ps(activation, weight[s], sum[m][s]);
    }
    x += block.row_stride;
  }
  const __m512 nan = _mm512_set1_ps(std::bit_cast<float>(kCanonicalNan));
  for (int s = 0; s < kStrips; ++s)
    for (int m = 0; m < kPositions; ++m) {
      const __mmask16 unordered = _mm512_cmp_ps_mask(sum[m][s], sum[m][s], _CMP_UNORD_Q);
      _mm512_mask_storeu_ps(block.sums[s] + m * block.sum_stride, mask[s],
                            _mm512_mask_blend_ps(unordered, sum[m][s], nan));
    }
}

template <int kStrips, int... kLess>
constexpr std::array<Chain, kChains> heights_avx512(std::integer_sequence<int, kLess...>) {
  return {run_avx512<kLess + 1, kStrips>...};
}

void chain_avx512(const ChainBlock& block) {
  constexpr std::make_integer_sequence<int, kChains> heights;
  static constexpr std::array by_height = {heights_avx512<1>(heights), heights_avx512<2>(heights)};
  by_height[block.strip_count - 1][block.positions - 1](block);
}

template <int kPositions>
__attribute__((target("avx2,fma"))) void run_avx2(const ChainBlock& block, int s, int first) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const auto columns = static_cast<int>(block.strips[s].columns);
  const __m256i mask[2] = {_mm256_cmpgt_epi32(_mm256_set1_epi32(columns), lane),
                           _mm256_cmpgt_epi32(_mm256_set1_epi32(columns - 8), lane)};
  float* sums = block.sums[s] + first * block.sum_stride;
  __m256 sum[kPositions][2];
  for (int m = 0; m < kPositions; ++m)
    for (int h = 0; h < 2; ++h)
      sum[m][h] = block.accumulate
                      ? _mm256_maskload_ps(sums + m * block.sum_stride + 8 * h, mask[h])
                      : _mm256_setzero_ps();
  const float* x = block.x + first * block.position_stride;
  const Vector* weights = block.strips[s].weights;
  for (std::uint32_t r = 0; r < block.rows; ++r) {
    const __m256 low = _mm256_load_ps(weights[r].lanes);
    const __m256 high = _mm256_load_ps(weights[r].lanes + 8);
    for (int m = 0; m < kPositions; ++m) {
      const __m256 activation = _mm256_set1_ps(x[m * block.position_stride]);
      sum[m][0] = _mm256_fmadd_ps(activation, low, sum[m][0]);
      sum[m][1] = _mm256_fmadd_ps(activation, high, sum[m][1]);
    }
    x += block.row_stride;
  }
  const __m256 nan = _mm256_set1_ps(std::bit_cast<float>(kCanonicalNan));
  for (int m = 0; m < kPositions; ++m)
    for (int h = 0; h < 2; ++h) {
      const __m256 unordered = _mm256_cmp_ps(sum[m][h], sum[m][h], _CMP_UNORD_Q);
      _mm256_maskstore_ps(sums + m * block.sum_stride + 8 * h, mask[h],
                          _mm256_blendv_ps(sum[m][h], nan, unordered));
    }
}

void chain_avx2(const ChainBlock& block) {
  constexpr std::array by_height = {run_avx2<1>, run_avx2<2>, run_avx2<3>, run_avx2<4>};
  for (int s = 0; s < static_cast<int>(block.strip_count); ++s)
    for (std::uint32_t m = 0; m < block.positions; m += 4)
      by_height[std::min(4U, block.positions - m) - 1](block, s, static_cast<int>(m));
}
#endif

void chain_soft(const ChainBlock& block) {
  for (std::uint32_t s = 0; s < block.strip_count; ++s)
    for (std::uint32_t m = 0; m < block.positions; ++m) {
      const Strip& strip = block.strips[s];
      float* sums = block.sums[s] + m * block.sum_stride;
      if (!block.accumulate) std::fill_n(sums, strip.columns, 0.0F);
      const float* x = block.x + m * block.position_stride;
      for (std::uint32_t r = 0; r < block.rows; ++r, x += block.row_stride)
        for (std::uint32_t c = 0; c < strip.columns; ++c)
          sums[c] = soft_fma(*x, strip.weights[r].lanes[c], sums[c]);
    }
}

Chain choose_chain() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return chain_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return chain_avx2;
#endif
  return chain_soft;
}

/// Calls `work(first position, chains)` for each group of kChains positions and two strips: two
/// that lie side by side stay in the cache while all positions of the block pass them.
template <class Work>
void for_each_block(const ChainCall& call, Work work) {
  const ActivationBlock& block = call.block;
  for (std::size_t s = 0; s < call.strips.size(); s += 2)
    for (std::uint32_t m = 0; m < block.positions; m += kChains) {
      ChainBlock chains{block.x + m * block.position_stride,
                        block.position_stride,
                        block.row_stride,
                        std::min(kChains, block.positions - m),
                        call.strips.data() + s,
                        s + 1 < call.strips.size() ? 2U : 1U,
                        call.rows,
                        call.accumulate,
                        {},
                        0};
      work(m, chains);
    }
}

/// Adds whole sums to the content of an accumulator row (`keep`: all bits or none), wrapping.
inline void add_row(const float* sums, std::uint32_t columns, std::uint32_t keep,
                    std::int32_t* target) {
  for (std::uint32_t c = 0; c < columns; ++c) {
    const auto sum = static_cast<std::uint32_t>(static_cast<std::int32_t>(sums[c]));
    target[c] = static_cast<std::int32_t>((static_cast<std::uint32_t>(target[c]) & keep) + sum);
  }
}

}  // namespace

void multiply_bf16(const ChainCall& call, Accumulators& accumulators) {
  static const Chain chain = choose_chain();
  for_each_block(call, [&](std::uint32_t m, ChainBlock& chains) {
    for (std::uint32_t s = 0; s < chains.strip_count; ++s) {
      const Strip& strip = chains.strips[s];
      chains.sums[s] = accumulators.real_at(strip.accumulator + call.first + m) + strip.first;
    }
    chains.sum_stride = accumulators.stride;
    chain(chains);
  });
}

// The products of a call sum to less than 2^24, so the floating-point chains are exact.
void multiply_int8(const ChainCall& call, Accumulators& accumulators) {
  static const Chain chain = choose_chain();
  for_each_block(call, [&](std::uint32_t m, ChainBlock& chains) {
    std::array<Vector, 2 * kChains> sums;
    chains.accumulate = false;
    for (std::uint32_t s = 0; s < 2; ++s) chains.sums[s] = sums[s * kChains].lanes;
    chains.sum_stride = kStrip;
    chain(chains);
    const std::uint32_t keep = call.accumulate ? ~0U : 0U;
    for (std::uint32_t s = 0; s < chains.strip_count; ++s)
      for (std::uint32_t i = 0; i < chains.positions; ++i) {
        const Strip& strip = chains.strips[s];
        const float* from = sums[s * kChains + i].lanes;
        std::int32_t* to =
            accumulators.whole_at(strip.accumulator + call.first + m + i) + strip.first;
        if (strip.columns == kStrip)
          add_row(from, kStrip, keep, to);
        else
          add_row(from, strip.columns, keep, to);
      }
  });
}

namespace {

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void widen_avx512(const NarrowRows& rows, Vector* target) {
  constexpr __mmask16 all = 0xFFFF;
  std::uint32_t address = rows.address;
  for (std::uint32_t r = 0; r < rows.count; ++r, address += rows.pitch) {
    __m256i narrow;
    std::memcpy(&narrow, rows.memory + address, sizeof narrow);
    // Masked by nothing: g++ 12 takes the unmasked ones' undefined operand for a mistake.
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(all, narrow);
    _mm512_store_si512(target[r].lanes, _mm512_maskz_slli_epi32(all, wide, 16));
  }
}
#endif

void widen_portably(const NarrowRows& rows, Vector* target) {
  std::uint32_t address = rows.address;
  for (std::uint32_t r = 0; r < rows.count; ++r, address += rows.pitch) {
    std::uint16_t narrow[kStrip];
    std::memcpy(narrow, rows.memory + address, sizeof narrow);
    for (std::uint32_t c = 0; c < kStrip; ++c) target[r].lanes[c] = from_bf16(narrow[c]);
  }
}

}  // namespace

void widen(const NarrowRows& rows, Vector* target) {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx512f") != 0;
  if (wide) return widen_avx512(rows, target);
#endif
  widen_portably(rows, target);
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
