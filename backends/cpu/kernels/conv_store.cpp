// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/conv_store.h"

#include <algorithm>

#include "backends/cpu/simd.h"

namespace triptych::cpu {
namespace {

/// Calls body(finish), `finish` being what is left to do to a sum of this channel.
template <class Body>
[[gnu::always_inline]] inline void with_finish(const ChannelStore& store, std::int64_t channel,
                                               const Body& body) {
  const float bias = store.bias == nullptr ? 0 : store.bias[channel];
  const auto cut = [](float sum) { return sum < 0 ? 0.0F : sum; };
  if (store.bias == nullptr) {
    store.relu ? body([=](float sum) { return cut(sum); }) : body([](float sum) { return sum; });
  } else if (store.relu) {
    body([=](float sum) { return cut(sum + bias); });
  } else {
    body([=](float sum) { return sum + bias; });
  }
}

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

void store_row(const ChannelStore& store, std::int64_t channel, const PositionGrid& grid, Range n,
               const float* from) {
  float* plane = store.y + channel * store.plane;
  with_finish(store, channel, [&](const auto& finish) {
    for_each_grid_row(grid, n, [&](std::int64_t at, std::int64_t position, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        plane[position + i * grid.column_step] = finish(from[at + i]);
      }
    });
  });
}

/// Two taps of one kernel row interleave to a contiguous row of y.
void store_row_pair(const ChannelStore& store, std::int64_t channel, const PositionGrid& grid,
                    Range n, const float* left, const float* right) {
  float* plane = store.y + channel * store.plane;
  simd([=, &store] {
    with_finish(store, channel, [=](const auto& finish) {
      for_each_grid_row(grid, n, [=](std::int64_t at, std::int64_t position, std::int64_t count) {
        float* to = plane + position;
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) {
          to[2 * i] = finish(left[at + i]);
          to[2 * i + 1] = finish(right[at + i]);
        }
      });
    });
  });
}

}  // namespace

void ChannelStore::store(const GemmBlock& block) const {
  simd([this, &block] {
    const auto count = block.n.size();
    for (auto m = block.m.begin; m < block.m.end; ++m) {
      const float* from = block.values + (m - block.m.begin) * block.stride;
      float* to = y + m * plane + block.n.begin;
      with_finish(*this, m, [=](const auto& finish) {
#pragma GCC ivdep
        for (std::int64_t i = 0; i < count; ++i) to[i] = finish(from[i]);
      });
    }
  });
}

void store_on_grid(const ChannelStore& store, const PositionGrid& grid, const GemmBlock& block) {
  for (auto m = block.m.begin; m < block.m.end; ++m) {
    store_row(store, m, grid, block.n, block.values + (m - block.m.begin) * block.stride);
  }
}

void store_tiles(const ChannelStore& store, const std::int64_t (&taps)[2], std::int64_t columns,
                 const GemmBlock& block) {
  const auto area = taps[0] * taps[1];
  for (auto m = block.m.begin; m < block.m.end; ++m) {
    const auto tap = m % area;
    const PositionGrid grid = {.columns = columns,
                               .first = tap / taps[1] * columns * taps[1] + tap % taps[1],
                               .row_step = area * columns,
                               .column_step = taps[1]};
    const float* from = block.values + (m - block.m.begin) * block.stride;
    if (taps[1] == 2 && tap % 2 == 0 && m + 1 < block.m.end) {
      store_row_pair(store, m / area, grid, block.n, from, from + block.stride);
      ++m;
    } else {
      store_row(store, m / area, grid, block.n, from);
    }
  }
}

}  // namespace triptych::cpu
