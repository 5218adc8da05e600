// Packs blocks with known lifetimes into one piece of memory: "greedy by size for offset
// calculation" of Pisarchyk and Lee, "Efficient memory management for deep neural net inference",
// 2020. The largest block is placed first, each in the smallest gap that its time leaves free.
// Above the peak, the block that is in use longest goes first in a second try, and the smaller
// packing counts. Blocks at the start stay in the caches from one to the next.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace triptych {

/// Memory that is in use from time `first` through time `last`.
struct Block {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
  bool at_start = false;  ///< its offset is 0. No two of these meet in time
};

struct Packing {
  std::vector<std::size_t> offsets;  ///< per block, multiples of kAlignment
  std::size_t bytes = 0;             ///< of the whole
};

/// Deterministic. Throws InvalidArgument when the sizes overflow 64 bits.
Packing pack_arena(std::span<const Block> blocks);

/// True when two blocks in use at the same time share a byte.
bool has_overlap(std::span<const Block> blocks, const Packing& packing);

}  // namespace triptych
