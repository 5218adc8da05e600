// Rows of planes as words of the tile unit, float32 rounded to bfloat16, with the padding of a
// convolution.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "backends/cpu/tiles/tile_unit.h"

namespace triptych::cpu {

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
