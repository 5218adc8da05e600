// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/arena.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/tensor/tensor.h"

namespace triptych {

namespace {

bool meet(const Block& a, const Block& b) { return a.first <= b.last && b.first <= a.last; }

std::size_t checked_end(std::size_t offset, std::size_t bytes) {
  const auto end = checked_add(static_cast<std::int64_t>(offset), static_cast<std::int64_t>(bytes));
  constexpr auto unit = static_cast<std::int64_t>(kAlignment);
  checked_add(end, unit);
  return static_cast<std::size_t>(round_up(end, unit));
}

/// The offset of the smallest gap that holds `block` between those of `placed` (in ascending order
/// of offset) that it meets in time; behind all of them when there is none.
std::size_t best_offset(const Block& block, std::span<const Block> blocks,
                        const std::vector<std::size_t>& placed, const Packing& packing) {
  std::size_t best = 0;
  std::size_t best_gap = std::numeric_limits<std::size_t>::max();
  std::size_t end = 0;
  bool found = false;
  for (const auto other : placed) {
    if (!meet(block, blocks[other])) continue;
    const auto start = packing.offsets[other];
    if (start > end && start - end >= block.bytes && start - end < best_gap) {
      best = end;
      best_gap = start - end;
      found = true;
    }
    end = std::max(end, checked_end(start, blocks[other].bytes));
  }
  return found ? best : end;
}

/// Places the blocks in this order, those at the start before all others.
Packing pack_in_order(std::span<const Block> blocks, std::vector<std::size_t> order) {
  std::stable_partition(order.begin(), order.end(), [&](auto i) { return blocks[i].at_start; });
  Packing packing{.offsets = std::vector<std::size_t>(blocks.size(), 0), .bytes = 0};
  std::vector<std::size_t> placed;
  for (const auto i : order) {
    if (blocks[i].bytes == 0) continue;
    if (!blocks[i].at_start) {
      packing.offsets[i] = best_offset(blocks[i], blocks, placed, packing);
    }
    packing.bytes = std::max(packing.bytes, checked_end(packing.offsets[i], blocks[i].bytes));
    const auto offset_of = [&](std::size_t other) { return packing.offsets[other]; };
    placed.insert(std::ranges::upper_bound(placed, packing.offsets[i], {}, offset_of), i);
  }
  return packing;
}

}  // namespace

Packing pack_arena(std::span<const Block> blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](auto i) { return blocks[i].bytes; };
  const auto duration = [&](auto i) { return blocks[i].last - blocks[i].first; };
  std::ranges::stable_sort(order, std::greater<>{}, size);
  auto by_size = pack_in_order(blocks, order);
  std::ranges::stable_sort(order, std::greater<>{}, duration);
  auto by_duration = pack_in_order(blocks, order);
  auto& best = by_duration.bytes < by_size.bytes ? by_duration : by_size;
  TRIPTYCH_ASSERT(!has_overlap(blocks, best));
  return std::move(best);
}

bool has_overlap(std::span<const Block> blocks, const Packing& packing) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool apart = packing.offsets[i] + blocks[i].bytes <= packing.offsets[j] ||
                         packing.offsets[j] + blocks[j].bytes <= packing.offsets[i];
      if (!apart && meet(blocks[i], blocks[j])) return true;
    }
  }
  return false;
}

}  // namespace triptych
