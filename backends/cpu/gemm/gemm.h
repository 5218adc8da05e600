// Batches of matrix products C = A B, blocked for the caches and spread over threads. A stands
// packed (pack_rows); blocks of B are packed on the fly by whoever knows where they come from;
// blocks of C are handed to whoever knows where they go. K is cut into blocks, but C keeps its
// partial sums between them: every element is one chain of fused multiply-adds in ascending k.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "backends/cpu/gemm/pack.h"

namespace triptych::cpu {

struct GemmShape {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// A finished block of C: element (row, column) at values + (row - m.begin) * stride +
/// column - n.begin.
struct GemmBlock {
  Range m;
  Range n;
  const float* values = nullptr;
  std::int64_t stride = 0;
};

/// What differs between the operators that are matrix products.
class GemmOperands {
 public:
  virtual ~GemmOperands() = default;
  /// A of this batch entry, packed by pack_rows.
  virtual const float* rows(std::int64_t batch) const = 0;
  /// B of this batch entry when all of it stands packed (rows k = [0, K), all columns), or nullptr.
  virtual const float* columns(std::int64_t) const { return nullptr; }
  /// Packs a block of B into panels [k][columns], one after the other.
  virtual void pack(std::int64_t batch, Range k, Range n, float* panels) const = 0;
  /// Takes a finished block; called once for every element, from any thread.
  virtual void store(std::int64_t batch, const GemmBlock& block) const = 0;
};

class BlockedGemm {
 public:
  /// Blocks for `threads` threads.
  BlockedGemm(const GemmShape& shape, int threads);

  /// Memory that run needs beside the operands. Throws InvalidArgument when it overflows.
  std::size_t scratch_bytes() const;
  /// `scratch` is aligned to kAlignment. Call it inside the arena of the device.
  void run(const GemmOperands& operands, std::byte* scratch) const;

 private:
  void run_block(const GemmOperands& operands, std::int64_t task, float* scratch) const;
  std::int64_t panel_floats() const;
  std::int64_t thread_floats() const;

  GemmShape shape_;
  RowTiles tiles_;
  int threads_;
  std::int64_t panels_;       ///< of all columns
  std::int64_t tile_block_;   ///< row tiles of one block
  std::int64_t panel_block_;  ///< panels of one block
};

/// Floats that pack_columns and pack_patches write for all `n` columns.
std::int64_t packed_columns(std::int64_t n, std::int64_t k);

}  // namespace triptych::cpu
