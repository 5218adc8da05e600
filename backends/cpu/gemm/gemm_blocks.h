// The walk of tiles that every product of matrices C = A B takes: C is cut into blocks, one for
// each task, of whole row tiles of A and whole panels of columns of B, sized for the caches and the
// threads. K is cut into depths, but C keeps its partial sums between them: every element is one
// chain of fused multiply-adds in ascending k.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/pack.h"
#include "backends/host/parallel.h"
#include "core/base/range.h"

namespace triptych::cpu {

/// Depth of K that passes between two visits to a block of C: a panel of B so deep stays in the
/// first-level cache while the rows of A pass by.
inline constexpr std::int64_t kGemmDepth = 256;

/// A batch of products [m, k] x [k, n].
struct GemmShape {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// The blocks of a product, for each batch entry.
struct GemmBlocking {
  std::int64_t columns = 0;        ///< of a panel
  std::int64_t width = 0;          ///< of all tiles. Those of the last panel may be narrow
  std::int64_t row_tiles = 0;      ///< of the registers
  std::int64_t panels = 0;         ///< of B
  std::int64_t row_blocks = 0;     ///< each packs all of B for itself
  std::int64_t column_blocks = 0;  ///< each goes through all of A
  std::int64_t depth = 0;          ///< of K that passes between two visits to a block of C
  bool by_tile = false;     ///< a row tile meets all panels of a block, not a panel all tiles
  bool small_b = false;     ///< in place, B is read as it lies if it may be
  bool few_panels = false;  ///< the same of A's tiles
};

/// Bounds of a block.
struct BlockLimits {
  std::int64_t rows = 0;        ///< about this many, rather larger blocks than one more
  std::int64_t elements = 0;    ///< of B, for one depth of K
  std::int64_t sum_rows = 0;    ///< of C, up to so many, count where B is less deep
  std::int64_t few_panels = 1;  ///< are not cut further while there are many tiles
  std::int64_t many_tiles = 0;  ///< are cut before panels are
  std::int64_t per_thread = 1;  ///< blocks that each thread is to have
};

class GemmBlocks {
 public:
  /// One task's part of C.
  struct Block {
    std::int64_t batch = 0;
    Range tiles, panels;
    Range m, n;
  };

  GemmBlocks(const GemmShape& shape, const RowTiles& tiles, int threads, const BlockLimits& limits);

  const GemmShape& shape() const { return shape_; }
  const RowTiles& tiles() const { return tiles_; }
  /// The blocking, without the parts that depend on the product.
  GemmBlocking blocking() const;
  /// Depth in K that is multiplied at once.
  std::int64_t depth() const;
  /// Elements of a block at most: rows, and panels of B.
  std::int64_t block_rows() const;
  std::int64_t panel_elements() const;
  std::int64_t columns() const;
  /// Whether the narrow tiles hold all columns of the block's panel, counted from its first.
  bool is_narrow(const Block& block, std::int64_t panel) const;

  /// Bytes of scratch with this many elements of 4 bytes for each thread.
  std::size_t scratch_bytes(std::int64_t thread_elements) const;
  /// Calls work(block, scratch of the thread) for all blocks, on all threads.
  template <class T, class Work>
  void for_each(T* scratch, std::int64_t thread_elements, const Work& work) const;
  /// Calls multiply(k) for one depth of K after the other. Once with an empty one where K is empty.
  template <class Multiply>
  void for_each_depth(const Multiply& multiply) const;

 private:
  std::int64_t count() const;
  std::int64_t row_blocks() const { return ceil_div(tiles_.count(), tile_block_); }
  std::int64_t column_blocks() const { return ceil_div(panels_, panel_block_); }
  Block block_at(std::int64_t task) const;
  void share_among_threads(const BlockLimits& limits);

  GemmShape shape_;
  RowTiles tiles_;
  int threads_;
  std::int64_t panels_;       ///< of all columns
  std::int64_t tile_block_;   ///< row tiles of one block
  std::int64_t panel_block_;  ///< panels of one block
};

template <class T, class Work>
void GemmBlocks::for_each(T* scratch, std::int64_t thread_elements, const Work& work) const {
  if (shape_.m == 0) return;
  parallel_for(count(), 1, [&](std::int64_t begin, std::int64_t end) {
    T* own = scratch + thread_index() * thread_elements;
    for (auto task = begin; task < end; ++task) work(block_at(task), own);
  });
}

template <class Multiply>
void GemmBlocks::for_each_depth(const Multiply& multiply) const {
  Range k;
  do {
    k = {k.end, std::min(shape_.k, k.end + kGemmDepth)};
    multiply(k);
  } while (k.end < shape_.k);
}

}  // namespace triptych::cpu
