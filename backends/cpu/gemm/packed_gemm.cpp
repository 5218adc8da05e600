// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/packed_gemm.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/gemm/microkernel.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {
namespace {

// A block of B, a block of A of kGemmDepth and a block of C fit the second-level cache together.
// Enough blocks that threads which come late or are preempted cost little.
constexpr BlockLimits kLimits = {.rows = 512,
                                 .elements = 65536,
                                 .sum_rows = kGemmDepth,
                                 .many_tiles = std::numeric_limits<std::int64_t>::max(),
                                 .per_thread = 4};
// Elements of A and kGemmDepth up to which they stay in the second-level cache while the panels
// pass.
constexpr std::int64_t kCachedRows = 65536;
// Times that the microkernel fetches something of A on its way.
constexpr std::int64_t kFetches = 32;

}  // namespace

PackedGemm::PackedGemm(const GemmShape& shape, int threads)
    : blocks_(shape, RowTiles(shape.m), threads, kLimits),
      by_tile_(blocks_.block_rows() * blocks_.depth() > kCachedRows) {}

GemmBlocking PackedGemm::blocking() const {
  auto blocking = blocks_.blocking();
  blocking.by_tile = by_tile_;
  return blocking;
}

std::int64_t PackedGemm::thread_elements() const {
  const auto width = blocks_.panel_elements() / blocks_.depth();
  const auto sums = checked_mul(width, blocks_.block_rows());
  return round_up(checked_add(blocks_.panel_elements(), sums), 16);
}

template <class T>
void PackedGemm::run(const BasicGemmOperands<T>& operands, std::byte* scratch) const {
  blocks_.for_each(reinterpret_cast<T*>(scratch), thread_elements(),
                   [&](const Block& block, T* own) { run_block(operands, block, own); });
}

template <class T>
void PackedGemm::run_block(const BasicGemmOperands<T>& operands, const Block& block,
                           T* scratch) const {
  auto* sums = reinterpret_cast<ProductSum<T>*>(scratch + blocks_.panel_elements());
  blocks_.for_each_depth([&](Range k) {
    pack(operands, block, k, scratch);
    multiply(operands, block, k, scratch, sums);
  });
  operands.store(block.batch, {block.m, block.n, sums, block.panels.size() * blocks_.columns()});
}

template <class T>
Range PackedGemm::live(const BasicGemmOperands<T>& operands, const Block& block, Range k,
                       std::int64_t panel) const {
  const auto first = block.n.begin + panel * blocks_.columns();
  const auto part = operands.live({first, std::min(block.n.end, first + blocks_.columns())});
  if (!part) return k;
  const auto begin = std::clamp(part->begin, k.begin, k.end);
  return {begin, std::clamp(part->end, begin, k.end)};
}

template <class T>
void PackedGemm::pack(const BasicGemmOperands<T>& operands, const Block& block, Range k,
                      T* panels) const {
  if (!operands.live(block.n)) return operands.pack(block.batch, k, block.n, panels);
  const auto columns = blocks_.columns();
  for (std::int64_t panel = 0; panel < block.panels.size(); ++panel) {
    const auto part = live(operands, block, k, panel);
    if (part.size() == 0) continue;
    const auto first = block.n.begin + panel * columns;
    operands.pack(block.batch, part, {first, std::min(block.n.end, first + columns)},
                  panels + (panel * k.size() + part.begin - k.begin) * columns);
  }
}

template <class T>
void PackedGemm::multiply(const BasicGemmOperands<T>& operands, const Block& block, Range k,
                          const T* panels, ProductSum<T>* sums) const {
  const T* a = operands.rows(block.batch);
  const bool skips = operands.live(block.n).has_value();
  const auto& kernels = microkernels();
  const auto& tiles = blocks_.tiles();
  const auto columns = blocks_.columns(), stride = block.panels.size() * columns;
  const auto last = block.panels.size() - 1;
  const auto part_of = [&](std::int64_t panel) {
    return skips ? live(operands, block, k, panel) : k;
  };
  const auto tile_at = [&](Range rows, std::int64_t panel, Range part) -> BasicMicroTile<T> {
    return {.a = a + rows.begin * blocks_.shape().k + part.begin * rows.size(),
            .b = panels + (panel * k.size() + part.begin - k.begin) * columns,
            .c = sums + (rows.begin - block.m.begin) * stride + panel * columns,
            .c_stride = stride,
            .k_inner = part.size(),
            .b_inner = columns,
            .accumulate = k.begin > 0};
  };
  const auto is_narrow = [&](std::int64_t panel) {
    return panel == last && blocks_.is_narrow(block, panel);
  };
  // From one tile to the next only what differs is computed: tiles of little depth are short.
  if (!by_tile_) {
    for (std::int64_t panel = 0; panel <= last; ++panel) {
      const auto part = part_of(panel);
      const bool narrow = is_narrow(panel);
      Range rows = {block.m.begin, block.m.begin};
      auto now = tile_at(rows, panel, part);
      for (auto tile = block.tiles.begin; tile < block.tiles.end; ++tile) {
        rows = {rows.end, tiles.begin(tile + 1)};
        now.a = a + rows.begin * blocks_.shape().k + part.begin * rows.size();
        kernels.run_tile(rows.size(), now, narrow);
        now.c += rows.size() * stride;
      }
    }
    return;
  }
  for (auto tile = block.tiles.begin; tile < block.tiles.end; ++tile) {
    const Range rows = {tiles.begin(tile), tiles.begin(tile + 1)};
    const auto ahead = prefetch(block, k, a, tile);
    BasicMicroTile<T> now;
    for (std::int64_t panel = 0; panel <= last; ++panel) {
      if (skips || panel == 0) {
        now = tile_at(rows, panel, part_of(panel));
        ahead.add_to(now, panel);
      } else {
        now.b += k.size() * columns;
        now.c += columns;
        if (now.ahead != nullptr) now.ahead += ahead.panel_step;
      }
      kernels.run_tile(rows.size(), now, is_narrow(panel));
    }
  }
}

template <class T>
TilePrefetch<T> PackedGemm::prefetch(const Block& block, Range k, const T* a,
                                     std::int64_t tile) const {
  if (tile + 1 == block.tiles.end) return {.fetches = kFetches};
  const auto& tiles = blocks_.tiles();
  const auto height = tiles.height(tile);
  const auto share = ceil_div(k.size(), block.panels.size()) * height;
  return {.fetches = kFetches,
          .next = a + tiles.begin(tile + 1) * blocks_.shape().k + k.begin * height,
          .panel_step = share,
          .fetch_step = share / kFetches};
}

template void PackedGemm::run(const BasicGemmOperands<float>&, std::byte*) const;
template void PackedGemm::run(const BasicGemmOperands<PairWord>&, std::byte*) const;
template void PackedGemm::run(const BasicGemmOperands<DotWord>&, std::byte*) const;

}  // namespace triptych::cpu
