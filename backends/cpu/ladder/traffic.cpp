// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/ladder/traffic.h"

#include <cmath>

#include "backends/cpu/ladder/steps.h"

namespace triptych::cpu {
namespace {

constexpr double kLine = 64;  // bytes

/// `registers` and, for the capacity of each cache, through(capacity).
template <class Through>
std::vector<LevelTraffic> levels(double registers, const Caches& caches, const Through& through) {
  return {{"L1", registers}, {"L2", through(caches.l1)}, {"memory", through(caches.l2)}};
}

/// `once` if `kept` bytes stay in the cache between two uses, else `once` for each of `uses`.
double reused(double once, double uses, double kept, double capacity) {
  return kept <= capacity ? once : once * uses;
}

}  // namespace

Caches Caches::of(const Device& device) {
  const auto& facts = device.info().facts;
  return {facts.cache_or(1, 32768), facts.cache_or(2, 1048576)};
}

// An element of c reads a row of a and a column of b, with each element in a line of its own. The
// lines of a column serve the next columns, too, while they all stay. b serves the next row while
// all of it stays. c is read and written once.
std::vector<LevelTraffic> naive_traffic(const ProductSizes& s, const Caches& caches) {
  return levels((8 * s.k + 4) * s.m * s.n, caches, [&](double capacity) {
    const double row = 4 * s.k, column = kLine * s.k, b = 4 * s.k * s.n;
    const bool column_stays = row + column <= capacity;
    const double of_a = reused(row * s.m, s.n, row + column, capacity);
    const double of_b = column_stays ? reused(b, s.m, row + b, capacity) : column * s.m * s.n;
    return of_a + of_b + 8 * s.m * s.n;
  });
}

// A multiply-add loads an element of b and one of c and stores the latter. An element of a serves a
// row of the block. Blocks follow each other down b, then along it: a block of b is used up at
// once. A is read again for every column of blocks, c's slab for every block of the column.
std::vector<LevelTraffic> blocked_traffic(const ProductSizes& s, const Caches& caches) {
  constexpr double columns = kScalarColumns, depth = kScalarDepth;
  const double registers = s.m * s.n * s.k * (12 + 4 / columns);
  return levels(registers, caches, [&](double capacity) {
    const double slab = 4 * s.m * (columns + depth);
    return reused(4 * s.m * s.k, std::ceil(s.n / columns), 4 * s.m * s.k, capacity) +
           4 * s.k * s.n + reused(8 * s.m * s.n, std::ceil(s.k / depth), slab, capacity);
  });
}

// A step of k loads a row of the tile from b and a column of it from a. c is read and written once
// for each block of k. Each thread reads all of b.
std::vector<LevelTraffic> vectorised_traffic(const ProductSizes& all, const Caches& caches,
                                             int threads) {
  constexpr double depth = kVectorDepth;
  const auto tile = vector_tile();
  const auto rows = static_cast<double>(tile.rows), columns = static_cast<double>(tile.columns);
  const ProductSizes s = {all.m / threads, all.n, all.k};
  const double visits = std::ceil(s.k / depth);
  const double registers = s.m * s.n * (s.k * 4 * (1 / rows + 1 / columns) + 8 * visits);
  auto result = levels(registers, caches, [&](double capacity) {
    return reused(4 * s.m * s.k, std::ceil(s.n / columns), 4 * s.m * depth, capacity) +
           reused(4 * s.k * s.n, std::ceil(s.m / rows), 4 * depth * columns, capacity) +
           reused(8 * s.m * s.n, visits, 4 * s.m * s.n, capacity);
  });
  for (auto& level : result) level.bytes *= threads;
  return result;
}

}  // namespace triptych::cpu
