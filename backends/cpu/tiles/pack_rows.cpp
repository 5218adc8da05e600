// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiles/pack_rows.h"

#include <bit>
#include <cstring>

#include "backends/cpu/simd.h"
#include "core/base/float16.h"

namespace triptych::cpu {
namespace {

/// `value` rounded, in the upper half of a word.
TileWord upper_half(float value) { return std::bit_cast<TileWord>(round_to_bf16(value)); }

/// Calls body with the stride, as a constant where it is 1.
template <class Body>
[[gnu::always_inline]] inline void with_stride(std::int64_t stride, const Body& body) {
  if (stride == 1) return body(std::integral_constant<std::int64_t, 1>());
  if (stride == 2) return body(std::integral_constant<std::int64_t, 2>());
  body(stride);
}

/// `lines` of a step, side by side in memory each: [line][word].
[[gnu::always_inline]] inline void pack_lines(const float* from, std::int64_t line_step,
                                              std::int64_t lines, std::int64_t depth,
                                              TileWord* to) {
  for (std::int64_t line = 0; line < lines; ++line) {
    const float* at = from + line * line_step;
    alignas(64) std::uint16_t halves[kStepElements<float>] = {};
    if (depth == kStepElements<float>) {
      for (std::int64_t i = 0; i < kStepElements<float>; ++i)
        halves[i] = static_cast<std::uint16_t>(upper_half(at[i]) >> 16);
    } else {
      for (std::int64_t i = 0; i < depth; ++i)
        halves[i] = static_cast<std::uint16_t>(upper_half(at[i]) >> 16);
    }
    std::memcpy(to + line * kTileDepth, halves, sizeof(halves));
  }
}
[[gnu::always_inline]] inline void pack_lines(const std::int8_t* from, std::int64_t line_step,
                                              std::int64_t lines, std::int64_t depth,
                                              TileWord* to) {
  for (std::int64_t line = 0; line < lines; ++line) {
    auto* bytes = reinterpret_cast<std::byte*>(to + line * kTileDepth);
    std::memcpy(bytes, from + line * line_step, static_cast<std::size_t>(depth));
    std::memset(bytes + depth, 0, static_cast<std::size_t>(kStepElements<std::int8_t> - depth));
  }
}

/// A word of each of `lines` neighbours, from the rows of its elements.
[[gnu::always_inline]] inline void pack_word(const std::array<const float*, 2>& rows,
                                             std::int64_t lines, TileWord* to) {
  for (std::int64_t i = 0; i < lines; ++i)
    to[i] = upper_half(rows[0][i]) >> 16 | upper_half(rows[1][i]);
}
[[gnu::always_inline]] inline void pack_word(const std::array<const std::int8_t*, 4>& rows,
                                             std::int64_t lines, TileWord* to) {
  const auto byte = [&](std::size_t row, std::int64_t i) {
    return TileWord{static_cast<std::uint8_t>(rows[row][i])};
  };
  for (std::int64_t i = 0; i < lines; ++i)
    to[i] = byte(0, i) | byte(1, i) << 8 | byte(2, i) << 16 | byte(3, i) << 24;
}

/// `lines` of a step that are neighbours for each k: [word][line].
template <class Element>
[[gnu::always_inline]] inline void pack_words(const Element* from, std::int64_t k_step,
                                              std::int64_t lines, std::int64_t depth,
                                              TileWord* to) {
  constexpr auto in_word = TileElements<Element>::kInWord;
  static constexpr Element zeros[kTileRows] = {};
  for (std::int64_t word = 0; word * in_word < depth; ++word) {
    std::array<const Element*, in_word> rows;
    for (std::int64_t i = 0; i < in_word; ++i) {
      const auto k = word * in_word + i;
      rows[static_cast<std::size_t>(i)] = k < depth ? from + k * k_step : zeros;
    }
    // A count that the compiler knows makes whole vectors.
    lines == kTileRows ? pack_word(rows, kTileRows, to + word * kTileRows)
                       : pack_word(rows, lines, to + word * kTileRows);
  }
}

template <class Element>
void pack_all_steps(const Element* from, const TileLines& lines, TileWord* to) {
  constexpr auto most = kStepElements<Element>;
  simd([=] {
    auto* step = to;
    for (std::int64_t k = 0; k < lines.k; k += most, step += kStepWords) {
      const auto depth = std::min(most, lines.k - k);
      if (lines.lines < kTileRows || depth < most) std::fill_n(step, kStepWords, TileWord{0});
      if (lines.k_step == 1) {
        pack_lines(from + k, lines.line_step, lines.lines, depth, step);
      } else {
        pack_words(from + k * lines.k_step, lines.k_step, lines.lines, depth, step);
      }
    }
  });
}

}  // namespace

void pack_steps(const float* from, const TileLines& lines, TileWord* to) {
  pack_all_steps(from, lines, to);
}

void pack_steps(const std::int8_t* from, const TileLines& lines, TileWord* to) {
  pack_all_steps(from, lines, to);
}

void pack_pairs(const float* even, const float* odd, std::int64_t stride, std::int64_t count,
                TileWord* to) {
  simd([=] {
    with_stride(stride, [=](auto step) {
      if (odd == nullptr) {
        for (std::int64_t i = 0; i < count; ++i) to[i] = upper_half(even[i * step]) >> 16;
        return;
      }
      for (std::int64_t i = 0; i < count; ++i)
        to[i] = upper_half(even[i * step]) >> 16 | upper_half(odd[i * step]);
    });
  });
}

void pack_quads(const std::array<const std::int8_t*, 4>& rows, std::int64_t stride,
                std::int64_t count, TileWord* to) {
  if (std::ranges::find(rows, nullptr) != rows.end()) {
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = 0;
      for (std::size_t r = 0; r < rows.size(); ++r)
        if (rows[r] != nullptr)
          to[i] |= TileWord{static_cast<std::uint8_t>(rows[r][i * stride])} << (8 * r);
    }
    return;
  }
  simd([=] {
    with_stride(stride, [=](auto step) {
      for (std::int64_t i = 0; i < count; ++i) {
        const auto byte = [&](std::size_t r) {
          return TileWord{static_cast<std::uint8_t>(rows[r][i * step])};
        };
        to[i] = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
      }
    });
  });
}

bool pack_halves(const float* from, std::int64_t stride, std::int64_t count, std::uint16_t* to) {
  constexpr TileWord exponent = 0x7F800000U;
  TileWord largest = 0;
  simd([=, &largest] {
    with_stride(stride, [=, &largest](auto step) {
      TileWord most = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto word = upper_half(from[i * step]);
        most = std::max(most, word & exponent);
        to[i] = static_cast<std::uint16_t>(word >> 16);
      }
      largest = most;
    });
  });
  return largest < exponent;
}

}  // namespace triptych::cpu
