// The stated reduction tree (core/base/reduction.h) as a program of the vector unit. A lane of the
// tree is one of the unit's first 32 lanes, or of one of several rows where it has fewer. Terms
// fill wider rows, whose further groups of 32 lanes are rotated to the first one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backends/systolic/lowering/vector_program.h"

namespace triptych::systolic {

/// One block of the tree: elements that lie one after another in each operand.
struct TreeBlock {
  std::int64_t first = 0, count = 0;
};

/// Appends the blocks of a row of `length` elements that begins at element `first`.
void append_blocks(std::int64_t first, std::int64_t length, std::vector<TreeBlock>& blocks);

/// Sequences of the same blocks, each `stride` elements behind the one before. A program adds up to
/// `at_once` of them side by side.
struct TreeSequences {
  std::uint32_t count = 1;
  std::int64_t stride = 0;
  std::uint32_t at_once = 1;
};

/// The part of some sequences that is in the vector memory: `rows` rows of each.
struct SequenceRows {
  std::uint32_t first = 0;  ///< number of the first sequence
  std::uint32_t rows = 1;

  /// The rows of a block with one row per sequence.
  VectorBlock of(VectorBlock block) const { return block.from(first).each(rows); }
};

class VectorTree {
 public:
  /// Computes the terms of as many elements as a block of the vector memory holds. Operands and
  /// terms are blocks.
  using Terms = std::function<void(std::span<const VectorBlock> operands,
                                   std::span<const VectorBlock> terms)>;
  using SequenceTerms =
      std::function<void(const SequenceRows& sequences, std::span<const VectorBlock> operands,
                         std::span<const VectorBlock> terms)>;

  /// Sums `terms` values per element. `addresses`: where the operands are in DRAM. `scratch`: where
  /// a row of lanes may be written. Takes a block of the program for each operand, for each term,
  /// and for each sum.
  VectorTree(VectorProgram& program, std::vector<std::uint64_t> addresses, std::size_t terms,
             std::uint64_t scratch);
  ~VectorTree();
  VectorTree(const VectorTree&) = delete;
  VectorTree& operator=(const VectorTree&) = delete;

  /// Lane 0 of `totals`, a row per term, becomes the sum over the blocks.
  void sum(std::span<const TreeBlock> blocks, const Terms& terms,
           std::span<const VectorBlock> totals);
  /// The same for several sequences. `totals` has a row for each of them.
  void sum(std::span<const TreeBlock> blocks, const TreeSequences& sequences,
           const SequenceTerms& terms, std::span<const VectorBlock> totals);
  /// Rows in addition to the blocks that sums of `blocks` blocks take.
  static std::uint32_t pending_rows(std::int64_t blocks, std::size_t terms, std::uint32_t at_once);

  /// Rows of lanes that a block of the vector memory must hold at least.
  static std::uint32_t least_rows(std::uint32_t columns);

 private:
  /// Rows of some blocks of equal size: `rows` of each, from its row `first` on.
  struct Tile {
    std::span<const TreeBlock> blocks;
    std::uint32_t first, rows;
    SequenceRows sequences;
  };
  /// Neighbouring sequences that are added side by side.
  struct Chunk {
    std::uint32_t first, count;
  };
  /// Block sums that wait for their neighbours, as in TreeFold. A row per sequence.
  struct Pending {
    std::vector<VectorBlock> rows;
    std::size_t depth = 0;
    std::int64_t count = 0;
  };

  std::uint32_t rows_of(const TreeBlock& block) const;
  void sum_equal_blocks(std::span<const TreeBlock> blocks, const TreeSequences& sequences,
                        const Chunk& chunk, const SequenceTerms& terms);
  void add_tile(const Tile& tile, const SequenceTerms& terms);
  void load(const Tile& tile);
  void mask_rest(const Tile& tile);
  void accumulate(const Tile& tile, VectorBlock term, VectorBlock sums);
  void add_other_groups(VectorBlock value, std::int64_t elements, VectorBlock sum);
  void fold(std::uint32_t blocks, std::uint32_t used, VectorBlock sums);
  void push(VectorBlock sum, std::uint32_t at_once, Pending& pending);
  void finish(Pending& pending, VectorBlock total);
  /// `rows` rows of each of `blocks` groups: one operation per row, or one per group.
  template <class Apply>
  void for_each_row(std::uint32_t blocks, std::uint32_t rows, const Apply& apply);

  VectorProgram& program_;
  std::vector<std::uint64_t> addresses_;
  std::uint64_t scratch_;
  std::uint32_t width_;           ///< lanes of the tree in a row
  std::uint32_t rows_per_group_;  ///< that hold its 32 lanes
  std::uint32_t groups_per_row_;  ///< of 32 elements, where a row has more lanes
  std::uint32_t row_lanes_;       ///< elements of a row
  std::vector<VectorBlock> operands_, terms_, sums_;
  std::vector<Pending> pending_;
  VectorBlock mask_;
  std::uint32_t masked_ = 0;  ///< lanes that the mask lets pass. 0: there is no mask
};

}  // namespace triptych::systolic
