// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/dot_unit.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include <hwy/base.h>

#include "backends/host/flush_subnormals.h"
#include "core/base/random.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace triptych::cpu {
namespace {

/// Biased exponents of bfloat16 operands.
struct Exponents {
  std::int64_t first = 0, last = 0;
};
// Sums round and cancel. Products are subnormal or below. Sums overflow, so that NaN follow. Any.
constexpr Exponents kExponents[] = {{120, 133}, {55, 75}, {185, 200}, {0, 255}};

/// Operands of one tile, as its microkernel reads them.
struct TileWords {
  static constexpr std::int64_t kDepth = 16;
  std::vector<DotWord> a, b;

  TileWords(const Microkernels& sizes, const Exponents& exponents, RandomStream& random)
      : a(static_cast<std::size_t>(kMaxNarrowRows) * kDepth),
        b(static_cast<std::size_t>(sizes.columns) * kDepth) {
    for (auto* words : {&a, &b})
      for (auto& word : *words) word = half(random, exponents) << 16U | half(random, exponents);
  }

  /// The sums of `rows` rows of `width` columns by `run`, over sums of 1.
  std::vector<float> multiply(void (*run)(const DotTile&), std::int64_t rows,
                              std::int64_t width) const {
    std::vector<float> sums(static_cast<std::size_t>(rows * width), 1.0F);
    run({.a = a.data(),
         .b = b.data(),
         .c = sums.data(),
         .c_stride = width,
         .k_inner = kDepth,
         .b_inner = width,
         .accumulate = true});
    return sums;
  }

 private:
  /// A zero, a subnormal number, or one with an exponent from a range.
  static DotWord half(RandomStream& random, const Exponents& exponents) {
    const auto bits = static_cast<DotWord>(random.below(0x10000));
    const auto kind = random.below(16);
    if (kind == 0) return bits & 0x8000U;
    if (kind == 1) return bits & 0x807FU;
    return (bits & 0x807FU) |
           static_cast<DotWord>(exponents.first +
                                random.below(exponents.last - exponents.first + 1))
               << 7U;
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

#if defined(__x86_64__)

// The instructions of these functions: this file is compiled for every processor.
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512bf16,avx2,fma")

constexpr std::ptrdiff_t kLanes = 16;

inline __m512 multiply_add(DotWord a, __m512i b, __m512 sum) {
  return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(static_cast<int>(a)), (__m512bh)b);
}

inline __m512 canonical(__m512 sum) {
  const auto nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000));
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q), sum, nan);
}

/// R counts the vectors of the tile, row by row.
template <std::size_t kVectors, std::size_t... R>
inline void multiply(const DotTile& tile, std::index_sequence<R...>) {
  constexpr auto rows = static_cast<std::int64_t>(sizeof...(R) / kVectors);
  __m512 sums[] = {((void)R, _mm512_setzero_ps())...};
  const auto in_c = [&](std::size_t r) {
    return tile.c + static_cast<std::ptrdiff_t>(r / kVectors) * tile.c_stride +
           static_cast<std::ptrdiff_t>(r % kVectors) * kLanes;
  };
  if (tile.accumulate) ((sums[R] = _mm512_loadu_ps(in_c(R))), ...);
  const DotWord* a = tile.a;
  for (std::int64_t outer = 0; outer < tile.k_outer; ++outer) {
    const DotWord* b = tile.b + outer * tile.b_outer;
    if (tile.ahead != nullptr) {
      const auto* ahead = reinterpret_cast<const char*>(tile.ahead + outer * tile.ahead_step);
      _mm_prefetch(ahead, _MM_HINT_T0);
      _mm_prefetch(ahead + 64, _MM_HINT_T0);
    }
    for (std::int64_t inner = 0; inner < tile.k_inner; ++inner, a += rows, b += tile.b_inner) {
      __m512i b_row[kVectors];
      for (std::size_t i = 0; i < kVectors; ++i)
        b_row[i] = _mm512_loadu_si512(b + static_cast<std::ptrdiff_t>(i) * kLanes);
      ((sums[R] = multiply_add(a[R / kVectors], b_row[R % kVectors], sums[R])), ...);
    }
  }
  (_mm512_storeu_ps(in_c(R), canonical(sums[R])), ...);
}

template <std::size_t kVectors, std::size_t kRows>
void multiply_rows(const DotTile& tile) {
  multiply<kVectors>(tile, std::make_index_sequence<kRows * kVectors>());
}

HWY_POP_ATTRIBUTES

template <std::size_t... kRowsMinusOne>
void add_wide(DotKernels& dots, std::index_sequence<kRowsMinusOne...>) {
  ((dots.run[kRowsMinusOne + 1] = multiply_rows<2, kRowsMinusOne + 1>), ...);
}

template <std::size_t... kRowsMinusOne>
void add_narrow(DotKernels& dots, std::index_sequence<kRowsMinusOne...>) {
  ((dots.run_narrow[kRowsMinusOne + 1] = multiply_rows<1, kRowsMinusOne + 1>), ...);
}

DotKernels processor_dots() {
  DotKernels dots;
  add_wide(dots, std::make_index_sequence<kMaxTileRows>());
  add_narrow(dots, std::make_index_sequence<kMaxNarrowRows>());
  return dots;
}

bool has_instruction() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 5U & 1U) != 0;
}

#else

DotKernels processor_dots() { return {}; }
bool has_instruction() { return false; }

#endif

/// Seconds of the fastest of some calls of `run` with a full tile.
template <class T>
double fastest(void (*run)(const BasicMicroTile<T>&), const Microkernels& sizes) {
  constexpr std::int64_t depth = 256;
  const std::vector<T> a(static_cast<std::size_t>(sizes.max_rows * depth));
  const std::vector<T> b(static_cast<std::size_t>(sizes.columns * depth));
  std::vector<ProductSum<T>> sums(static_cast<std::size_t>(sizes.max_rows * sizes.columns));
  const BasicMicroTile<T> tile = {.a = a.data(),
                                  .b = b.data(),
                                  .c = sums.data(),
                                  .c_stride = sizes.columns,
                                  .k_inner = depth,
                                  .b_inner = sizes.columns};
  double best = 1;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run(tile);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// A tile of words does twice the work of a tile of floats. Packing takes longer, so that a small
/// gain is none.
bool is_faster(const Microkernels& kernels) {
  constexpr double kWorthwhile = 1.3;
  const auto full = static_cast<std::size_t>(kernels.max_rows);
  return 2 * fastest(kernels.run[full], kernels) >
         kWorthwhile * fastest(kernels.dots.run[full], kernels);
}

constexpr std::int64_t kFewestRows = 24, kFewestProducts = 16;

}  // namespace

Verdict worth_on_dots(std::int64_t rows, std::int64_t k) {
  const auto& missing = microkernels().dots_missing;
  if (!missing.empty()) return Verdict::no(missing);
  return rows >= kFewestRows && k >= kFewestProducts
             ? Verdict{true, "multiplies pairs of bfloat16 (VDPBF16PS)"}
             : Verdict::no("has too few rows or products for the packing of pairs");
}

bool same_dots(const DotKernels& a, const DotKernels& b, const Microkernels& sizes) {
  const FlushSubnormals flush;
  RandomStream random(1, 0);
  for (std::int64_t rows = 1; rows <= 2 * std::int64_t{sizes.max_rows}; ++rows) {
    const auto r = static_cast<std::size_t>(rows);
    for (const auto& exponents : kExponents) {
      const TileWords words(sizes, exponents, random);
      const auto agree = [&](auto one, auto other, std::int64_t width) {
        return same_bits(words.multiply(one, rows, width), words.multiply(other, rows, width));
      };
      if (rows <= sizes.max_rows && !agree(a.run[r], b.run[r], sizes.columns)) return false;
      if (!agree(a.run_narrow[r], b.run_narrow[r], sizes.narrow_columns)) return false;
    }
  }
  return true;
}

Microkernels with_dot_unit(Microkernels kernels) {
  if (!has_instruction()) {
    kernels.dots_missing = "this processor has no products of bfloat16 pairs (VDPBF16PS)";
  } else if (kernels.narrow_columns != 16) {
    kernels.dots_missing = "these kernels were built without AVX-512";
  } else if (const auto dots = processor_dots(); !same_dots(dots, kernels.dots, kernels)) {
    kernels.dots_missing = "VDPBF16PS of this processor does not compute the chain of bf16-exact";
  } else {
    kernels.dots = dots;
    if (!is_faster(kernels))
      kernels.dots_missing = "VDPBF16PS of this processor is no faster than multiply-adds";
  }
  return kernels;
}

}  // namespace triptych::cpu
