// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiles/store_rows.h"

#include <algorithm>

#include "core/base/exact_math.h"
#include "core/base/float16.h"
#include "core/base/quantized_math.h"

#if defined(__x86_64__) && defined(__linux__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // in g++ 12's own header
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

void store_by_stand_in(const IntegerRows& rows, std::int8_t* to, std::int64_t step) {
  const std::int64_t low = rows.relu ? 0 : -128;
  for (std::int64_t i = 0; i < rows.positions; ++i) {
    for (std::int64_t c = 0; c < rows.channels; ++c) {
      const auto sum = wrapping_add(rows.sums[i * rows.sums_stride + c], rows.bias[c]);
      const auto value = requantize(sum, rows.multiplier[c], rows.shift[c]);
      to[i * step + c] = saturate_to_i8(std::max(value, low));
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

/// Requantises the low halves of eight 64-bit lanes.
struct Requantizer {
  __m512i multiplier, half, shift, low;

  [[gnu::target("avx512f"), gnu::always_inline]] __m512i operator()(__m512i sums) const {
    const auto product = _mm512_add_epi64(_mm512_mul_epi32(sums, multiplier), half);
    const auto value = _mm512_srav_epi64(product, shift);
    return _mm512_min_epi64(_mm512_max_epi64(value, low), _mm512_set1_epi64(127));
  }
};

[[gnu::target("avx512f")]] Requantizer requantizer(__m512i multiplier, __m512i shift,
                                                   std::int64_t low) {
  const auto one = _mm512_set1_epi64(1);
  auto wide = _mm512_and_epi64(shift, _mm512_set1_epi64(0xFFFFFFFF));
  return {multiplier, _mm512_sllv_epi64(one, _mm512_sub_epi64(wide, one)), wide,
          _mm512_set1_epi64(low)};
}

/// The same for sixteen sums where no shift is below 32: it then needs the upper halves of the
/// products alone, and the conversion to bytes cuts off what is too large.
struct UpperRequantizer {
  __m512i multiplier, odd_multiplier, half, odd_half, shift, low;

  [[gnu::target("avx512f"), gnu::always_inline]] __m128i operator()(__m512i sums) const {
    const auto even = _mm512_add_epi64(_mm512_mul_epi32(sums, multiplier), half);
    const auto odd =
        _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(sums, 32), odd_multiplier), odd_half);
    const auto upper = _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
    const auto values = _mm512_max_epi32(_mm512_srav_epi32(upper, shift), low);
    return _mm512_cvtsepi32_epi8(values);
  }
};

/// Both halves of the lanes, for every shift.
struct WideRequantizer {
  Requantizer even, odd;

  [[gnu::target("avx512f"), gnu::always_inline]] __m128i operator()(__m512i sums) const {
    const auto values = _mm512_mask_mov_epi32(
        even(sums), 0xAAAA, _mm512_slli_epi64(odd(_mm512_srli_epi64(sums, 32)), 32));
    return _mm512_cvtepi32_epi8(values);
  }
};

/// Channels [c, c + 16) of all rows. Whole vectors are stored without a mask, which is slow.
template <class Requantize>
[[gnu::target("avx512f,avx512bw,avx512vl"), gnu::always_inline]] inline void store_channels(
    const IntegerRows& rows, std::int64_t c, __m512i bias, const Requantize& requantize,
    std::int8_t* to, std::int64_t step) {
  const auto lanes = lanes_of(rows.channels - c);
  const auto* from = rows.sums + c;
  to += c;
  for (std::int64_t i = 0; i < rows.positions; ++i, from += rows.sums_stride, to += step) {
    if (lanes == lanes_of(kLanes)) {
      const auto bytes = requantize(_mm512_add_epi32(_mm512_loadu_si512(from), bias));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    } else {
      const auto sums = _mm512_add_epi32(_mm512_maskz_loadu_epi32(lanes, from), bias);
      _mm_mask_storeu_epi8(to, lanes, requantize(sums));
    }
  }
}

[[gnu::target("avx512f,avx512bw,avx512vl")]] void store_by_hardware(const IntegerRows& rows,
                                                                    std::int8_t* to,
                                                                    std::int64_t step) {
  for (std::int64_t c = 0; c < rows.channels; c += kLanes) {
    const auto lanes = lanes_of(rows.channels - c);
    const auto bias = _mm512_maskz_loadu_epi32(lanes, rows.bias + c);
    const auto multiplier = _mm512_maskz_loadu_epi32(lanes, rows.multiplier + c);
    auto shift = _mm512_maskz_loadu_epi32(lanes, rows.shift + c);
    shift = _mm512_max_epi32(shift, _mm512_set1_epi32(kMinRequantizeShift));
    shift = _mm512_min_epi32(shift, _mm512_set1_epi32(kMaxRequantizeShift));
    const std::int32_t low = rows.relu ? 0 : -128;
    const auto even = requantizer(multiplier, shift, low);
    const auto odd =
        requantizer(_mm512_srli_epi64(multiplier, 32), _mm512_srli_epi64(shift, 32), low);
    const auto upper_shift = _mm512_sub_epi32(shift, _mm512_set1_epi32(32));
    if (_mm512_mask_cmplt_epi32_mask(lanes, upper_shift, _mm512_setzero_si512()) != 0) {
      store_channels(rows, c, bias, WideRequantizer{even, odd}, to, step);
    } else {
      const UpperRequantizer upper = {multiplier, odd.multiplier, even.half,
                                      odd.half,   upper_shift,    _mm512_set1_epi32(low)};
      store_channels(rows, c, bias, upper, to, step);
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
void store_by_hardware(const IntegerRows&, std::int8_t*, std::int64_t) {}

#endif

}  // namespace

void store_rows(const SumRows& rows, std::uint16_t* to, std::int64_t step, TileUnit::Kind kind) {
  if (kind == TileUnit::Kind::StandIn || !rounds_in_hardware())
    return store_by_stand_in(rows, to, step);
  rows.relu ? store_by_hardware<true>(rows, to, step) : store_by_hardware<false>(rows, to, step);
}

void store_rows(const IntegerRows& rows, std::int8_t* to, std::int64_t step, TileUnit::Kind kind) {
  kind == TileUnit::Kind::StandIn ? store_by_stand_in(rows, to, step)
                                  : store_by_hardware(rows, to, step);
}

}  // namespace triptych::cpu
