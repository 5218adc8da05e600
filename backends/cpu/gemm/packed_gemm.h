// Batches of matrix products C = A B. A is packed already (pack_rows). The caller packs blocks of B
// as they are needed, and stores finished blocks of C.
// Elements are float, or words of two k, which K counts then: PairWord for int8 operands, with
// int32 sums, and DotWord for bfloat16.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "backends/cpu/gemm/gemm_blocks.h"
#include "backends/cpu/gemm/prefetch.h"

namespace triptych::cpu {

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

/// Differences between the operators that are such products.
template <class T>
class BasicGemmOperands {
 public:
  virtual ~BasicGemmOperands() = default;
  /// A of this batch entry, packed by pack_rows.
  virtual const T* rows(std::int64_t batch) const = 0;
  /// Packs a block of B into panels [k][columns], one after the other.
  virtual void pack(std::int64_t batch, Range k, Range n, T* panels) const = 0;
  /// The part of K where these columns of B, of one panel, are not all 0. The rest is neither
  /// packed nor multiplied, also for infinities in A. Nothing: all of it.
  virtual std::optional<Range> live(Range) const { return {}; }
  /// Receives a finished block. Called once for every element, from any thread.
  virtual void store(std::int64_t batch, const BasicGemmBlock<ProductSum<T>>& block) const = 0;
};
using GemmOperands = BasicGemmOperands<float>;

class PackedGemm {
 public:
  /// Blocks for `threads` threads.
  PackedGemm(const GemmShape& shape, int threads);

  /// Memory that run needs in addition to the operands. Throws InvalidArgument when it overflows.
  std::size_t scratch_bytes() const { return blocks_.scratch_bytes(thread_elements()); }
  GemmBlocking blocking() const;
  /// `scratch` is aligned to kAlignment. Call it inside the arena of the device.
  template <class T>
  void run(const BasicGemmOperands<T>& operands, std::byte* scratch) const;

 private:
  using Block = GemmBlocks::Block;

  template <class T>
  void run_block(const BasicGemmOperands<T>& operands, const Block& block, T* scratch) const;
  template <class T>
  void pack(const BasicGemmOperands<T>& operands, const Block& block, Range k, T* panels) const;
  /// The live part of `k` in a panel, counted from the block's first.
  template <class T>
  Range live(const BasicGemmOperands<T>& operands, const Block& block, Range k,
             std::int64_t panel) const;
  /// Adds the products of A, packed for all of K, with the packed panels of a block to its sums.
  template <class T>
  void multiply(const BasicGemmOperands<T>& operands, const Block& block, Range k, const T* panels,
                ProductSum<T>* sums) const;
  template <class T>
  TilePrefetch<T> prefetch(const Block& block, Range k, const T* a, std::int64_t tile) const;
  std::int64_t thread_elements() const;

  GemmBlocks blocks_;
  bool by_tile_;  ///< see GemmBlocking
};

}  // namespace triptych::cpu
