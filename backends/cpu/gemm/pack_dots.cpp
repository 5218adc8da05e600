// Packing of bfloat16 operands in words of two k: floats are packed for a few k, then joined.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>

#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/simd.h"
#include "backends/host/parallel.h"

namespace triptych::cpu {
namespace {

// Elements of K that are joined at once: an even number. A panel of them fits the first cache.
constexpr std::int64_t kJoined = 32;
// Two of the widest vectors of any instruction set (2048 bits).
constexpr std::int64_t kMaxColumns = 128;

/// One tile of `height` rows.
void pack_rows_of_tile(const RowSource& source, std::int64_t height, DotWord* to) {
  alignas(64) std::array<float, static_cast<std::size_t>(kJoined) * kMaxTileRows> rows;
  std::int64_t filled = 0;
  const auto join = [&] {
    join_rows(rows.data(), filled, height, 0.0F, reinterpret_cast<float*>(to));
    to += dot_depth(filled) * height;
    filled = 0;
  };
  for (std::size_t tap = 0; tap < source.tap_offsets.size(); ++tap) {
    for (std::int64_t c = 0; c < source.channels;) {
      const auto count = std::min(source.channels - c, kJoined - filled);
      pack_tile({.data = source.data + c * source.channel_stride,
                 .row_stride = source.row_stride,
                 .channel_stride = source.channel_stride,
                 .channels = count,
                 .tap_offsets = source.tap_offsets.subspan(tap, 1)},
                height, rows.data() + filled * height, Rounding::ToBf16);
      c += count;
      filled += count;
      if (filled == kJoined) join();
    }
  }
  if (filled > 0) join();
}

/// Packs words `k` of columns `n` by pack(elements of K, columns of one panel, floats).
template <class Pack>
void pack_panels(std::int64_t depth, Range k, Range n, DotWord* panels, const Pack& pack) {
  const std::int64_t width = microkernels().columns;
  TRIPTYCH_ASSERT(width <= kMaxColumns);
  alignas(64) std::array<float, static_cast<std::size_t>(kJoined) * kMaxColumns> floats;
  for (auto first = n.begin; first < n.end; first += width) {
    const Range columns = {first, std::min(first + width, n.end)};
    for (auto at = 2 * k.begin; at < std::min(2 * k.end, depth); at += kJoined) {
      const Range part = {at, std::min({at + kJoined, 2 * k.end, depth})};
      pack(part, columns, floats.data());
      join_rows(floats.data(), part.size(), width, -0.0F, reinterpret_cast<float*>(panels));
      panels += dot_depth(part.size()) * width;
    }
  }
}

}  // namespace

void join_rows(const float* from, std::int64_t rows, std::int64_t width, float beyond, float* to) {
  const auto word = [](float first, float second) {
    return std::bit_cast<float>(dot_word(first, second));
  };
  simd([=] {
    const float* even = from;
    float* words = to;
    for (std::int64_t row = 0; row + 1 < rows; row += 2, even += 2 * width, words += width)
      for (std::int64_t i = 0; i < width; ++i) words[i] = word(even[i], even[width + i]);
    if (rows % 2 != 0)
      for (std::int64_t i = 0; i < width; ++i) words[i] = word(even[i], beyond);
  });
}

void pack_dot_rows(const RowSource& source, std::int64_t m, DotWord* to) {
  const RowTiles tiles(m);
  const auto words = dot_depth(source.k());
  const auto grain =
      ceil_div(std::int64_t{8192}, std::max<std::int64_t>(1, words * tiles.height(0)));
  parallel_for(tiles.count(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto tile = begin; tile < end; ++tile) {
      const auto row = tiles.begin(tile);
      RowSource rows = source;
      rows.data += row * source.row_stride;
      pack_rows_of_tile(rows, tiles.height(tile), to + row * words);
    }
  });
}

void pack_dot_patches(const PatchGrid& grid, const float* x, Range k, Range n, DotWord* panels) {
  pack_panels(grid.k(), k, n, panels, [&](Range part, Range columns, float* to) {
    pack_patches(grid, x, part, columns, to, Rounding::ToBf16);
  });
}

void pack_dot_columns(const float* data, std::int64_t stride, bool transposed, std::int64_t depth,
                      Range k, Range n, DotWord* panels) {
  pack_panels(depth, k, n, panels, [&](Range part, Range columns, float* to) {
    pack_columns(data, stride, transposed, part, columns, to, Rounding::ToBf16);
  });
}

}  // namespace triptych::cpu
