// Batches of matrix products C = A B, blocked for the caches and spread over threads. A stands
// packed (pack_rows) or is packed tile by tile; blocks of B are packed on the fly by whoever knows
// where they come from, or by the microkernel as the first tile passes; blocks of C are handed to
// whoever knows where they go, or computed where they belong. K is cut
// into blocks, but C keeps its partial sums between them: every element is one chain of fused
// multiply-adds in ascending k.
// Elements are float, or PairWord for int8 operands: then K counts pairs, and C is int32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "backends/cpu/gemm/microkernel.h"
#include "backends/cpu/gemm/pack.h"

namespace triptych::cpu {

/// Depth of K that passes between two visits to a block of C: a panel of B so deep stays in the
/// first-level cache while the rows of A pass by.
inline constexpr std::int64_t kGemmDepth = 256;

struct GemmShape {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// A finished block of C: element (row, column) at values + (row - m.begin) * stride +
/// column - n.begin.
template <class T>
struct BasicGemmBlock {
  Range m;
  Range n;
  const T* values = nullptr;
  std::int64_t stride = 0;
};
using GemmBlock = BasicGemmBlock<float>;

/// Where C lies: element (row, column) at data + row * stride + column; nullptr: nowhere yet.
template <class T>
struct BasicGemmTarget {
  T* data = nullptr;
  std::int64_t stride = 0;
};

/// A factor where it lies: element (i, j) at data + i * row_stride + j * column_stride; nullptr: it
/// does not lie so.
template <class T>
struct BasicGemmFactor {
  const T* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;

  const T* at(std::int64_t i, std::int64_t j) const {
    return data + i * row_stride + j * column_stride;
  }
};
using GemmFactor = BasicGemmFactor<float>;

/// Differences between the operators that are matrix products.
template <class T>
class BasicGemmOperands {
 public:
  virtual ~BasicGemmOperands() = default;
  /// A of this batch entry, packed by pack_rows; not used in place.
  virtual const T* rows(std::int64_t) const { return nullptr; }
  /// In place: A of this batch entry where it lies, for tiles of it that pack_tile packs.
  virtual BasicGemmFactor<T> plain_rows(std::int64_t) const { return {}; }
  /// Packs `k` of rows `m`, which are one tile.
  virtual void pack_tile(std::int64_t, Range, Range, T*) const {}
  /// B of this batch entry when all of it stands packed: for each kGemmDepth of K all columns, as
  /// by `pack`. Or nullptr.
  virtual const T* columns(std::int64_t) const { return nullptr; }
  /// B of this batch entry where it lies, when packing it would only be copying its rows; used in
  /// place.
  virtual BasicGemmFactor<T> plain_columns(std::int64_t) const { return {}; }
  /// Packs a block of B into panels [k][columns], one after the other.
  virtual void pack(std::int64_t batch, Range k, Range n, T* panels) const = 0;
  /// Where C of this batch entry is to stand when storing it would only be copying.
  virtual BasicGemmTarget<T> target(std::int64_t) const { return {}; }
  /// Takes a finished block; called once for every element outside the target, from any thread.
  virtual void store(std::int64_t batch, const BasicGemmBlock<T>& block) const = 0;
};
using GemmOperands = BasicGemmOperands<float>;
using GemmTarget = BasicGemmTarget<float>;

/// How a product is cut; of each batch entry.
struct GemmBlocking {
  std::int64_t columns = 0;        ///< of a panel
  std::int64_t row_tiles = 0;      ///< of the registers
  std::int64_t panels = 0;         ///< of B
  std::int64_t row_blocks = 0;     ///< each packs all of B for itself
  std::int64_t column_blocks = 0;  ///< each goes through all of A
  std::int64_t depth = 0;          ///< of K that passes between two visits to a block of C
  bool by_tile = false;  ///< a row tile meets all panels of a block, not a panel all tiles
  bool small_b = false;  ///< in place, B is read as it lies if it may be
};

class BlockedGemm {
 public:
  /// Blocks for `threads` threads. `in_place`: the operands have a target.
  BlockedGemm(const GemmShape& shape, int threads, bool in_place = false);

  /// Memory that run needs beside the operands. Throws InvalidArgument when it overflows.
  std::size_t scratch_bytes() const;
  GemmBlocking blocking() const;
  /// `scratch` is aligned to kAlignment. Call it inside the arena of the device.
  template <class T>
  void run(const BasicGemmOperands<T>& operands, std::byte* scratch) const;

 private:
  /// One task's part of C.
  struct Block {
    std::int64_t batch = 0;
    Range tiles, panels;
    Range m, n;
  };
  /// Where the sums of a block are: in the operands' target, or in scratch.
  template <class T>
  struct Sums {
    BasicGemmTarget<T> target;
    T* own = nullptr;  ///< of the whole block, or of the columns behind the last whole panel
    std::int64_t own_stride = 0;
    std::int64_t own_columns = 0;  ///< [own_columns, n.end) of the block are there
  };

  Block block_at(std::int64_t task) const;
  template <class T>
  Sums<T> sums_of(const BasicGemmOperands<T>& operands, const Block& block, T* own) const;
  template <class T>
  void run_block(const BasicGemmOperands<T>& operands, const Block& block, T* scratch) const;
  /// The factors of one block, for some of K.
  template <class T>
  struct Factors {
    Range k;
    const T* a = nullptr;  ///< packed, of all K; or in place:
    BasicGemmFactor<T> plain_a;
    T* a_tile = nullptr;   ///< where a tile of it is packed
    const T* b = nullptr;  ///< packed panels
    /// This many panels are read from plain_b: by the first tile, which packs them, or by all.
    std::int64_t plain = 0;
    bool stays_plain = false;
    BasicGemmFactor<T> plain_b;
  };

  template <class T>
  Factors<T> factors_of(const BasicGemmOperands<T>& operands, const Block& block, Range k,
                        T* scratch) const;
  /// Adds the products of the factors, a panel of B with all tiles of A, or a tile with all panels.
  template <class T>
  void multiply_by_panel(const Block& block, const Factors<T>& factors, const Sums<T>& sums) const;
  template <class T>
  void multiply_by_tile(const BasicGemmOperands<T>& operands, const Block& block,
                        const Factors<T>& factors, const Sums<T>& sums) const;
  template <class T>
  BasicMicroTile<T> tile_at(const Block& block, const Factors<T>& factors, const Sums<T>& sums,
                            std::int64_t tile, std::int64_t panel) const;
  void size_blocks();
  std::int64_t blocks() const;
  std::int64_t depth() const;
  std::int64_t panel_elements() const;
  std::int64_t tile_elements() const;
  std::int64_t thread_elements() const;

  GemmShape shape_;
  RowTiles tiles_;
  int threads_;
  bool in_place_;
  std::int64_t panels_;       ///< of all columns
  std::int64_t tile_block_;   ///< row tiles of one block
  std::int64_t panel_block_;  ///< panels of one block
  bool by_tile_, small_b_;    ///< see GemmBlocking
};

/// Elements that pack_columns and pack_patches write for all `n` columns.
std::int64_t packed_columns(std::int64_t n, std::int64_t k);

}  // namespace triptych::cpu
