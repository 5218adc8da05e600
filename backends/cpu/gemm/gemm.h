// Batches of matrix products C = A B, blocked for the caches and spread over threads. A stands
// packed (pack_rows); blocks of B are packed on the fly by whoever knows where they come from;
// blocks of C are handed to whoever knows where they go. K is cut into blocks, but C keeps its
// partial sums between them: every element is one chain of fused multiply-adds in ascending k.
// Elements are float, or PairWord for int8 operands: then K counts pairs, and C is int32.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "backends/cpu/gemm/microkernel.h"
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
template <class T>
struct BasicGemmBlock {
  Range m;
  Range n;
  const T* values = nullptr;
  std::int64_t stride = 0;
};
using GemmBlock = BasicGemmBlock<float>;

/// What differs between the operators that are matrix products.
template <class T>
class BasicGemmOperands {
 public:
  virtual ~BasicGemmOperands() = default;
  /// A of this batch entry, packed by pack_rows.
  virtual const T* rows(std::int64_t batch) const = 0;
  /// B of this batch entry when all of it stands packed (rows k = [0, K), all columns), or nullptr.
  virtual const T* columns(std::int64_t) const { return nullptr; }
  /// Packs a block of B into panels [k][columns], one after the other.
  virtual void pack(std::int64_t batch, Range k, Range n, T* panels) const = 0;
  /// Takes a finished block; called once for every element, from any thread.
  virtual void store(std::int64_t batch, const BasicGemmBlock<T>& block) const = 0;
};
using GemmOperands = BasicGemmOperands<float>;

class BlockedGemm {
 public:
  /// Blocks for `threads` threads.
  BlockedGemm(const GemmShape& shape, int threads);

  /// Memory that run needs beside the operands. Throws InvalidArgument when it overflows.
  std::size_t scratch_bytes() const;
  /// `scratch` is aligned to kAlignment. Call it inside the arena of the device.
  template <class T>
  void run(const BasicGemmOperands<T>& operands, std::byte* scratch) const;

 private:
  template <class T>
  void run_block(const BasicGemmOperands<T>& operands, std::int64_t task, T* scratch) const;
  std::int64_t panel_elements() const;
  std::int64_t thread_elements() const;

  GemmShape shape_;
  RowTiles tiles_;
  int threads_;
  std::int64_t panels_;       ///< of all columns
  std::int64_t tile_block_;   ///< row tiles of one block
  std::int64_t panel_block_;  ///< panels of one block
};

/// Elements that pack_columns and pack_patches write for all `n` columns.
std::int64_t packed_columns(std::int64_t n, std::int64_t k);

}  // namespace triptych::cpu
