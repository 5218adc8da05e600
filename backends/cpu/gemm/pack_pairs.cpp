// Packing of int8 operands in pairs of channels.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/cpu/gemm/pack.h"
#include "backends/cpu/simd.h"
#include "backends/host/parallel.h"

namespace triptych::cpu {
namespace {

// Two of the widest vectors of any instruction set (2048 bits).
constexpr std::int64_t kMaxColumns = 128;

/// Columns [first, last) of a panel that read x at one distance from `offset` on.
struct Run {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t offset = 0;
};

/// Values that one tap reads for the columns of one panel. Columns in no run are padding.
struct TapRuns {
  std::array<Run, kMaxColumns> runs;
  int count = 0;
  bool full = false;  ///< no column is padding

  TapRuns(const PatchGrid& grid, const std::array<std::int64_t, 2>& tap, Range columns,
          std::int64_t width) {
    std::int64_t covered = 0;
    for (auto at = columns.begin; at < columns.end;) {
      const auto row = at / grid.out[1], column = at % grid.out[1];
      const auto end = std::min(columns.end, at + grid.out[1] - column);
      add(grid, row * grid.stride[0] + tap[0], column * grid.stride[1] + tap[1],
          {at - columns.begin, end - columns.begin}, covered);
      at = end;
    }
    full = covered == width;
  }

 private:
  /// Columns `at` of row y of x. The first reads column `x`.
  void add(const PatchGrid& grid, std::int64_t y, std::int64_t x, Range at, std::int64_t& covered) {
    if (y < 0 || y >= grid.in[0]) return;
    const auto stride = grid.stride[1];
    const auto skipped = x < 0 ? ceil_div(-x, stride) : 0;
    const auto inside = x < grid.in[1] ? ceil_div(grid.in[1] - x, stride) : 0;
    const auto first = at.begin + skipped, last = std::min(at.end, at.begin + inside);
    if (first >= last) return;
    runs[static_cast<std::size_t>(count++)] = {first, last, y * grid.in[1] + x + skipped * stride};
    covered += last - first;
  }
};

/// to[i] = the pair of x[i * stride] and other[i * stride].
[[gnu::always_inline]] inline void pack_pairs(const std::int8_t* x, const std::int8_t* other,
                                              std::int64_t stride, std::int64_t count,
                                              PairWord* to) {
  if (stride == 1) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) to[i] = pair_word(x[i], other[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = pair_word(x[i * stride], other[i * stride]);
  }
}

[[gnu::always_inline]] inline void pack_single(const std::int8_t* x, std::int64_t stride,
                                               std::int64_t count, PairWord* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = pair_word(x[i * stride], 0);
}

/// One panel: columns `n`, at most `width` of them.
void pack_panel(const PatchGrid& grid, const std::int8_t* x, Range k, Range n, std::int64_t width,
                PairWord* to) {
  const auto plane = grid.in[0] * grid.in[1];
  const auto pairs = ceil_div(grid.channels, 2);
  const auto stride = grid.stride[1];
  for (auto at = k.begin; at < k.end;) {
    const TapRuns tap(grid, grid.taps[static_cast<std::size_t>(at / pairs)], n, width);
    const auto end = std::min(k.end, at - at % pairs + pairs);
    simd([=, &tap, &grid] {
      for (auto word = at; word < end; ++word) {
        const auto channel = 2 * (word % pairs);
        const auto* from = x + channel * plane;
        auto* row = to + (word - k.begin) * width;
        if (!tap.full) std::fill_n(row, width, 0);
        for (int r = 0; r < tap.count; ++r) {
          const auto& run = tap.runs[static_cast<std::size_t>(r)];
          const auto* first = from + run.offset;
          if (channel + 1 < grid.channels) {
            pack_pairs(first, first + plane, stride, run.last - run.first, row + run.first);
          } else {
            pack_single(first, stride, run.last - run.first, row + run.first);
          }
        }
      }
    });
    at = end;
  }
}

}  // namespace

void pack_pair_rows(const PairSource& source, std::int64_t m, PairWord* to) {
  const RowTiles tiles(m);
  const auto taps = static_cast<std::int64_t>(source.tap_offsets.size());
  const auto depth = pair_depth(source.channels, taps);
  const auto grain =
      ceil_div(std::int64_t{16384}, std::max<std::int64_t>(1, depth * tiles.height(0)));
  parallel_for(tiles.count(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto tile = begin; tile < end; ++tile) {
      const auto first = tiles.begin(tile), height = tiles.height(tile);
      auto* word = to + first * depth;
      for (const auto tap : source.tap_offsets) {
        for (std::int64_t c = 0; c < source.channels; c += 2) {
          for (auto row = first; row < first + height; ++row) {
            const auto* from =
                source.data + row * source.row_stride + tap + c * source.channel_stride;
            *word++ = pair_word(*from, c + 1 < source.channels ? from[source.channel_stride] : 0);
          }
        }
      }
    }
  });
}

void pack_pair_patches(const PatchGrid& grid, const std::int8_t* x, Range k, Range n,
                       PairWord* panels) {
  const std::int64_t width = microkernels().columns;
  TRIPTYCH_ASSERT(width <= kMaxColumns);
  for (auto first = n.begin; first < n.end; first += width) {
    pack_panel(grid, x, k, {first, std::min(first + width, n.end)}, width, panels);
    panels += k.size() * width;
  }
}

}  // namespace triptych::cpu
