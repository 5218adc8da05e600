// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/gemm_blocks.h"

#include <algorithm>

#include "backends/cpu/gemm/microkernel.h"
#include "backends/cpu/grain.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {
GemmBlocks::GemmBlocks(const GemmShape& shape, const RowTiles& tiles, int threads,
                       const BlockLimits& limits)
    : shape_(shape), tiles_(tiles), threads_(threads), panels_(ceil_div(shape.n, columns())) {
  // Rather blocks that are a little too large than one more: each packs B for itself.
  const auto row_blocks = std::max<std::int64_t>(1, (shape_.m + limits.rows / 2) / limits.rows);
  tile_block_ = ceil_div(tiles_.count(), row_blocks);
  const auto deep = std::max(depth(), std::min(block_rows(), limits.sum_rows));
  panel_block_ = std::clamp<std::int64_t>(limits.elements / (deep * columns()), 1,
                                          std::max<std::int64_t>(1, panels_));
  if (threads_ > 1) share_among_threads(limits);
}

void GemmBlocks::share_among_threads(const BlockLimits& limits) {
  const auto work = [&] { return block_rows() * panel_block_ * columns() * shape_.k; };
  while (count() < threads_ * limits.per_thread && work() > 2 * kGrainMultiplies) {
    const bool panels_left = panel_block_ > (tile_block_ == 1 ? 1 : limits.few_panels);
    if (panels_left && tile_block_ <= limits.many_tiles) {
      panel_block_ = ceil_div(panel_block_, 2);
    } else if (tile_block_ > 1) {
      tile_block_ = ceil_div(tile_block_, 2);
    } else {
      break;
    }
  }
}

std::int64_t GemmBlocks::count() const { return shape_.batch * row_blocks() * column_blocks(); }

GemmBlocking GemmBlocks::blocking() const {
  return {.columns = columns(),
          .width = round_up(shape_.n, microkernels().narrow_columns),
          .row_tiles = tiles_.count(),
          .panels = panels_,
          .row_blocks = row_blocks(),
          .column_blocks = column_blocks(),
          .depth = depth()};
}

std::int64_t GemmBlocks::depth() const { return std::clamp<std::int64_t>(shape_.k, 1, kGemmDepth); }

std::int64_t GemmBlocks::block_rows() const { return tile_block_ * microkernels().max_rows; }

std::int64_t GemmBlocks::panel_elements() const { return panel_block_ * columns() * depth(); }

std::int64_t GemmBlocks::columns() const { return microkernels().columns; }

bool GemmBlocks::is_narrow(const Block& block, std::int64_t panel) const {
  return block.n.begin + panel * columns() + microkernels().narrow_columns >= block.n.end;
}

std::size_t GemmBlocks::scratch_bytes(std::int64_t thread_elements) const {
  const auto elements = checked_mul(thread_elements, threads_);
  return static_cast<std::size_t>(checked_mul(elements, sizeof(float)));
}

GemmBlocks::Block GemmBlocks::block_at(std::int64_t task) const {
  const auto rows = row_blocks(), across = column_blocks();
  const auto row_block = task / across % rows, column_block = task % across;
  // Blocks of equal size, not full ones and a rest.
  Block block = {
      .batch = task / (rows * across),
      .tiles = {row_block * tiles_.count() / rows, (row_block + 1) * tiles_.count() / rows},
      .panels = {column_block * panels_ / across, (column_block + 1) * panels_ / across}};
  block.m = {tiles_.begin(block.tiles.begin), tiles_.begin(block.tiles.end)};
  block.n = {block.panels.begin * columns(), std::min(shape_.n, block.panels.end * columns())};
  return block;
}

}  // namespace triptych::cpu
