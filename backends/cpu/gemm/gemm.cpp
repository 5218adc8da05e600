// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gemm/gemm.h"

#include <algorithm>

#include "backends/cpu/gemm/microkernel.h"
#include "backends/host/parallel.h"
#include "core/base/checked_math.h"

namespace triptych::cpu {
namespace {

// A panel of B of this depth stays in the first-level cache while the rows of A pass by.
constexpr std::int64_t kDepth = 256;
// A block of B, a block of A of kDepth and a block of C fit the second-level cache together.
constexpr std::int64_t kBlockElements = 65536;
constexpr std::int64_t kBlockRows = 512;
// Enough blocks that threads which come late or are preempted cost little.
constexpr std::int64_t kBlocksPerThread = 4;
// Less work than this is not worth a task of its own.
constexpr std::int64_t kTaskMultiplies = 65536;

}  // namespace

BlockedGemm::BlockedGemm(const GemmShape& shape, int threads)
    : shape_(shape), tiles_(shape.m), threads_(threads) {
  const std::int64_t columns = microkernels().columns;
  const auto depth = std::clamp<std::int64_t>(shape.k, 1, kDepth);
  panels_ = ceil_div(shape.n, columns);
  // Rather blocks that are a little too large than one more: each packs B for itself.
  const auto row_blocks = std::max<std::int64_t>(1, (shape.m + kBlockRows / 2) / kBlockRows);
  tile_block_ = ceil_div(tiles_.count(), row_blocks);
  panel_block_ = std::clamp<std::int64_t>(kBlockElements / (depth * columns), 1,
                                          std::max<std::int64_t>(1, panels_));
  const auto work = [&] {
    return tile_block_ * microkernels().max_rows * panel_block_ * columns * shape.k;
  };
  const auto blocks = [&] {
    return shape.batch * ceil_div(tiles_.count(), tile_block_) * ceil_div(panels_, panel_block_);
  };
  while (threads > 1 && blocks() < kBlocksPerThread * threads && work() > 2 * kTaskMultiplies) {
    if (panel_block_ > 1) {
      panel_block_ = ceil_div(panel_block_, 2);
    } else if (tile_block_ > 1) {
      tile_block_ = ceil_div(tile_block_, 2);
    } else {
      break;
    }
  }
}

std::int64_t BlockedGemm::panel_elements() const {
  return panel_block_ * microkernels().columns * std::clamp<std::int64_t>(shape_.k, 1, kDepth);
}

std::int64_t BlockedGemm::thread_elements() const {
  const auto block = panel_block_ * microkernels().columns * tile_block_ * microkernels().max_rows;
  return round_up(panel_elements() + block, 16);
}

std::size_t BlockedGemm::scratch_bytes() const {
  return static_cast<std::size_t>(checked_mul(thread_elements(), threads_)) * sizeof(float);
}

template <class T>
void BlockedGemm::run(const BasicGemmOperands<T>& operands, std::byte* scratch) const {
  const auto blocks =
      shape_.batch * ceil_div(tiles_.count(), tile_block_) * ceil_div(panels_, panel_block_);
  if (shape_.m == 0) return;
  parallel_for(blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    const auto thread = tbb::this_task_arena::current_thread_index();
    T* own = reinterpret_cast<T*>(scratch) + thread * thread_elements();
    for (auto block = begin; block < end; ++block) run_block(operands, block, own);
  });
}

template <class T>
void BlockedGemm::run_block(const BasicGemmOperands<T>& operands, std::int64_t task,
                            T* scratch) const {
  const auto& kernels = microkernels();
  const auto row_blocks = ceil_div(tiles_.count(), tile_block_);
  const auto column_blocks = ceil_div(panels_, panel_block_);
  const auto batch = task / (row_blocks * column_blocks);
  const auto row_block = task / column_blocks % row_blocks;
  const auto column_block = task % column_blocks;
  // Blocks of equal size, not full ones and a rest.
  const Range tiles = {row_block * tiles_.count() / row_blocks,
                       (row_block + 1) * tiles_.count() / row_blocks};
  const Range panels = {column_block * panels_ / column_blocks,
                        (column_block + 1) * panels_ / column_blocks};
  const Range m = {tiles_.begin(tiles.begin), tiles_.begin(tiles.end)};
  const Range n = {panels.begin * kernels.columns,
                   std::min(shape_.n, panels.end * kernels.columns)};
  T* c = scratch + panel_elements();
  const auto c_stride = panels.size() * kernels.columns;
  const T* a = operands.rows(batch);
  const T* packed = operands.columns(batch);
  Range k;
  do {
    k = {k.end, std::min(shape_.k, k.end + kDepth)};
    if (packed == nullptr) operands.pack(batch, k, n, scratch);
    for (std::int64_t panel = 0; panel < panels.size(); ++panel) {
      const T* b = packed == nullptr
                       ? scratch + panel * k.size() * kernels.columns
                       : packed + ((panels.begin + panel) * shape_.k + k.begin) * kernels.columns;
      for (auto tile = tiles.begin; tile < tiles.end; ++tile) {
        const auto height = tiles_.height(tile);
        kernels.run_tile(
            height, BasicMicroTile<T>{.a = a + tiles_.begin(tile) * shape_.k + k.begin * height,
                                      .b = b,
                                      .c = c + (tiles_.begin(tile) - m.begin) * c_stride +
                                           panel * kernels.columns,
                                      .c_stride = c_stride,
                                      .k_inner = k.size(),
                                      .b_inner = kernels.columns,
                                      .accumulate = k.begin > 0});
      }
    }
  } while (k.end < shape_.k);
  operands.store(batch, {m, n, c, c_stride});
}

template void BlockedGemm::run(const BasicGemmOperands<float>&, std::byte*) const;
template void BlockedGemm::run(const BasicGemmOperands<PairWord>&, std::byte*) const;

std::int64_t packed_columns(std::int64_t n, std::int64_t k) {
  const std::int64_t columns = microkernels().columns;
  return checked_mul(round_up(n, columns), k);
}

}  // namespace triptych::cpu
