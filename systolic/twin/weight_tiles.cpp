// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/weight_tiles.h"

#include <algorithm>

namespace triptych::mmu {

WeightTiles::WeightTiles(const MachineConfig& machine)
    : machine_(machine),
      behind_(machine.pe_latency > 2 ? (machine.rows - 1) * (machine.pe_latency - 2) : 0),
      loaded_after_(machine.pe_latency > 1 ? 1 : machine.rows) {}

Cycle WeightTiles::room() const {
  if (tiles_.size() < machine_.weight_tiles) return 0;
  const Cycle moved = tiles_[tiles_.size() - machine_.weight_tiles].moved;
  return moved == kUnknown ? kUnknown : moved + machine_.rows + machine_.columns;
}

void WeightTiles::load(const WeightLoad& load) {
  tiles_.push_back({.rows = load.rows, .columns = load.columns, .stream = load.stream});
}

Cycle WeightTiles::shadow_free() const {
  if (taken_ < moved_) return kUnknown;
  if (!swapped_) return 0;
  switch (machine_.weight_scheme) {
    case WeightScheme::PassThrough:
      return swap_ + 1 + behind_;
    case WeightScheme::PerColumn:
      return swap_ + machine_.chain_cycles();
    case WeightScheme::Drained:
      return swap_ + machine_.chain_cycles() + machine_.columns;
  }
  return kUnknown;
}

bool WeightTiles::move() {
  if (moved_ >= tiles_.size() || tiles_[moved_].stream) return false;
  TileTimes& tile = tiles_[moved_];
  const Cycle cycle = std::max(tile.there, shadow_free());
  if (cycle == kUnknown) return false;
  tile.moved = std::max(cycle, idle());
  ++moved_;
  return true;
}

bool WeightTiles::is_known(bool output_stationary) const {
  if (!output_stationary) return taken_ < moved_;
  return taken_ < tiles_.size() && tiles_[taken_].there != kUnknown;
}

WeightTiles::Next WeightTiles::next(bool output_stationary) const {
  const TileTimes& tile = tiles_[taken_];
  const Cycle busy = taken_ > 0 ? tiles_[taken_ - 1].moved + machine_.rows : 0;
  if (!output_stationary) return {tile.moved, tile.moved + loaded_after_, busy};
  // The loader begins in the cycle after the start.
  return {tile.there, std::max(tile.there, busy - std::min<Cycle>(busy, 1)), busy};
}

const TileTimes& WeightTiles::swap(Cycle start) {
  active_ = taken_++;
  swapped_ = true;
  swap_ = start;
  return active();
}

const TileTimes& WeightTiles::stream(Cycle start) {
  TileTimes& tile = tiles_[taken_++];
  tile.moved = start + 1;
  ++moved_;
  return tile;
}

}  // namespace triptych::mmu
