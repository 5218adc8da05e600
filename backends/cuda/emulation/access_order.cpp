// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/access_order.h"

#include "backends/cuda/emulation/block.h"

namespace triptych::cuda::emulation {
namespace {

constexpr std::uint16_t kLanes = 0x8000;  ///< and the warp: several of its lanes
constexpr std::uint16_t kSeveralWarps = 0xFFFF;

unsigned warp_of(std::uint16_t who) { return (who & kLanes) != 0 ? who & 0x7FFFU : who / kWarp; }

}  // namespace

void AccessOrder::begin_block(unsigned threads) {
  ++epoch_;
  warp_epochs_.assign((threads + kWarp - 1) / kWarp, 0);
}

AccessOrder::Stamp AccessOrder::now(unsigned thread, unsigned line, bool relaxed) const {
  return {.epoch = epoch_,
          .line = line,
          .warp_epoch = warp_epochs_[thread / kWarp],
          .who = static_cast<std::uint16_t>(thread),
          .relaxed = relaxed};
}

/// True when the earlier access is another thread's, with nothing between that orders the two.
bool AccessOrder::unordered(const Stamp& earlier, const Stamp& now) const {
  if (earlier.epoch != epoch_ || earlier.who == now.who) return false;
  return earlier.who == kSeveralWarps || warp_of(earlier.who) != warp_of(now.who) ||
         earlier.warp_epoch == now.warp_epoch;
}

const AccessOrder::Stamp* AccessOrder::raced(const Cell& cell, Access access,
                                             const Stamp& now) const {
  const auto races = [&](const Stamp& earlier) {
    return unordered(earlier, now) && !(earlier.relaxed && now.relaxed);
  };
  if (races(cell.write)) return &cell.write;
  return access != Access::Load && races(cell.read) ? &cell.read : nullptr;
}

void AccessOrder::note(Cell& cell, Access access, const Stamp& now) const {
  if (access != Access::Load) {
    cell.write = now;
    return;
  }
  const Stamp before = cell.read;
  cell.read = now;
  if (!unordered(before, now)) return;
  const bool same_warp = before.who != kSeveralWarps && warp_of(before.who) == warp_of(now.who);
  cell.read.who = same_warp ? static_cast<std::uint16_t>(kLanes | warp_of(now.who)) : kSeveralWarps;
  cell.read.relaxed = before.relaxed && now.relaxed;
}

}  // namespace triptych::cuda::emulation
