// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/in_place_gemm.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/caches.h"
#include "backends/cpu/gemm/microkernel.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {
namespace {

// A block of B for all rows of A, which pass by once. A row tile of A meets four panels at least,
// and a panel eight row tiles, if threads are to have enough blocks: the first tile packs the
// panel. Few blocks for each thread, for each packs its part of both factors.
constexpr BlockLimits kLimits = {.rows = std::numeric_limits<std::int64_t>::max() / 2,
                                 .elements = 131072,
                                 .few_panels = 4,
                                 .many_tiles = 8,
                                 .per_thread = 2};
// B is not packed up to this share of the second-level cache for each row of a tile. Every row tile
// reads B from there, and its rows lie apart, so a low tile waits for them more often.
constexpr double kPlainShare = 1.0 / 28;
// Panels of a block up to which tiles of A are read as they lie. With more of them, packing a tile
// costs little.
constexpr std::int64_t kPlainPanels = 16;
// Lines of a set of a first-level cache, and how far apart lines of the same set lie: a page.
constexpr int kWays = 8;
constexpr std::int64_t kPageFloats = 1024;
// Times that the microkernel fetches something on its way, from each row of a tile and a row of C.
constexpr std::int64_t kFetches = 16;

bool is_small(const GemmShape& shape) {
  const auto bytes = static_cast<double>(shape.k * shape.n) * sizeof(float);
  return bytes <= second_level_bytes() * kPlainShare * microkernels().max_rows;
}

/// The rows of a tile of A would push each other out of the first-level cache.
bool shares_sets(const GemmFactor& a) {
  return a.row_stride % kPageFloats == 0 && microkernels().max_rows > kWays;
}

/// Tiles with the same number of rows for every thread, where that costs little of their height.
RowTiles shared_tiles(std::int64_t m, int threads) {
  const RowTiles fewest(m);
  const auto more = round_up(fewest.count(), threads * kLimits.per_thread);
  return more > fewest.count() * 9 / 8 ? fewest : RowTiles(m, ceil_div(m, more));
}

}  // namespace

InPlaceGemm::InPlaceGemm(const GemmShape& shape, int threads)
    : blocks_(shape, shared_tiles(shape.m, threads), threads, kLimits),
      small_b_(is_small(shape)),
      few_panels_(blocks_.panel_elements() <= kPlainPanels * blocks_.columns() * blocks_.depth()) {}

GemmBlocking InPlaceGemm::blocking() const {
  auto blocking = blocks_.blocking();
  blocking.by_tile = true;
  blocking.small_b = small_b_;
  blocking.few_panels = few_panels_;
  return blocking;
}

std::int64_t InPlaceGemm::tile_elements() const {
  return round_up(microkernels().max_rows * blocks_.depth(), 16);
}

std::int64_t InPlaceGemm::thread_elements() const {
  const auto rest = checked_mul(blocks_.columns(), blocks_.block_rows());
  return round_up(checked_add(blocks_.panel_elements() + tile_elements(), rest), 16);
}

void InPlaceGemm::run(const InPlaceOperands& operands, std::byte* scratch) const {
  blocks_.for_each(reinterpret_cast<float*>(scratch), thread_elements(),
                   [&](const Block& block, float* own) { run_block(operands, block, own); });
}

void InPlaceGemm::run_block(const InPlaceOperands& operands, const Block& block,
                            float* scratch) const {
  const auto columns = blocks_.columns();
  const Sums sums = {.c = operands.c(block.batch),
                     .rest = scratch + blocks_.panel_elements() + tile_elements(),
                     .rest_columns = {block.n.end / columns * columns, block.n.end}};
  blocks_.for_each_depth(
      [&](Range k) { multiply(operands, block, factors_of(operands, block, k, scratch), sums); });
  if (sums.rest_columns.size() == 0) return;
  for (auto row = block.m.begin; row < block.m.end; ++row) {
    std::copy_n(sums.rest + (row - block.m.begin) * columns, sums.rest_columns.size(),
                sums.c.data + row * sums.c.stride + sums.rest_columns.begin);
  }
}

InPlaceGemm::Factors InPlaceGemm::factors_of(const InPlaceOperands& operands, const Block& block,
                                             Range k, float* scratch) const {
  const auto columns = blocks_.columns();
  Factors factors = {.k = k,
                     .a = operands.a(block.batch),
                     .a_tile = scratch + blocks_.panel_elements(),
                     .panels = scratch,
                     .stays_plain = block.tiles.size() == 1 || small_b_};
  factors.a_stays = few_panels_ && operands.is_plain(factors.a) && !shares_sets(factors.a);
  if (const auto* packed = operands.packed_b(block.batch)) {
    const auto all_panels = ceil_div(blocks_.shape().n, columns);
    factors.panels = packed + (k.begin * all_panels + block.panels.begin * k.size()) * columns;
    return factors;
  }
  factors.plain_b = operands.plain_b(block.batch);
  if (factors.plain_b.data != nullptr) factors.plain = block.n.size() / columns;
  const Range rest = {block.n.begin + factors.plain * columns, block.n.end};
  if (rest.size() > 0)
    operands.pack(block.batch, k, rest, scratch + factors.plain * columns * k.size());
  return factors;
}

void InPlaceGemm::multiply(const InPlaceOperands& operands, const Block& block,
                           const Factors& factors, const Sums& sums) const {
  for (auto tile = block.tiles.begin; tile < block.tiles.end; ++tile) {
    if (!factors.a_stays) {
      operands.pack_tile(block.batch,
                         {blocks_.tiles().begin(tile), blocks_.tiles().begin(tile + 1)}, factors.k,
                         factors.a_tile);
    }
    multiply_tile(block, factors, sums, tile);
  }
}

void InPlaceGemm::multiply_tile(const Block& block, const Factors& factors, const Sums& sums,
                                std::int64_t tile) const {
  const auto& kernels = microkernels();
  const auto columns = blocks_.columns(), last = block.panels.size() - 1;
  const auto row = blocks_.tiles().begin(tile), height = blocks_.tiles().begin(tile + 1) - row;
  const auto plain = tile == block.tiles.begin || factors.stays_plain ? factors.plain : 0;
  const auto ahead = prefetch(block, factors, tile);
  MicroTile now = {.a = factors.a_stays ? factors.a.at(row, factors.k.begin) : factors.a_tile,
                   .k_inner = factors.k.size(),
                   .a_row = factors.a_stays ? factors.a.row_stride : 0,
                   .accumulate = factors.k.begin > 0};
  ahead.add_to(now, 0);
  auto c = target(block, sums, row, 0);
  const float* panels = factors.panels;
  for (std::int64_t panel = 0; panel <= last; ++panel, panels += columns * factors.k.size()) {
    now.c = c.data;
    now.c_stride = c.stride;
    if (panel < last) {
      c = target(block, sums, row, panel + 1);
    } else if (tile + 1 < block.tiles.end) {
      c = target(block, sums, row + height, 0);
    }
    now.next_c = c.data;
    if (panel < plain) {
      now.b = factors.plain_b.at(factors.k.begin, block.n.begin + panel * columns);
      now.b_inner = factors.plain_b.row_stride;
      now.packed_b = factors.stays_plain ? nullptr : const_cast<float*>(panels);
    } else {
      now.b = panels;
      now.b_inner = columns;
      now.packed_b = nullptr;
    }
    now.b_outer = now.k_inner * now.b_inner;
    kernels.run_tile(height, now, panel == last && blocks_.is_narrow(block, panel));
    if (now.ahead != nullptr) now.ahead += ahead.panel_step;
  }
}

GemmTarget InPlaceGemm::target(const Block& block, const Sums& sums, std::int64_t row,
                               std::int64_t panel) const {
  const auto columns = blocks_.columns(), column = (block.panels.begin + panel) * columns;
  if (column < sums.rest_columns.begin)
    return {sums.c.data + row * sums.c.stride + column, sums.c.stride};
  return {sums.rest + (row - block.m.begin) * columns, columns};
}

TilePrefetch<float> InPlaceGemm::prefetch(const Block& block, const Factors& factors,
                                          std::int64_t tile) const {
  if (tile + 1 == block.tiles.end) return {.fetches = kFetches};
  const auto& a = factors.a;
  const auto share = ceil_div(factors.k.size(), block.panels.size());
  return {.fetches = kFetches,
          .next = a.at(blocks_.tiles().begin(tile + 1), factors.k.begin),
          .panel_step = share * a.column_stride,
          .fetch_step = a.column_stride == 1 ? a.row_stride : a.column_stride};
}

}  // namespace triptych::cpu
