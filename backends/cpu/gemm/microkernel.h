// The innermost loop of every matrix product and convolution: a register tile of C that walks over
// ascending k. In float32 each element of C is one chain of fused multiply-adds, however k is cut
// into calls. In integers a step of k is a pair: a 32-bit word with two int16 factors. Their
// products are added to a wrapping int32. A step of two bfloat16 continues the chain with both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace triptych::cpu {

/// Unit of a product's arithmetic: float, or PairWord for pairs of int16. Both are 4 bytes.
using PairWord = std::int32_t;

/// The word of two factors. k even is `first`.
constexpr PairWord pair_word(std::int32_t first, std::int32_t second) {
  return static_cast<PairWord>((static_cast<std::uint32_t>(first) & 0xFFFFU) |
                               (static_cast<std::uint32_t>(second) << 16U));
}

/// Two bfloat16 of neighbouring k, the earlier one in the upper half: VDPBF16PS adds its product
/// first.
using DotWord = std::uint32_t;

/// The word of two floats that are bfloat16 values. k even is `first`.
constexpr DotWord dot_word(float first, float second) {
  return std::bit_cast<DotWord>(first) | std::bit_cast<DotWord>(second) >> 16U;
}

/// The type of a sum of products of T.
template <class T>
struct ProductSumType {
  using type = T;
};
template <>
struct ProductSumType<DotWord> {
  using type = float;
};
template <class T>
using ProductSum = typename ProductSumType<T>::type;

/// c[r][n] += sum over k of a[k][r] b[k][n]. k = outer * k_inner + inner. `a` holds `rows` elements
/// for each k, a_step from one k to the next (0: no gaps). Row k of b lies at b + outer * b_outer +
/// inner * b_inner.
template <class T>
struct BasicMicroTile {
  const T* a = nullptr;
  const T* b = nullptr;
  ProductSum<T>* c = nullptr;  ///< row r at c + r * c_stride
  std::int64_t c_stride = 0;
  std::int64_t k_outer = 1;
  std::int64_t k_inner = 0;
  std::int64_t a_step = 0;
  /// From one row of `a` to the next, each with its k side by side. 0: as packed, the rows side by
  /// side. Floats alone, and at most kMaxTileRows.
  std::int64_t a_row = 0;
  std::int64_t b_outer = 0;
  std::int64_t b_inner = 0;
  bool accumulate = false;  ///< false: the chain starts at +0 here
  /// With accumulate: a chain of this call's own is added to c, which errs less than one long
  /// chain.
  bool separate = false;
  /// Destination of the rows of b, one after the other, for tiles that read them packed. nullptr:
  /// none. Tiles of two vectors alone.
  T* packed_b = nullptr;
  /// Address to prefetch meanwhile: two lines for each k_outer, ahead_step further each time.
  /// nullptr: nothing.
  const T* ahead = nullptr;
  std::int64_t ahead_step = 0;
  /// The tile of C after this one, of the same height, for prefetching one row per k_outer.
  /// nullptr: none.
  const ProductSum<T>* next_c = nullptr;
};
using MicroTile = BasicMicroTile<float>;
using PairTile = BasicMicroTile<PairWord>;
using DotTile = BasicMicroTile<DotWord>;

inline constexpr int kMaxTileRows = 14;
/// A panel of so few rows makes too few chains to hide the latency of an addition.
inline constexpr int kMostFewRows = 2;
inline constexpr int kMaxNarrowRows = 2 * kMaxTileRows;

/// Tiles of words of two k. Those of bfloat16 have the bits of the chain over all k.
template <class T>
struct WordKernels {
  using Run = void (*)(const BasicMicroTile<T>&);
  std::array<Run, kMaxTileRows + 1> run = {};           ///< by number of rows
  std::array<Run, kMaxNarrowRows + 1> run_narrow = {};  ///< by number of rows

  bool operator==(const WordKernels&) const = default;
};

/// Sets table[r] = kernel_of(r) for each number of rows from 1 to kRows. r is a constant:
/// a std::integral_constant.
template <std::size_t kRows, class Table, class KernelOf>
void fill_by_rows(Table& table, KernelOf kernel_of) {
  [&]<std::size_t... kRowsMinusOne>(std::index_sequence<kRowsMinusOne...>) {
    ((table[kRowsMinusOne + 1] =
          kernel_of(std::integral_constant<std::size_t, kRowsMinusOne + 1>())),
     ...);
  }
  (std::make_index_sequence<kRows>());
}

/// The microkernels of one instruction set.
struct Microkernels {
  int max_rows = 0;        ///< highest tile
  int columns = 0;         ///< width of every tile: read of each row of b, written of each row of c
  int narrow_columns = 0;  ///< width of the narrow tiles, which have up to 2 times the height
  bool fused = false;      ///< it has fused multiply-add. Without, bf16-exact cannot be honoured.
  std::array<void (*)(const MicroTile&), kMaxTileRows + 1> run = {};  ///< by number of rows
  std::array<void (*)(const MicroTile&), kMaxNarrowRows + 1> run_narrow =
      {};  ///< by number of rows
  /// By number of rows: tiles with a_row.
  std::array<void (*)(const MicroTile&), kMaxTileRows + 1> run_apart = {};
  std::array<void (*)(const MicroTile&), kMaxTileRows + 1> run_narrow_apart = {};
  /// By instructions of the processor (dot_unit.h), else by others with the same bits.
  WordKernels<PairWord> pairs;
  WordKernels<DotWord> dots;
  bool pairs_by_vnni = false;
  /// Empty when `dots` are faster than `run`, else why they are not.
  std::string dots_missing;
  int few_panels = 0;  ///< that run_few takes, side by side in c
  /// By number of rows: tiles of so many panels, the next one `b_panel` elements behind. For
  /// k_outer 1 and chains that start at +0.
  std::array<void (*)(const MicroTile&, std::int64_t b_panel), kMostFewRows + 1> run_few = {};
  /// By number of rows: row k of b lies at b + offsets[k]. For k_outer 1.
  std::array<void (*)(const MicroTile&, const std::int64_t* offsets), kMaxTileRows + 1>
      run_scattered = {};

  /// The tile of height `rows` for this type of element, narrow or not.
  void run_tile(std::int64_t rows, const MicroTile& tile, bool narrow = false) const {
    const auto r = static_cast<std::size_t>(rows);
    if (tile.a_row != 0) return narrow ? run_narrow_apart[r](tile) : run_apart[r](tile);
    narrow ? run_narrow[r](tile) : run[r](tile);
  }
  void run_tile(std::int64_t rows, const PairTile& tile, bool narrow = false) const {
    run_words(pairs, rows, tile, narrow);
  }
  void run_tile(std::int64_t rows, const DotTile& tile, bool narrow = false) const {
    run_words(dots, rows, tile, narrow);
  }

 private:
  template <class T>
  static void run_words(const WordKernels<T>& words, std::int64_t rows,
                        const BasicMicroTile<T>& tile, bool narrow) {
    const auto r = static_cast<std::size_t>(rows);
    narrow ? words.run_narrow[r](tile) : words.run[r](tile);
  }
};

/// Those for this processor.
const Microkernels& microkernels();

}  // namespace triptych::cpu
