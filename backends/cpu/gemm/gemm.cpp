// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/gemm.h"

#include <algorithm>

#include "backends/cpu/gemm/microkernel.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {
namespace {

// A block of B, a block of A of kGemmDepth and a block of C fit the second-level cache together.
constexpr std::int64_t kBlockElements = 65536;
constexpr std::int64_t kBlockRows = 512;
// Where C is computed in place: a block of B alone, for all rows of A, which pass by once.
constexpr std::int64_t kInPlaceElements = 131072;
// Elements of B up to which it is not packed: the second-level cache has it as it lies.
constexpr std::int64_t kPlainElements = 262144;
// Panels that a row tile of A meets at least, and row tiles that a panel meets, if threads are to
// have enough blocks: the first tile packs the panel.
constexpr std::int64_t kFewPanels = 4;
constexpr std::int64_t kManyTiles = 8;
// Elements of A and kGemmDepth up to which they stay in the second-level cache while the panels
// pass.
constexpr std::int64_t kCachedRows = 65536;
// Enough blocks that threads which come late or are preempted cost little; in place they share
// less, for each packs its part of both factors.
constexpr std::int64_t kBlocksPerThread = 4;
constexpr std::int64_t kInPlaceBlocksPerThread = 2;
// Less work than this is not worth a task of its own.
constexpr std::int64_t kTaskMultiplies = 65536;

// Times that the microkernel fetches something on its way: where A is plain, from each row of a
// tile and a row of C; else from A alone.
constexpr std::int64_t kPlainFetches = 16;
constexpr std::int64_t kPackedFetches = 32;

/// Makes the steps in which a tile fetches.
template <class T>
void fetch_in_steps(BasicMicroTile<T>& tile, std::int64_t fetches) {
  if (tile.k_inner % fetches != 0) return;
  tile.k_outer = fetches;
  tile.k_inner /= fetches;
  tile.b_outer = tile.k_inner * tile.b_inner;
}

/// Tiles of which every thread gets as many, where that costs little of their height.
RowTiles shared_tiles(std::int64_t m, int threads) {
  const RowTiles fewest(m);
  const auto more = round_up(fewest.count(), std::int64_t{threads} * kInPlaceBlocksPerThread);
  return more > fewest.count() * 9 / 8 ? fewest : RowTiles(m, ceil_div(m, more));
}

}  // namespace

BlockedGemm::BlockedGemm(const GemmShape& shape, int threads, bool in_place)
    : shape_(shape),
      tiles_(in_place ? shared_tiles(shape.m, threads) : RowTiles(shape.m)),
      threads_(threads),
      in_place_(in_place),
      panels_(ceil_div(shape.n, std::int64_t{microkernels().columns})) {
  size_blocks();
}

void BlockedGemm::size_blocks() {
  const std::int64_t columns = microkernels().columns;
  // Rather blocks that are a little too large than one more: each packs B for itself.
  const auto row_blocks =
      in_place_ ? 1 : std::max<std::int64_t>(1, (shape_.m + kBlockRows / 2) / kBlockRows);
  tile_block_ = ceil_div(tiles_.count(), row_blocks);
  panel_block_ = std::clamp<std::int64_t>(
      (in_place_ ? kInPlaceElements : kBlockElements) / (depth() * columns), 1,
      std::max<std::int64_t>(1, panels_));
  const auto work = [&] {
    return tile_block_ * microkernels().max_rows * panel_block_ * columns * shape_.k;
  };
  const auto few = in_place_ ? kFewPanels : 1;
  const auto many = in_place_ ? kManyTiles : tiles_.count();
  const auto enough = threads_ * (in_place_ ? kInPlaceBlocksPerThread : kBlocksPerThread);
  while (threads_ > 1 && blocks() < enough && work() > 2 * kTaskMultiplies) {
    const bool panels_left = panel_block_ > (tile_block_ == 1 ? 1 : few);
    if (panels_left && tile_block_ <= many) {
      panel_block_ = ceil_div(panel_block_, 2);
    } else if (tile_block_ > 1) {
      tile_block_ = ceil_div(tile_block_, 2);
    } else {
      break;
    }
  }
  small_b_ = in_place_ && shape_.k * shape_.n <= kPlainElements;
  by_tile_ = in_place_ || tile_block_ * microkernels().max_rows * depth() > kCachedRows;
}

std::int64_t BlockedGemm::blocks() const {
  return shape_.batch * ceil_div(tiles_.count(), tile_block_) * ceil_div(panels_, panel_block_);
}

GemmBlocking BlockedGemm::blocking() const {
  return {.columns = microkernels().columns,
          .row_tiles = tiles_.count(),
          .panels = panels_,
          .row_blocks = ceil_div(tiles_.count(), tile_block_),
          .column_blocks = ceil_div(panels_, panel_block_),
          .depth = depth(),
          .by_tile = by_tile_,
          .small_b = small_b_};
}

std::int64_t BlockedGemm::depth() const {
  return std::clamp<std::int64_t>(shape_.k, 1, kGemmDepth);
}

std::int64_t BlockedGemm::panel_elements() const {
  return panel_block_ * microkernels().columns * depth();
}

/// Elements of the tile of A that is packed by the way.
std::int64_t BlockedGemm::tile_elements() const {
  return in_place_ ? round_up(microkernels().max_rows * depth(), 16) : 0;
}

std::int64_t BlockedGemm::thread_elements() const {
  // In place, only columns beyond the last whole panel have sums of their own.
  const auto columns = (in_place_ ? 1 : panel_block_) * microkernels().columns;
  const auto block = checked_mul(columns, checked_mul(tile_block_, microkernels().max_rows));
  return round_up(checked_add(panel_elements() + tile_elements(), block), 16);
}

std::size_t BlockedGemm::scratch_bytes() const {
  const auto elements = checked_mul(thread_elements(), threads_);
  return static_cast<std::size_t>(checked_mul(elements, sizeof(float)));
}

BlockedGemm::Block BlockedGemm::block_at(std::int64_t task) const {
  const std::int64_t columns = microkernels().columns;
  const auto row_blocks = ceil_div(tiles_.count(), tile_block_);
  const auto column_blocks = ceil_div(panels_, panel_block_);
  const auto row_block = task / column_blocks % row_blocks;
  const auto column_block = task % column_blocks;
  // Blocks of equal size, not full ones and a rest.
  Block block = {.batch = task / (row_blocks * column_blocks),
                 .tiles = {row_block * tiles_.count() / row_blocks,
                           (row_block + 1) * tiles_.count() / row_blocks},
                 .panels = {column_block * panels_ / column_blocks,
                            (column_block + 1) * panels_ / column_blocks}};
  block.m = {tiles_.begin(block.tiles.begin), tiles_.begin(block.tiles.end)};
  block.n = {block.panels.begin * columns, std::min(shape_.n, block.panels.end * columns)};
  return block;
}

template <class T>
void BlockedGemm::run(const BasicGemmOperands<T>& operands, std::byte* scratch) const {
  if (shape_.m == 0) return;
  parallel_for(blocks(), 1, [&](std::int64_t begin, std::int64_t end) {
    const auto thread = thread_index();
    T* own = reinterpret_cast<T*>(scratch) + thread * thread_elements();
    for (auto block = begin; block < end; ++block) run_block(operands, block_at(block), own);
  });
}

template <class T>
BlockedGemm::Sums<T> BlockedGemm::sums_of(const BasicGemmOperands<T>& operands, const Block& block,
                                          T* own) const {
  const std::int64_t columns = microkernels().columns;
  const auto target = in_place_ ? operands.target(block.batch) : BasicGemmTarget<T>();
  if (target.data == nullptr) return {{}, own, block.panels.size() * columns, block.n.begin};
  return {target, own, columns, block.n.end / columns * columns};
}

template <class T>
BlockedGemm::Factors<T> BlockedGemm::factors_of(const BasicGemmOperands<T>& operands,
                                                const Block& block, Range k, T* scratch) const {
  const std::int64_t columns = microkernels().columns;
  Factors<T> factors = {.k = k, .a = operands.rows(block.batch), .b = scratch};
  if (in_place_) {
    factors.a_tile = scratch + panel_elements();
    factors.plain_a = operands.plain_rows(block.batch);
  }
  if (const auto* packed = operands.columns(block.batch)) {
    factors.b = packed + (k.begin * panels_ + block.panels.begin * k.size()) * columns;
    return factors;
  }
  if (in_place_) factors.plain_b = operands.plain_columns(block.batch);
  if (factors.plain_b.data != nullptr) factors.plain = block.n.size() / columns;
  factors.stays_plain = block.tiles.size() == 1 || small_b_;
  const Range rest = {block.n.begin + factors.plain * columns, block.n.end};
  if (rest.size() > 0)
    operands.pack(block.batch, k, rest, scratch + factors.plain * columns * k.size());
  return factors;
}

template <class T>
void BlockedGemm::run_block(const BasicGemmOperands<T>& operands, const Block& block,
                            T* scratch) const {
  const auto sums = sums_of(operands, block, scratch + panel_elements() + tile_elements());
  Range k;
  do {
    k = {k.end, std::min(shape_.k, k.end + kGemmDepth)};
    const auto factors = factors_of(operands, block, k, scratch);
    if (by_tile_) {
      multiply_by_tile(operands, block, factors, sums);
    } else {
      multiply_by_panel(block, factors, sums);
    }
  } while (k.end < shape_.k);
  const Range stored = {sums.own_columns, block.n.end};
  if (stored.size() > 0) operands.store(block.batch, {block.m, stored, sums.own, sums.own_stride});
}

template <class T>
BasicMicroTile<T> BlockedGemm::tile_at(const Block& block, const Factors<T>& factors,
                                       const Sums<T>& sums, std::int64_t tile,
                                       std::int64_t panel) const {
  const std::int64_t columns = microkernels().columns;
  const auto row = tiles_.begin(tile), column = (block.panels.begin + panel) * columns;
  const bool own = column >= sums.own_columns;
  const auto stride = own ? sums.own_stride : sums.target.stride;
  return {.a = in_place_ ? factors.a_tile
                         : factors.a + row * shape_.k + factors.k.begin * tiles_.height(tile),
          .b = factors.b + panel * columns * factors.k.size(),
          .c = own ? sums.own + (row - block.m.begin) * stride + column - sums.own_columns
                   : sums.target.data + row * stride + column,
          .c_stride = stride,
          .k_inner = factors.k.size(),
          .b_inner = columns,
          .accumulate = factors.k.begin > 0};
}

template <class T>
void BlockedGemm::multiply_by_panel(const Block& block, const Factors<T>& factors,
                                    const Sums<T>& sums) const {
  for (std::int64_t panel = 0; panel < block.panels.size(); ++panel) {
    for (auto tile = block.tiles.begin; tile < block.tiles.end; ++tile) {
      microkernels().run_tile(tiles_.height(tile), tile_at(block, factors, sums, tile, panel));
    }
  }
}

template <class T>
void BlockedGemm::multiply_by_tile(const BasicGemmOperands<T>& operands, const Block& block,
                                   const Factors<T>& factors, const Sums<T>& sums) const {
  const auto& kernels = microkernels();
  const auto k = factors.k;
  const auto panels = block.panels.size();
  // Each panel fetches its share of the next tile of A.
  const auto share = ceil_div(k.size(), panels);
  auto next = tile_at(block, factors, sums, block.tiles.begin, 0);
  for (auto tile = block.tiles.begin; tile < block.tiles.end; ++tile) {
    const auto height = tiles_.height(tile), next_row = tiles_.begin(tile + 1);
    const bool last = tile + 1 == block.tiles.end;
    if (in_place_)
      operands.pack_tile(block.batch, {tiles_.begin(tile), next_row}, k, factors.a_tile);
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      auto now = next;
      if (panel + 1 < panels) {
        next = tile_at(block, factors, sums, tile, panel + 1);
      } else if (!last) {
        next = tile_at(block, factors, sums, tile + 1, 0);
      }
      const bool first = tile == block.tiles.begin;
      if (panel < factors.plain && (first || factors.stays_plain)) {
        if (!factors.stays_plain) now.packed_b = const_cast<T*>(now.b);
        now.b = factors.plain_b.at(k.begin, block.n.begin + panel * now.b_inner);
        now.b_inner = factors.plain_b.row_stride;
      }
      fetch_in_steps(now, in_place_ ? kPlainFetches : kPackedFetches);
      if (in_place_) now.next_c = next.c;
      if (!last && in_place_) {
        const auto& a = factors.plain_a;
        now.ahead = a.at(next_row, k.begin + panel * share);
        now.ahead_step = a.column_stride == 1 ? a.row_stride : a.column_stride;
      } else if (!last) {
        now.ahead = factors.a + next_row * shape_.k + (k.begin + panel * share) * height;
        now.ahead_step = share * height / kPackedFetches;
      }
      kernels.run_tile(height, now);
    }
  }
}

template void BlockedGemm::run(const BasicGemmOperands<float>&, std::byte*) const;
template void BlockedGemm::run(const BasicGemmOperands<PairWord>&, std::byte*) const;

std::int64_t packed_columns(std::int64_t n, std::int64_t k) {
  const std::int64_t columns = microkernels().columns;
  return checked_mul(round_up(n, columns), k);
}

}  // namespace triptych::cpu
