// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/arena.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/runtime/occupied_bytes.h"
#include "core/tensor/tensor.h"

namespace triptych {

namespace {

std::size_t checked_end(std::size_t offset, std::size_t bytes) {
  const auto end = checked_add(static_cast<std::int64_t>(offset), static_cast<std::int64_t>(bytes));
  constexpr auto unit = static_cast<std::int64_t>(kAlignment);
  checked_add(end, unit);
  return static_cast<std::size_t>(round_up(end, unit));
}

/// The offset of the smallest sufficient gap between the `taken` ranges, or the end of the last
/// range when there is none.
std::size_t best_offset(std::size_t bytes, std::span<const ByteRange> taken) {
  std::size_t best = 0;
  std::size_t best_gap = std::numeric_limits<std::size_t>::max();
  std::size_t end = 0;
  bool found = false;
  for (const auto& range : taken) {
    if (range.begin > end && range.begin - end >= bytes && range.begin - end < best_gap) {
      best = end;
      best_gap = range.begin - end;
      found = true;
    }
    end = std::max(end, range.end);
  }
  return found ? best : end;
}

std::vector<std::size_t> times_of(std::span<const Block> blocks) {
  std::vector<std::size_t> times;
  for (const auto& block : blocks) {
    if (block.bytes > 0) times.insert(times.end(), {block.first, block.last});
  }
  return times;
}

/// Places the blocks in this order, those at the start before all others.
Packing pack_in_order(std::span<const Block> blocks, std::vector<std::size_t> order) {
  std::stable_partition(order.begin(), order.end(), [&](auto i) { return blocks[i].at_start; });
  Packing packing{.offsets = std::vector<std::size_t>(blocks.size(), 0), .bytes = 0};
  OccupiedBytes occupied(times_of(blocks));
  for (const auto i : order) {
    const auto& block = blocks[i];
    if (block.bytes == 0) continue;
    auto& offset = packing.offsets[i];
    if (!block.at_start) {
      offset = best_offset(block.bytes, occupied.during(block.first, block.last));
    }
    const auto end = checked_end(offset, block.bytes);
    packing.bytes = std::max(packing.bytes, end);
    occupied.add(block.first, block.last, {offset, end});
  }
  return packing;
}

/// The most bytes that are in use at one time: no packing is smaller.
std::size_t peak_of(std::span<const Block> blocks) {
  std::map<std::size_t, std::size_t> changes;  // by time, unsigned: a later addition undoes a wrap
  for (const auto& block : blocks) {
    const auto bytes = checked_end(0, block.bytes);
    changes[block.first] += bytes;
    changes[block.last + 1] -= bytes;
  }
  std::size_t peak = 0, in_use = 0;
  for (const auto& [time, change] : changes) peak = std::max(peak, in_use += change);
  return peak;
}

}  // namespace

Packing pack_arena(std::span<const Block> blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](auto i) { return blocks[i].bytes; };
  const auto duration = [&](auto i) { return blocks[i].last - blocks[i].first; };
  std::ranges::stable_sort(order, std::greater<>{}, size);
  auto best = pack_in_order(blocks, order);
  if (best.bytes > peak_of(blocks)) {
    std::ranges::stable_sort(order, std::greater<>{}, duration);
    auto by_duration = pack_in_order(blocks, order);
    if (by_duration.bytes < best.bytes) best = std::move(by_duration);
  }
  TRIPTYCH_ASSERT(!has_overlap(blocks, best));
  return best;
}

bool has_overlap(std::span<const Block> blocks, const Packing& packing) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].bytes > 0) starts.push_back(i);
  }
  auto ends = starts;
  std::ranges::sort(starts, {}, [&](auto i) { return blocks[i].first; });
  std::ranges::sort(ends, {}, [&](auto i) { return blocks[i].last; });
  // Invariant: the blocks in use are disjoint, so a new one can only overlap two neighbours.
  std::map<std::size_t, std::size_t> in_use;  // the end of each by its offset
  auto ended = ends.begin();
  for (const auto i : starts) {
    for (; blocks[*ended].last < blocks[i].first; ++ended) in_use.erase(packing.offsets[*ended]);
    const auto begin = packing.offsets[i];
    const auto end = begin + blocks[i].bytes;
    const auto next = in_use.lower_bound(begin);
    if (next != in_use.end() && next->first < end) return true;
    if (next != in_use.begin() && std::prev(next)->second > begin) return true;
    in_use.emplace_hint(next, begin, end);
  }
  return false;
}

}  // namespace triptych
