// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiles/store_rows.h"

#include <algorithm>

#include "core/base/exact_math.h"
#include "core/base/float16.h"

#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#define TRIPTYCH_HAS_BF16_ROUNDING 1
#endif

namespace triptych::cpu {
namespace {

void store_by_stand_in(const SumRows& rows, std::uint16_t* to, std::int64_t step) {
  for (std::int64_t i = 0; i < rows.positions; ++i) {
    for (std::int64_t c = 0; c < rows.channels; ++c) {
      auto value = rows.sums[i * rows.sums_stride + c];
      if (rows.bias != nullptr) value += rows.bias[c];
      if (rows.relu) value = exact::relu(value);
      to[i * step + c] = bf16_bits(exact::flushed(value));
    }
  }
}

#if TRIPTYCH_HAS_BF16_ROUNDING

constexpr std::int64_t kLanes = 16;

[[gnu::target("avx512f")]] __mmask16 lanes_of(std::int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(count, 0, kLanes)) - 1U);
}

template <bool kRelu>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512bf16")]] void store_by_hardware(const SumRows& rows,
                                                                               std::uint16_t* to,
                                                                               std::int64_t step) {
  const auto smallest = _mm512_set1_ps(exact::kMinNormal);
  for (std::int64_t c = 0; c < rows.channels; c += 2 * kLanes) {
    const auto low = lanes_of(rows.channels - c), high = lanes_of(rows.channels - c - kLanes);
    const auto both = static_cast<__mmask32>(low | static_cast<std::uint32_t>(high) << kLanes);
    // Adding -0 changes nothing.
    auto bias0 = _mm512_set1_ps(-0.0F), bias1 = bias0;
    if (rows.bias != nullptr) {
      bias0 = _mm512_maskz_loadu_ps(low, rows.bias + c);
      bias1 = _mm512_maskz_loadu_ps(high, rows.bias + c + kLanes);
    }
    const float* from = rows.sums + c;
    std::uint16_t* target = to + c;
    for (std::int64_t i = 0; i < rows.positions; ++i) {
      auto sum0 = _mm512_add_ps(_mm512_maskz_loadu_ps(low, from), bias0);
      auto sum1 = _mm512_add_ps(_mm512_maskz_loadu_ps(high, from + kLanes), bias1);
      if constexpr (kRelu) {
        sum0 = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(sum0, smallest, _CMP_NLT_UQ), sum0);
        sum1 = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(sum1, smallest, _CMP_NLT_UQ), sum1);
      }
      const auto rounded = _mm512_cvtne2ps_pbh(sum1, sum0);
      _mm512_mask_storeu_epi16(target, both, reinterpret_cast<__m512i>(rounded));
      from += rows.sums_stride;
      target += step;
    }
  }
}

bool rounds_in_hardware() {
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0;
  return has;
}

#else

bool rounds_in_hardware() { return false; }
template <bool kRelu>
void store_by_hardware(const SumRows&, std::uint16_t*, std::int64_t) {}

#endif

}  // namespace

void store_rows(const SumRows& rows, std::uint16_t* to, std::int64_t step, TileUnit::Kind kind) {
  if (kind == TileUnit::Kind::StandIn || !rounds_in_hardware())
    return store_by_stand_in(rows, to, step);
  rows.relu ? store_by_hardware<true>(rows, to, step) : store_by_hardware<false>(rows, to, step);
}

}  // namespace triptych::cpu
