// Rows of planes and of matrices as words of the tile unit, float32 rounded to bfloat16, with the
// padding of a convolution.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "backends/cpu/tiles/tile_unit.h"

namespace triptych::cpu {

/// Elements of a word: float32 as bfloat16, or int8.
template <class Element>
struct TileElements {
  using Sum = float;
  static constexpr auto kNumbers = TileNumbers::Bf16;
  static constexpr std::int64_t kInWord = 2;
};
template <>
struct TileElements<std::int8_t> {
  using Sum = std::int32_t;
  static constexpr auto kNumbers = TileNumbers::Int8;
  static constexpr std::int64_t kInWord = 4;
};

/// Most elements of one step.
template <class Element>
inline constexpr std::int64_t kStepElements = kTileDepth* TileElements<Element>::kInWord;
inline constexpr std::int64_t kStepWords = kTileRows * kTileDepth;

/// Up to 16 lines of `k` elements: element (line, i) at line * line_step + i * k_step. One of the
/// two is 1.
struct TileLines {
  std::int64_t lines = 0, k = 0;
  std::int64_t line_step = 1, k_step = 1;
};

/// All steps of the lines. Where k_step is 1 each step holds [line][word], else [word][line].
/// Missing lines and elements are 0.
void pack_steps(const float* from, const TileLines& lines, TileWord* to);
void pack_steps(const std::int8_t* from, const TileLines& lines, TileWord* to);

/// Pairs of bfloat16: to[i] holds even[i * stride] and odd[i * stride]. `odd` may be missing: 0.
void pack_pairs(const float* even, const float* odd, std::int64_t stride, std::int64_t count,
                TileWord* to);

/// Four int8: to[i] holds rows[0][i * stride] lowest. A row may be missing: 0.
void pack_quads(const std::array<const std::int8_t*, 4>& rows, std::int64_t stride,
                std::int64_t count, TileWord* to);

/// Single bfloat16: to[i] is from[i * stride]. True when all are finite.
bool pack_halves(const float* from, std::int64_t stride, std::int64_t count, std::uint16_t* to);

/// The layout of a row of `width` elements in one of `pitch` elements, after `pad` elements of
/// padding.
struct PaddedRow {
  std::int64_t width = 0;
  std::int64_t pad = 0;  ///< may be negative: elements that are left out
  std::int64_t pitch = 0;

  /// Writes zeros around copy(first element of the row, count, to), which is not called where the
  /// row is `outside` the plane or nothing of it is left.
  template <class T, class Copy>
  void write(bool outside, T* to, const Copy& copy) const {
    const auto begin = std::clamp<std::int64_t>(pad, 0, pitch);
    const auto end = outside ? begin : std::clamp(width + pad, begin, pitch);
    std::fill_n(to, begin, T{0});
    if (end > begin) copy(begin - pad, end - begin, to + begin);
    std::fill_n(to + end, pitch - end, T{0});
  }
};

}  // namespace triptych::cpu
