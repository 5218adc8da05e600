// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/conv_store.h"

#include <algorithm>
#include <numeric>

#include "backends/cpu/simd.h"
#include "backends/cpu/tiles/store_rows.h"

namespace triptych::cpu {
namespace {

/// Calls row(column of the block, position in the plane, count) for each piece of a grid's row.
template <class Row>
[[gnu::always_inline]] inline void for_each_grid_row(const PositionGrid& grid, Range n,
                                                     const Row& row) {
  for (auto at = n.begin; at < n.end;) {
    const auto column = at % grid.columns;
    const auto count = std::min(n.end - at, grid.columns - column);
    row(at - n.begin, grid.first + at / grid.columns * grid.row_step + column * grid.column_step,
        count);
    at += count;
  }
}

template <class Finish>
void store_row(const ChannelStore<Finish>& store, std::int64_t channel, const PositionGrid& grid,
               Range n, const typename Finish::Sum* from) {
  auto* plane = store.y + channel * store.plane;
  store.finish.with(channel, [&](const auto& finished) {
    for_each_grid_row(grid, n, [&](std::int64_t at, std::int64_t position, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        plane[position + i * grid.column_step] = finished(from[at + i]);
      }
    });
  });
}

// Columns that store_row_pair interleaves at once.
constexpr std::int64_t kPairedColumns = 256;

/// Two taps of one kernel row interleave to a contiguous row of y. All columns of the block are one
/// loop, however short the grid's rows are.
template <class Finish>
void store_row_pair(const ChannelStore<Finish>& store, std::int64_t channel,
                    const PositionGrid& grid, Range n, const typename Finish::Sum* left,
                    const typename Finish::Sum* right) {
  auto* plane = store.y + channel * store.plane;
  typename Finish::Out both[2 * kPairedColumns];
  for (auto begin = n.begin; begin < n.end; begin += kPairedColumns) {
    const Range part = {begin, std::min(n.end, begin + kPairedColumns)};
    simd([&store, channel, to = &both[0], first = left + (begin - n.begin),
          second = right + (begin - n.begin), count = part.size()] {
      store.finish.with(channel, [=](const auto& finished) {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) {
          to[2 * i] = finished(first[i]);
          to[2 * i + 1] = finished(second[i]);
        }
      });
    });
    for_each_grid_row(grid, part, [&](std::int64_t at, std::int64_t position, std::int64_t count) {
      std::copy_n(both + 2 * at, 2 * count, plane + position);
    });
  }
}

}  // namespace

PatchGrid patch_grid(const ConvGeometry& g) {
  const auto& w = g.window;
  PatchGrid grid = {.channels = g.group_in(),
                    .in = {w.in[0], w.in[1]},
                    .out = {w.out[0], w.out[1]},
                    .stride = {w.stride[0], w.stride[1]}};
  for (std::int64_t y = 0; y < w.kernel[0]; ++y) {
    for (std::int64_t x = 0; x < w.kernel[1]; ++x) {
      grid.taps.push_back({y * w.dilation[0] - w.pad_begin[0], x * w.dilation[1] - w.pad_begin[1]});
    }
  }
  grid.flatten_pointwise();
  return grid;
}

std::vector<std::int64_t> all_taps(const ConvGeometry& g) {
  std::vector<std::int64_t> taps(static_cast<std::size_t>(g.taps()));
  std::iota(taps.begin(), taps.end(), 0);
  return taps;
}

void finish_sums(const FloatFinish& finish, std::int64_t channel, float* sums, std::int64_t count) {
  finish.with(channel, [=](const auto& finished) {
    simd([=] {
      for (std::int64_t i = 0; i < count; ++i) sums[i] = finished(sums[i]);
    });
  });
}

void store_positions(const FloatFinish& finish, const float* sums,
                     const std::array<std::int64_t, 2>& size, std::int64_t channel,
                     std::uint16_t* to, std::int64_t step, TileUnit::Kind kind) {
  store_rows({.sums = sums,
              .sums_stride = kTileBlock,
              .positions = size[0],
              .channels = size[1],
              .bias = finish.bias() == nullptr ? nullptr : finish.bias() + channel,
              .relu = finish.relu()},
             to, step, kind);
}

void store_positions(const RequantizeFinish& finish, const std::int32_t* sums,
                     const std::array<std::int64_t, 2>& size, std::int64_t channel, std::int8_t* to,
                     std::int64_t step, TileUnit::Kind kind) {
  store_rows({.sums = sums,
              .sums_stride = kTileBlock,
              .positions = size[0],
              .channels = size[1],
              .bias = finish.bias() + channel,
              .multiplier = finish.multiplier() + channel,
              .shift = finish.shift() + channel,
              .relu = finish.relu()},
             to, step, kind);
}

template <class Finish>
void ChannelStore<Finish>::store(const Block& block) const {
  simd([this, &block] {
    const auto count = block.n.size();
    for (auto m = block.m.begin; m < block.m.end; ++m) {
      const auto* from = block.values + (m - block.m.begin) * block.stride;
      auto* to = y + m * plane + block.n.begin;
      finish.with(m, [=](const auto& finished) {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) to[i] = finished(from[i]);
      });
    }
  });
}

template <class Finish>
void ChannelStore<Finish>::store_on_grid(const PositionGrid& grid, const Block& block) const {
  for (auto m = block.m.begin; m < block.m.end; ++m) {
    store_row(*this, m, grid, block.n, block.values + (m - block.m.begin) * block.stride);
  }
}

template <class Finish>
void ChannelStore<Finish>::store_tiles(const std::int64_t (&taps)[2], std::int64_t columns,
                                       const Block& block) const {
  const auto area = taps[0] * taps[1];
  for (auto m = block.m.begin; m < block.m.end; ++m) {
    const auto tap = m % area;
    const PositionGrid grid = {.columns = columns,
                               .first = tap / taps[1] * columns * taps[1] + tap % taps[1],
                               .row_step = area * columns,
                               .column_step = taps[1]};
    const auto* from = block.values + (m - block.m.begin) * block.stride;
    if (taps[1] == 2 && tap % 2 == 0 && m + 1 < block.m.end) {
      store_row_pair(*this, m / area, grid, block.n, from, from + block.stride);
      ++m;
    } else {
      store_row(*this, m / area, grid, block.n, from);
    }
  }
}

template struct ChannelStore<FloatFinish>;
template struct ChannelStore<SumFinish>;
template struct ChannelStore<RequantizeFinish>;

}  // namespace triptych::cpu
