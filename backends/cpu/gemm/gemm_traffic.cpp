// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/gemm_traffic.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/gemm/in_place_gemm.h"
#include "backends/cpu/gemm/packed_gemm.h"

namespace triptych::cpu {
namespace {

constexpr double kElement = 4;  // bytes

LevelTraffic level(std::string_view name, double reads, double writes) {
  return {name, kElement * (reads + writes), kElement * reads};
}

/// Elements of C's blocks with the columns beyond n.
double padded_sums(const PackedProduct& p) { return p.m * p.width; }

/// Times that an element of C is written by the microkernel.
double visits(const PackedProduct& p) { return std::ceil(p.k / p.depth); }

/// Elements of C that finishing moves once more.
double finished(const PackedProduct& p) { return p.in_place ? 0 : p.m * p.n; }

// A step of k loads a row of a panel for each tile and a column of the tile for each panel. Each
// visit stores C's partial sums, and each except the first loads them.
LevelTraffic instructions(const PackedProduct& p) {
  const double panels = p.k * (p.m * p.panels + p.width * p.row_tiles);
  const double b = p.packed * p.packings, a = p.m * p.k * p.tile_packings;
  const double sums = padded_sums(p);
  return level(
      "L1",
      p.batch * (panels + sums * (visits(p) - 1) + finished(p) + (p.fused ? 0 : b) + a) + p.weights,
      p.batch * (sums * visits(p) + finished(p) + b + a) + p.weights);
}

// A panel of B stays while the tiles of a block pass by. A block of A stays for the next panel if
// both fit together. Or a tile of A stays while the panels pass by, and these for the next tile if
// they fit. Packed data come up once, go down once, and come up again as panels, except the first
// tile where that packs it. A tile of A that is packed before it is used comes up once.
LevelTraffic first_level(const PackedProduct& p, double capacity) {
  const double tile = p.m / p.row_tiles, panels = p.panels / p.column_blocks;
  const bool fits = kElement * p.depth *
                        (p.by_tile ? tile + panels * p.columns : p.m / p.row_blocks + p.columns) <=
                    capacity;
  const double passes = fits || p.by_tile ? p.column_blocks : p.panels;
  const bool stays = kElement * p.source / p.column_blocks <= capacity;
  const double taken = (stays ? p.source : p.packed) * p.packings;
  const double written = p.packed * p.packings;
  const double b = p.b * (fits || !p.by_tile ? p.row_blocks : p.row_tiles);
  const double again = p.fused ? std::max(0.0, b - written) : b;
  const double sums = padded_sums(p);
  return level(
      "L2",
      p.batch * (p.m * p.k * passes + again + taken + sums * (visits(p) - 1) + finished(p)) +
          p.weights,
      p.batch * (written + sums * visits(p) + finished(p)) + p.weights);
}

// Packed blocks stay in the second level by design, and so do C's partial sums unless they are in
// place and too many. An A comes once for all batch entries that share it if it fits there, else
// for each column of blocks. So does the source of B, for each time it is packed.
LevelTraffic second_level(const PackedProduct& p, double capacity) {
  const double a = p.m * p.k;
  const double of_a = a * (kElement * a <= capacity / 2 ? p.distinct_a : p.batch * p.column_blocks);
  const double times = kElement * p.source <= capacity ? 1 : std::max(1.0, p.packings);
  const double c = p.m * p.n;
  const bool leaves = p.in_place && kElement * c / (p.row_blocks * p.column_blocks) > capacity / 2;
  return level("memory",
               of_a + p.batch * (p.source * times + (leaves ? c * (visits(p) - 1) : 0)) + p.weights,
               p.batch * c * (leaves ? visits(p) : 1) + p.weights);
}

}  // namespace

PackedProduct packed_product(const GemmShape& shape, int threads, const ProductOperands& operands) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const auto cut = operands.in_place ? InPlaceGemm(shape, threads).blocking()
                                     : PackedGemm(shape, threads).blocking();
  const double m = number(shape.m), k = number(shape.k), batch = number(shape.batch);
  const double b = k * number(cut.panels * cut.columns), distinct_a = number(operands.distinct_a);
  return {.batch = batch,
          .distinct_a = distinct_a,
          .m = m,
          .n = number(shape.n),
          .k = k,
          .columns = number(cut.columns),
          .width = number(cut.width),
          .row_tiles = number(cut.row_tiles),
          .panels = number(cut.panels),
          .row_blocks = number(cut.row_blocks),
          .column_blocks = number(cut.column_blocks),
          .depth = number(cut.depth),
          .b = b,
          .packed = b,
          .packings = number(cut.row_blocks),
          .source = number(operands.source),
          .weights = operands.packs_a ? distinct_a * m * k : 0,
          .by_tile = cut.by_tile,
          .small_b = cut.small_b,
          .few_panels = cut.few_panels,
          .in_place = operands.in_place};
}

std::vector<LevelTraffic> packed_traffic(const PackedProduct& product, const Caches& caches) {
  return {instructions(product), first_level(product, caches.l1), second_level(product, caches.l2)};
}

}  // namespace triptych::cpu
