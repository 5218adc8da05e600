// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/tiles/pack_rows.h"

#include <bit>

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

}  // namespace

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
