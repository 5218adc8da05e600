// A model of the bytes that the ladder's steps move at each level of the memory: caches that hold
// the most recent lines, wherever these lie. It leaves out conflicts: rows a power of two apart
// compete for the same places of a real cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/runtime/device.h"

namespace triptych::cpu {

/// Bytes of the caches of one core.
struct Caches {
  double l1 = 0, l2 = 0;

  /// Those that the device names, or usual ones.
  static Caches of(const Device& device);
};

/// A product of [m, k] and [k, n], without the batch.
struct ProductSizes {
  double m = 0, n = 0, k = 0;
};

/// "L1": loads and stores of instructions. "L2": traffic between L1 and the level below it.
/// "memory": the same of L2, whether there is a third level or not.
std::vector<LevelTraffic> naive_traffic(const ProductSizes& sizes, const Caches& caches);
std::vector<LevelTraffic> blocked_traffic(const ProductSizes& sizes, const Caches& caches);
/// Traffic of all `threads` together, each with caches of its own.
std::vector<LevelTraffic> vectorised_traffic(const ProductSizes& sizes, const Caches& caches,
                                             int threads);

}  // namespace triptych::cpu
