// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/microkernel.h"

#include <type_traits>
#include <utility>

#include <hwy/cache_control.h>

#include "backends/cpu/gemm/dot_unit.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/microkernel.cpp"
#include <hwy/foreach_target.h>
// Must come after foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace triptych::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Words = hn::ScalableTag<PairWord>;
using DotWords = hn::ScalableTag<DotWord>;

// Two vectors a row, and as many rows as leave registers for one row of b and one element of a.
constexpr int kTileRows = HWY_TARGET == HWY_AVX3 ? 14 : HWY_TARGET == HWY_AVX2 ? 6 : 4;

/// sum + a b, in each lane.
HWY_INLINE hn::Vec<Floats> multiply_add(hn::Vec<Floats> a, hn::Vec<Floats> b, hn::Vec<Floats> sum) {
  return hn::MulAdd(a, b, sum);
}

/// The same with both products of a pair. Every sum wraps, so their order does not matter.
HWY_INLINE hn::Vec<Words> multiply_add(hn::Vec<Words> a, hn::Vec<Words> b, hn::Vec<Words> sum) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const hn::Repartition<std::int16_t, Words> halves;
  auto unused = hn::Zero(Words());
  return hn::ReorderWidenMulAccumulate(Words(), hn::BitCast(halves, a), hn::BitCast(halves, b), sum,
                                       unused);
#else
  const auto first = [](auto word) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(word)); };
  const auto second = [](auto word) { return hn::ShiftRight<16>(word); };
  return hn::Add(sum, hn::Add(hn::Mul(first(a), first(b)), hn::Mul(second(a), second(b))));
#endif
}

/// The same with two bfloat16, one product after the other.
HWY_INLINE hn::Vec<Floats> multiply_add(hn::Vec<DotWords> a, hn::Vec<DotWords> b,
                                        hn::Vec<Floats> sum) {
  const auto first = [](auto word) {
    return hn::BitCast(Floats(), hn::And(word, hn::Set(DotWords(), 0xFFFF0000U)));
  };
  const auto second = [](auto word) { return hn::BitCast(Floats(), hn::ShiftLeft<16>(word)); };
  return hn::MulAdd(second(a), second(b), hn::MulAdd(first(a), first(b), sum));
}

/// Result of a chain: one NaN for all, whichever the processor made of it, as on the
/// array.
HWY_INLINE hn::Vec<Floats> canonical(hn::Vec<Floats> sum) {
  return hn::IfThenElse(hn::IsNaN(sum), hn::BitCast(Floats(), hn::Set(Words(), 0x7FC00000)), sum);
}

/// Makes the results of chains canonical, and calls store(number of the vector, result). One sum of
/// all finds out whether any of them is NaN, with units that multiply-adds leave idle.
template <class Store, std::size_t... R>
HWY_INLINE void store_results(hn::Vec<Floats> (&sums)[sizeof...(R)], std::index_sequence<R...>,
                              const Store& store) {
  const Floats d;
  hn::Vec<Floats> parts[] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  ((parts[R % 4] = hn::Add(parts[R % 4], sums[R])), ...);
  const auto all = hn::Add(hn::Add(parts[0], parts[1]), hn::Add(parts[2], parts[3]));
  if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(all)))) {
    ((sums[R] = canonical(sums[R])), ...);
  }
  (store(R, sums[R]), ...);
}
template <class Store, std::size_t... R>
HWY_INLINE void store_results(hn::Vec<Words> (&sums)[sizeof...(R)], std::index_sequence<R...>,
                              const Store& store) {
  (store(R, sums[R]), ...);
}

// Rows of b that lie apart are fetched so far ahead.
constexpr std::int64_t kRowsAhead = 24;

/// A tile that is kVectors wide. R counts its vectors, row by row. kPacks: it has a packed_b.
/// kApart: its rows of a lie apart.
template <std::size_t kVectors, bool kPacks, bool kApart, class T, std::size_t... R>
HWY_INLINE void multiply(const BasicMicroTile<T>& tile, std::index_sequence<R...>) {
  constexpr auto rows = static_cast<std::int64_t>(sizeof...(R) / kVectors);
  const hn::ScalableTag<T> d;
  using V = hn::Vec<hn::ScalableTag<T>>;
  const hn::ScalableTag<ProductSum<T>> s;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  using Sum = hn::Vec<hn::ScalableTag<ProductSum<T>>>;
  Sum sums[] = {((void)R, hn::Zero(s))...};
  const auto in_c = [c = tile.c, c_stride = tile.c_stride, lanes](std::size_t r) {
    return c + static_cast<std::ptrdiff_t>(r / kVectors) * c_stride +
           static_cast<std::ptrdiff_t>(r % kVectors) * lanes;
  };
  if (tile.accumulate && !tile.separate) ((sums[R] = hn::LoadU(s, in_c(R))), ...);
  const T* a = tile.a;
  T* packed_b = tile.packed_b;
  const auto a_row = kApart ? tile.a_row : 1;
  const auto a_step = kApart ? 1 : tile.a_step == 0 ? rows : tile.a_step;
  const auto b_inner = tile.b_inner, b_packed = static_cast<std::int64_t>(kVectors) * lanes;
  const auto add_products = [&](const T* b, std::int64_t a_next, std::int64_t b_next)
      __attribute__((always_inline)) {
    for (std::int64_t inner = 0; inner < tile.k_inner; ++inner) {
      V b_row[kVectors];
      for (std::size_t i = 0; i < kVectors; ++i) {
        const auto column = static_cast<std::ptrdiff_t>(i) * lanes;
        b_row[i] = hn::LoadU(d, b + column);
        if constexpr (kPacks) {
          hn::StoreU(b_row[i], d, packed_b + column);
          hwy::Prefetch(b + kRowsAhead * b_next + column);
        }
      }
      if constexpr (kPacks) packed_b += b_packed;
      const auto in_a = [&](std::size_t r) {
        return hn::Set(d, a[static_cast<std::ptrdiff_t>(r / kVectors) * a_row]);
      };
      ((sums[R] = multiply_add(in_a(R), b_row[R % kVectors], sums[R])), ...);
      a += a_next;
      b += b_next;
    }
  };
  for (std::int64_t outer = 0; outer < tile.k_outer; ++outer) {
    const T* b = tile.b + outer * tile.b_outer;
    if (tile.ahead != nullptr) {
      const T* ahead = tile.ahead + outer * tile.ahead_step;
      hwy::Prefetch(ahead);
      hwy::Prefetch(ahead + 64 / sizeof(T));
    }
    if (tile.next_c != nullptr && outer < rows) {
      const auto* row = tile.next_c + outer * tile.c_stride;
      hwy::Prefetch(row);
      hwy::Prefetch(row + 64 / sizeof(T));
    }
    // Steps that the compiler knows make shorter addresses.
    if (!kApart && a_step == rows && b_inner == b_packed) {
      add_products(b, rows, b_packed);
    } else {
      add_products(b, a_step, b_inner);
    }
  }
  if (tile.accumulate && tile.separate) {
    ((sums[R] = hn::Add(hn::LoadU(s, in_c(R)), sums[R])), ...);
  }
  store_results(sums, std::index_sequence<R...>(),
                [&](std::size_t r, Sum sum) { hn::StoreU(sum, s, in_c(r)); });
}

template <std::size_t kVectors, bool kApart, class T, std::size_t kRows>
void multiply_rows(const BasicMicroTile<T>& tile) {
  constexpr std::make_index_sequence<kRows * kVectors> vectors;
  if constexpr (kVectors == 2 && !std::is_same_v<T, DotWord>) {
    if (tile.packed_b != nullptr) return multiply<kVectors, true, kApart>(tile, vectors);
  }
  multiply<kVectors, false, kApart>(tile, vectors);
}

constexpr std::size_t kFewPanels = HWY_TARGET == HWY_AVX3 ? 4 : 2;

/// R counts the vectors, row by row.
template <std::size_t... R>
HWY_INLINE void multiply_panels(const MicroTile& tile, std::int64_t b_panel,
                                std::index_sequence<R...>) {
  constexpr std::size_t width = 2 * kFewPanels;
  const Floats d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  hn::Vec<Floats> sums[] = {((void)R, hn::Zero(d))...};
  const float* a = tile.a;
  const float* b = tile.b;
  for (std::int64_t k = 0; k < tile.k_inner; ++k, a += tile.a_step, b += tile.b_inner) {
    hn::Vec<Floats> b_row[width];
    for (std::size_t i = 0; i < width; ++i) {
      b_row[i] = hn::LoadU(d, b + static_cast<std::ptrdiff_t>(i / 2) * b_panel +
                                  static_cast<std::ptrdiff_t>(i % 2) * lanes);
    }
    ((sums[R] = multiply_add(hn::Set(d, a[R / width]), b_row[R % width], sums[R])), ...);
  }
  (hn::StoreU(canonical(sums[R]), d,
              tile.c + static_cast<std::ptrdiff_t>(R / width) * tile.c_stride +
                  static_cast<std::ptrdiff_t>(R % width) * lanes),
   ...);
}

template <std::size_t kRows>
void multiply_few(const MicroTile& tile, std::int64_t b_panel) {
  multiply_panels(tile, b_panel, std::make_index_sequence<kRows * 2 * kFewPanels>());
}

/// R counts the vectors, row by row, two in each.
template <std::size_t... R>
HWY_INLINE void multiply_scattered(const MicroTile& tile, const std::int64_t* offsets,
                                   std::index_sequence<R...>) {
  const Floats d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const auto in_c = [c = tile.c, c_stride = tile.c_stride, lanes](std::size_t r) {
    return c + static_cast<std::ptrdiff_t>(r / 2) * c_stride +
           static_cast<std::ptrdiff_t>(r % 2) * lanes;
  };
  hn::Vec<Floats> sums[] = {((void)R, hn::Zero(d))...};
  if (tile.accumulate) ((sums[R] = hn::LoadU(d, in_c(R))), ...);
  const float* a = tile.a;
  for (std::int64_t k = 0; k < tile.k_inner; ++k, a += sizeof...(R) / 2) {
    const float* b = tile.b + offsets[k];
    const hn::Vec<Floats> b_row[] = {hn::LoadU(d, b), hn::LoadU(d, b + lanes)};
    ((sums[R] = multiply_add(hn::Set(d, a[R / 2]), b_row[R % 2], sums[R])), ...);
  }
  store_results(sums, std::index_sequence<R...>(),
                [&](std::size_t r, auto sum) { hn::StoreU(sum, d, in_c(r)); });
}

template <std::size_t kRows>
void multiply_scattered_rows(const MicroTile& tile, const std::int64_t* offsets) {
  multiply_scattered(tile, offsets, std::make_index_sequence<kRows * 2>());
}

/// Tiles of one kind for fill_by_rows.
template <std::size_t kVectors, bool kApart, class T>
constexpr auto kTiles = [](auto rows) { return multiply_rows<kVectors, kApart, T, rows>; };

}  // namespace

Microkernels make_microkernels() {
  Microkernels all;
  all.max_rows = kTileRows;
  all.narrow_columns = static_cast<int>(hn::Lanes(Floats()));
  all.columns = 2 * all.narrow_columns;
  // A page has none, and needs none: products of two bfloat16 are exact there (decision 62).
  all.fused = HWY_NATIVE_FMA != 0 || HWY_TARGET == HWY_WASM;
  all.few_panels = kFewPanels;
  fill_by_rows<kMostFewRows>(all.run_few, [](auto rows) { return multiply_few<rows>; });
  fill_by_rows<kTileRows>(all.run_scattered,
                          [](auto rows) { return multiply_scattered_rows<rows>; });
  fill_by_rows<kTileRows>(all.run_apart, kTiles<2, true, float>);
  fill_by_rows<kTileRows>(all.run_narrow_apart, kTiles<1, true, float>);
  fill_by_rows<kTileRows>(all.run, kTiles<2, false, float>);
  fill_by_rows<kTileRows>(all.pairs.run, kTiles<2, false, PairWord>);
  fill_by_rows<kTileRows>(all.dots.run, kTiles<2, false, DotWord>);
  fill_by_rows<2 * kTileRows>(all.run_narrow, kTiles<1, false, float>);
  fill_by_rows<2 * kTileRows>(all.pairs.run_narrow, kTiles<1, false, PairWord>);
  fill_by_rows<2 * kTileRows>(all.dots.run_narrow, kTiles<1, false, DotWord>);
  return all;
}

}  // namespace triptych::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triptych::cpu {

HWY_EXPORT(make_microkernels);

namespace {

/// Apart from microkernels(), which is called for each block: an object that is returned by value
/// would have it check its stack every time.
HWY_NOINLINE const Microkernels& choose_microkernels() {
  static const Microkernels chosen = with_dot_unit(HWY_DYNAMIC_DISPATCH(make_microkernels)());
  return chosen;
}

}  // namespace

const Microkernels& microkernels() {
  static const Microkernels& chosen = choose_microkernels();
  return chosen;
}

}  // namespace triptych::cpu
#endif
