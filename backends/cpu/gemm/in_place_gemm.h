// Batches of matrix products C = A B of matrices in memory: C is computed where it belongs, A is
// packed tile by tile, B is read as it lies, packed by the microkernel as the first tile passes, or
// packed before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "backends/cpu/gemm/gemm_blocks.h"
#include "backends/cpu/gemm/prefetch.h"

namespace triptych::cpu {

/// Where C lies: element (row, column) at data + row * stride + column.
struct GemmTarget {
  float* data = nullptr;
  std::int64_t stride = 0;
};

/// A factor where it lies: element (i, j) at data + i * row_stride + j * column_stride.
struct GemmFactor {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;

  const float* at(std::int64_t i, std::int64_t j) const {
    return data + i * row_stride + j * column_stride;
  }
};

/// The matrices of each batch entry.
class InPlaceOperands {
 public:
  virtual ~InPlaceOperands() = default;
  virtual GemmFactor a(std::int64_t batch) const = 0;
  /// Whether packing `a` would only copy rows whose k lie side by side.
  virtual bool is_plain(const GemmFactor& a) const = 0;
  /// Packs `k` of rows `m` of A, which are one tile.
  virtual void pack_tile(std::int64_t batch, Range m, Range k, float* to) const = 0;
  /// B when all of it stands packed: for each kGemmDepth of K all columns, as by `pack`. Or
  /// nullptr.
  virtual const float* packed_b(std::int64_t batch) const = 0;
  /// B if packing would only copy its rows, otherwise without data.
  virtual GemmFactor plain_b(std::int64_t batch) const = 0;
  /// Packs a block of B into panels [k][columns], one after the other.
  virtual void pack(std::int64_t batch, Range k, Range n, float* panels) const = 0;
  virtual GemmTarget c(std::int64_t batch) const = 0;
};

class InPlaceGemm {
 public:
  /// Blocks for `threads` threads.
  InPlaceGemm(const GemmShape& shape, int threads);

  /// Memory that run needs in addition to the operands. Throws InvalidArgument when it overflows.
  std::size_t scratch_bytes() const { return blocks_.scratch_bytes(thread_elements()); }
  GemmBlocking blocking() const;
  /// `scratch` is aligned to kAlignment. Call it inside the arena of the device.
  void run(const InPlaceOperands& operands, std::byte* scratch) const;

 private:
  using Block = GemmBlocks::Block;
  /// The sums of a block: in C, except for the columns after the last whole panel.
  struct Sums {
    GemmTarget c;
    float* rest = nullptr;  ///< [block rows][columns of a panel]
    Range rest_columns;
  };
  /// The factors of one block, for some of K.
  struct Factors {
    Range k;
    GemmFactor a;
    float* a_tile = nullptr;  ///< where a tile of it is packed
    const float* panels = nullptr;
    /// This many panels are read from plain_b: by the first tile, which packs them, or by all.
    std::int64_t plain = 0;
    bool stays_plain = false;
    bool a_stays = false;  ///< tiles of A are read as they lie
    GemmFactor plain_b;
  };

  void run_block(const InPlaceOperands& operands, const Block& block, float* scratch) const;
  Factors factors_of(const InPlaceOperands& operands, const Block& block, Range k,
                     float* scratch) const;
  void multiply(const InPlaceOperands& operands, const Block& block, const Factors& factors,
                const Sums& sums) const;
  /// A tile with all panels of the block.
  void multiply_tile(const Block& block, const Factors& factors, const Sums& sums,
                     std::int64_t tile) const;
  /// Where the sums of a panel begin, from `row` of all rows on.
  GemmTarget target(const Block& block, const Sums& sums, std::int64_t row,
                    std::int64_t panel) const;
  TilePrefetch<float> prefetch(const Block& block, const Factors& factors, std::int64_t tile) const;
  std::int64_t tile_elements() const;
  std::int64_t thread_elements() const;

  GemmBlocks blocks_;
  bool small_b_;     ///< see GemmBlocking
  bool few_panels_;  ///< see GemmBlocking
};

}  // namespace triptych::cpu
