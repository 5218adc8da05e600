// A model of the bytes that packed products move at each level of the memory: from the blocking of
// gemm_blocks.h and conv_weight_gradient.cpp, with caches that hold the most recent lines
// (ladder/traffic.h describes the limits of such a model).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/cpu/gemm/gemm_blocks.h"
#include "backends/cpu/ladder/traffic.h"

namespace triptych::cpu {

/// A batch of products [m, k] x [k, n] as the microkernel meets them. Sizes are in elements of 4
/// bytes and per batch entry, unless they say otherwise.
struct PackedProduct {
  double batch = 1;
  double distinct_a = 1;  ///< different A's that the batch entries share
  double m = 0, n = 0, k = 0;
  double columns = 0;        ///< of a panel of B
  double width = 0;          ///< columns that are multiplied. The last panel's tiles may be narrow
  double row_tiles = 0;      ///< A is cut into, to fit the registers
  double panels = 0;         ///< of B
  double row_blocks = 1;     ///< that go through all of B each
  double column_blocks = 1;  ///< that go through all of A each
  double depth = 0;          ///< of K between two visits to an element of C
  double b = 0;              ///< elements of B that one block of rows takes up
  double packed = 0;         ///< elements that packing B writes, each time
  double packings = 0;       ///< times that it does
  double source = 0;         ///< elements that B is packed from
  double weights = 0;        ///< of all different A's: elements that are packed first
  double tile_packings = 0;  ///< times that tiles of A are packed just before they are used
  bool fused = false;        ///< the first tile packs B as it passes
  bool by_tile = false;      ///< see GemmBlocking
  bool small_b = false;      ///< the same
  bool few_panels = false;   ///< the same
  bool in_place = false;     ///< C is computed where it belongs: finishing moves nothing
};

/// "L1": loads and stores of instructions. "L2": traffic between L1 and the level below it.
/// "memory": the same of L2, whether there is a third level or not.
std::vector<LevelTraffic> packed_traffic(const PackedProduct& product, const Caches& caches);

/// Facts that a product's shape does not say.
struct ProductOperands {
  std::int64_t source = 0;      ///< elements that B of a batch entry is packed from
  std::int64_t distinct_a = 1;  ///< see PackedProduct
  bool packs_a = false;         ///< at each run
  bool in_place = false;        ///< InPlaceGemm, not PackedGemm
};

/// A product as it is cut for so many threads.
PackedProduct packed_product(const GemmShape& shape, int threads, const ProductOperands& operands);

}  // namespace triptych::cpu
