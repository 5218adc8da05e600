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

// A vector of these instructions has so many.
constexpr std::ptrdiff_t kLanes = 16;

/// Biased exponents of bfloat16 operands.
struct Exponents {
  std::int64_t first = 0, last = 0;
};
// Sums round and cancel. Products are subnormal or below. Sums overflow, so that NaN follow. Any.
constexpr Exponents kExponents[] = {{120, 133}, {55, 75}, {185, 200}, {0, 255}};

/// A zero, a subnormal number, or one with an exponent from a range.
DotWord half(RandomStream& random, const Exponents& exponents) {
  const auto bits = static_cast<DotWord>(random.below(0x10000));
  const auto kind = random.below(16);
  if (kind == 0) return bits & 0x8000U;
  if (kind == 1) return bits & 0x807FU;
  const auto exponent = exponents.first + random.below(exponents.last - exponents.first + 1);
  return (bits & 0x807FU) | static_cast<DotWord>(exponent) << 7U;
}

/// Operands of one tile, as its microkernel reads them.
template <class T>
struct TileWords {
  static constexpr std::int64_t kDepth = 16;
  std::vector<T> a, b;

  TileWords(const Microkernels& sizes, const Exponents& exponents, RandomStream& random)
      : a(static_cast<std::size_t>(kMaxNarrowRows) * kDepth),
        b(static_cast<std::size_t>(sizes.columns) * kDepth) {
    for (auto* words : {&a, &b})
      for (auto& word : *words)
        word = static_cast<T>(half(random, exponents) << 16U | half(random, exponents));
  }

  /// The sums of `rows` rows of `width` columns by `run`, over sums of 1.
  std::vector<ProductSum<T>> multiply(typename WordKernels<T>::Run run, std::int64_t rows,
                                      std::int64_t width) const {
    std::vector<ProductSum<T>> sums(static_cast<std::size_t>(rows * width), 1);
    run({.a = a.data(),
         .b = b.data(),
         .c = sums.data(),
         .c_stride = width,
         .k_inner = kDepth,
         .b_inner = width,
         .accumulate = true});
    return sums;
  }
};

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

#if defined(__x86_64__)

// The instructions of these functions: this file is compiled for every processor.
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512bf16,avx512vnni,avx2,fma")

/// Vectors of sums of products of T.
template <class T>
struct Lanes;

template <>
struct Lanes<DotWord> {
  using Sum = __m512;
  static Sum zero() { return _mm512_setzero_ps(); }
  static Sum load(const float* from) { return _mm512_loadu_ps(from); }
  static Sum multiply_add(DotWord a, __m512i b, Sum sum) {
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_set1_epi32(static_cast<int>(a)), (__m512bh)b);
  }
  /// With one NaN for all.
  static void store(float* to, Sum sum) {
    const auto nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000));
    const auto failed = _mm512_cmp_ps_mask(sum, sum, _CMP_UNORD_Q);
    _mm512_storeu_ps(to, _mm512_mask_blend_ps(failed, sum, nan));
  }
};

template <>
struct Lanes<PairWord> {
  using Sum = __m512i;
  static Sum zero() { return _mm512_setzero_si512(); }
  static Sum load(const PairWord* from) { return _mm512_loadu_si512(from); }
  static Sum multiply_add(PairWord a, __m512i b, Sum sum) {
    return _mm512_dpwssd_epi32(sum, _mm512_set1_epi32(a), b);
  }
  static void store(PairWord* to, Sum sum) { _mm512_storeu_si512(to, sum); }
};

/// R counts the vectors of the tile, row by row.
template <class T, std::size_t kVectors, std::size_t... R>
inline void multiply(const BasicMicroTile<T>& tile, std::index_sequence<R...>) {
  using L = Lanes<T>;
  constexpr auto rows = static_cast<std::int64_t>(sizeof...(R) / kVectors);
  typename L::Sum sums[] = {((void)R, L::zero())...};
  const auto in_c = [&](std::size_t r) {
    return tile.c + static_cast<std::ptrdiff_t>(r / kVectors) * tile.c_stride +
           static_cast<std::ptrdiff_t>(r % kVectors) * kLanes;
  };
  if (tile.accumulate) ((sums[R] = L::load(in_c(R))), ...);
  const T* a = tile.a;
  for (std::int64_t outer = 0; outer < tile.k_outer; ++outer) {
    const T* b = tile.b + outer * tile.b_outer;
    if (tile.ahead != nullptr) {
      const auto* ahead = reinterpret_cast<const char*>(tile.ahead + outer * tile.ahead_step);
      _mm_prefetch(ahead, _MM_HINT_T0);
      _mm_prefetch(ahead + 64, _MM_HINT_T0);
    }
    for (std::int64_t inner = 0; inner < tile.k_inner; ++inner, a += rows, b += tile.b_inner) {
      __m512i b_row[kVectors];
      for (std::size_t i = 0; i < kVectors; ++i)
        b_row[i] = _mm512_loadu_si512(b + static_cast<std::ptrdiff_t>(i) * kLanes);
      ((sums[R] = L::multiply_add(a[R / kVectors], b_row[R % kVectors], sums[R])), ...);
    }
  }
  (L::store(in_c(R), sums[R]), ...);
}

template <class T, std::size_t kVectors, std::size_t kRows>
void multiply_rows(const BasicMicroTile<T>& tile) {
  multiply<T, kVectors>(tile, std::make_index_sequence<kRows * kVectors>());
}

HWY_POP_ATTRIBUTES

template <class T>
WordKernels<T> by_processor() {
  WordKernels<T> words;
  fill_by_rows<kMaxTileRows>(words.run, [](auto rows) { return multiply_rows<T, 2, rows>; });
  fill_by_rows<kMaxNarrowRows>(words.run_narrow,
                               [](auto rows) { return multiply_rows<T, 1, rows>; });
  return words;
}

bool has_bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 5U & 1U) != 0;
}

bool has_vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c >> 11U & 1U) != 0;
}

#else

template <class T>
WordKernels<T> by_processor() {
  return {};
}
bool has_bf16() { return false; }
bool has_vnni() { return false; }

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
  constexpr double worthwhile = 1.3;
  const auto full = static_cast<std::size_t>(kernels.max_rows);
  return 2 * fastest(kernels.run[full], kernels) >
         worthwhile * fastest(kernels.dots.run[full], kernels);
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

template <class T>
bool same_words(const WordKernels<T>& a, const WordKernels<T>& b, const Microkernels& sizes) {
  const FlushSubnormals flush;
  RandomStream random(1, 0);
  for (std::int64_t rows = 1; rows <= 2 * std::int64_t{sizes.max_rows}; ++rows) {
    const auto r = static_cast<std::size_t>(rows);
    for (const auto& exponents : kExponents) {
      const TileWords<T> words(sizes, exponents, random);
      const auto agree = [&](auto one, auto other, std::int64_t width) {
        return same_bits(words.multiply(one, rows, width), words.multiply(other, rows, width));
      };
      if (rows <= sizes.max_rows && !agree(a.run[r], b.run[r], sizes.columns)) return false;
      if (!agree(a.run_narrow[r], b.run_narrow[r], sizes.narrow_columns)) return false;
    }
  }
  return true;
}

template bool same_words(const WordKernels<PairWord>&, const WordKernels<PairWord>&,
                         const Microkernels&);
template bool same_words(const WordKernels<DotWord>&, const WordKernels<DotWord>&,
                         const Microkernels&);

Microkernels with_dot_unit(Microkernels kernels) {
  const bool wide = kernels.narrow_columns == kLanes;
  const auto pairs = by_processor<PairWord>();
  kernels.pairs_by_vnni = wide && has_vnni() && same_words(pairs, kernels.pairs, kernels);
  if (kernels.pairs_by_vnni) kernels.pairs = pairs;
  const auto dots = by_processor<DotWord>();
  if (!has_bf16()) {
    kernels.dots_missing = "this processor has no products of bfloat16 pairs (VDPBF16PS)";
  } else if (!wide) {
    kernels.dots_missing = "these kernels were built without AVX-512";
  } else if (!same_words(dots, kernels.dots, kernels)) {
    kernels.dots_missing = "VDPBF16PS of this processor does not compute the chain of bf16-exact";
  } else {
    kernels.dots = dots;
    if (!is_faster(kernels))
      kernels.dots_missing = "VDPBF16PS of this processor is no faster than multiply-adds";
  }
  return kernels;
}

}  // namespace triptych::cpu
