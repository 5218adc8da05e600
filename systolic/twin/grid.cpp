// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/grid.h"

#include <algorithm>

namespace triptych::mmu {
namespace {

bool same_positions(const Matmul& a, const Matmul& b) {
  return a.address == b.address && a.y == b.y && a.x == b.x && a.rows_left == b.rows_left &&
         a.columns_left == b.columns_left;
}

bool same_taps(const Matmul& a, const Matmul& b) {
  return a.offset == b.offset && a.dy == b.dy && a.dx == b.dx && a.channel == b.channel &&
         a.kernel_x == b.kernel_x;
}

bool same_streamed(const Matmul& a, const Matmul& b) {
  return a.transpose == b.transpose && a.count == b.count &&
         (a.transpose ? same_taps(a, b) : same_positions(a, b));
}

bool same_step(const Matmul& a, const Matmul& b) {
  return a.transpose ? same_positions(a, b) : same_taps(a, b);
}

}  // namespace

bool MatmulGrid::add(const Matmul& matmul, const Tile& tile, std::uint32_t lane) {
  if (empty()) {
    steps_.push_back({matmul, tile.rows, lane});
    columns_.push_back({matmul.accumulator, tile.columns});
    rows_ = tile.rows;
  } else {
    const Step& last = steps_.back();
    if (!same_streamed(last.start, matmul)) return false;
    const bool beside =
        same_step(last.start, matmul) && last.rows == tile.rows && last.lane == lane;
    const bool fits = beside ? add_to_step(matmul, tile) : add_step(matmul, tile, lane);
    if (!fits) return false;
  }
  tiles_.push_back(tile);
  return true;
}

bool MatmulGrid::add_to_step(const Matmul& matmul, const Tile& tile) {
  const std::size_t column = tiles_.size() - (steps_.size() - 1) * columns_.size();
  if (steps_.size() > 1)
    return column < columns_.size() && matmul.accumulate &&
           columns_[column].accumulator == matmul.accumulator &&
           columns_[column].columns == tile.columns;
  const auto apart = [&](const Column& other) {
    return matmul.accumulator >= other.accumulator + matmul.count ||
           other.accumulator >= std::uint32_t{matmul.accumulator} + matmul.count;
  };
  if (matmul.accumulate != accumulate() || !std::ranges::all_of(columns_, apart)) return false;
  columns_.push_back({matmul.accumulator, tile.columns});
  return true;
}

bool MatmulGrid::add_step(const Matmul& matmul, const Tile& tile, std::uint32_t lane) {
  if (tiles_.size() != steps_.size() * columns_.size() || !matmul.accumulate ||
      columns_[0].accumulator != matmul.accumulator || columns_[0].columns != tile.columns ||
      rows_ + tile.rows > kMostRows)
    return false;
  steps_.push_back({matmul, tile.rows, lane});
  rows_ += tile.rows;
  return true;
}

void MatmulGrid::clear() {
  steps_.clear();
  columns_.clear();
  tiles_.clear();
}

std::array<GridPart, 2> MatmulGrid::parts() const {
  const std::size_t complete = tiles_.size() / columns_.size();
  return {GridPart{0, complete, columns_.size()},
          GridPart{complete, steps_.size() - complete, tiles_.size() % columns_.size()}};
}

bool same_activations(const MatmulGrid::Step& a, const MatmulGrid::Step& b) {
  return a.rows == b.rows && a.lane == b.lane && a.start.transpose == b.start.transpose &&
         a.start.count == b.start.count && same_positions(a.start, b.start) &&
         same_taps(a.start, b.start);
}

}  // namespace triptych::mmu
