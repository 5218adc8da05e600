// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/vector_tree.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/reduction.h"

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;

constexpr auto kTreeLanes = static_cast<std::uint32_t>(kReductionLanes);

std::uint32_t tree_width(std::uint32_t columns) {
  return std::bit_floor(std::min(columns, kTreeLanes));
}

std::vector<VectorBlock> blocks_of(VectorProgram& program, std::size_t count) {
  std::vector<VectorBlock> blocks;
  blocks.reserve(count);
  for (std::size_t i = 0; i < count; ++i) blocks.push_back(program.allocate());
  return blocks;
}

}  // namespace

void append_blocks(std::int64_t first, std::int64_t length, std::vector<TreeBlock>& blocks) {
  for (std::int64_t begin = 0; begin < length; begin += kReductionBlock)
    blocks.push_back({first + begin, std::min(kReductionBlock, length - begin)});
}

std::uint32_t VectorTree::least_rows(std::uint32_t columns) {
  return kTreeLanes / tree_width(columns);
}

VectorTree::VectorTree(VectorProgram& program, std::vector<std::uint64_t> addresses,
                       std::size_t terms, std::uint64_t scratch)
    : program_(program),
      addresses_(std::move(addresses)),
      scratch_(scratch),
      width_(tree_width(program.lanes())),
      rows_per_group_(kTreeLanes / width_),
      groups_per_row_(std::max(1U, program.lanes() / kTreeLanes)),
      row_lanes_(groups_per_row_ * width_),
      operands_(blocks_of(program, addresses_.size())),
      terms_(blocks_of(program, terms)),
      sums_(blocks_of(program, terms)),
      pending_(terms),
      mask_(program.allocate(1)) {}

VectorTree::~VectorTree() {
  for (const auto& blocks : {operands_, terms_, sums_})
    for (const VectorBlock block : blocks) program_.release(block);
  for (const Pending& pending : pending_)
    for (const VectorBlock row : pending.rows) program_.release(row);
  program_.release(mask_);
}

std::uint32_t VectorTree::pending_rows(std::int64_t blocks, std::size_t terms,
                                       std::uint32_t at_once) {
  const auto levels =
      static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(blocks)));
  return (levels + 1) * static_cast<std::uint32_t>(terms) * at_once;
}

void VectorTree::sum(std::span<const TreeBlock> blocks, const Terms& terms,
                     std::span<const VectorBlock> totals) {
  sum(
      blocks, {}, [&](const SequenceRows&, auto operands, auto values) { terms(operands, values); },
      totals);
}

std::uint32_t VectorTree::rows_of(const TreeBlock& block) const {
  return static_cast<std::uint32_t>((block.count + row_lanes_ - 1) / row_lanes_);
}

namespace {

/// How many of the blocks are as large as the first one and follow each other without a gap, or may
/// have gaps.
std::size_t equal_blocks(std::span<const TreeBlock> blocks, bool gaps) {
  std::size_t equal = 1;
  const auto follows = [&](std::size_t i) {
    return blocks[i].count == blocks[0].count &&
           (gaps || blocks[i].first == blocks[i - 1].first + blocks[0].count);
  };
  while (equal < blocks.size() && follows(equal)) ++equal;
  return equal;
}

}  // namespace

void VectorTree::sum(std::span<const TreeBlock> blocks, const TreeSequences& sequences,
                     const SequenceTerms& terms, std::span<const VectorBlock> totals) {
  std::uint32_t at_once = 1;
  if (!blocks.empty()) {
    const auto rows = static_cast<std::uint32_t>(equal_blocks(blocks, false)) * rows_of(blocks[0]);
    at_once = std::clamp(program_.block_rows() / rows, 1U, sequences.at_once);
  }
  for (std::uint32_t first = 0; first < sequences.count; first += at_once) {
    const Chunk chunk{first, std::min(at_once, sequences.count - first)};
    for (auto rest = blocks; !rest.empty();) {
      const std::size_t equal = equal_blocks(rest, chunk.count == 1);
      sum_equal_blocks(rest.first(equal), sequences, chunk, terms);
      rest = rest.subspan(equal);
    }
    program_.use_rows(chunk.count);
    for (std::size_t i = 0; i < totals.size(); ++i) finish(pending_[i], totals[i].from(first));
  }
}

void VectorTree::sum_equal_blocks(std::span<const TreeBlock> blocks, const TreeSequences& sequences,
                                  const Chunk& chunk, const SequenceTerms& terms) {
  const std::uint32_t rows = rows_of(blocks[0]);
  const std::uint32_t most = program_.block_rows() / rows_per_group_ * rows_per_group_;
  const std::size_t together =
      std::max<std::size_t>(1, program_.block_rows() / (rows * chunk.count));
  std::vector<TreeBlock> tile;
  for (; !blocks.empty(); blocks = blocks.subspan(tile.size() / chunk.count)) {
    const auto each = static_cast<std::uint32_t>(std::min(blocks.size(), together));
    tile.clear();
    for (std::uint32_t s = chunk.first; s < chunk.first + chunk.count; ++s)
      for (const TreeBlock& block : blocks.first(each))
        tile.push_back({block.first + s * sequences.stride, block.count});
    if (rows <= program_.block_rows()) {
      add_tile({tile, 0, rows, {chunk.first, each * rows}}, terms);
    } else {
      for (std::uint32_t first = 0; first < rows; first += most) {
        const std::uint32_t part = std::min(most, rows - first);
        add_tile({tile, first, part, {chunk.first, part}}, terms);
      }
    }
    const std::uint32_t used = std::min(rows_per_group_, rows);
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      fold(static_cast<std::uint32_t>(tile.size()), used, sums_[i]);
      program_.use_rows(chunk.count);
      for (std::uint32_t b = 0; b < each; ++b)
        push(sums_[i].from(b * used).with_step(each * used), sequences.at_once, pending_[i]);
    }
  }
}

void VectorTree::add_tile(const Tile& tile, const SequenceTerms& terms) {
  load(tile);
  program_.use_rows(static_cast<std::uint32_t>(tile.blocks.size()) * tile.rows);
  terms(tile.sequences, operands_, terms_);
  mask_rest(tile);
  for (std::size_t i = 0; i < terms_.size(); ++i) accumulate(tile, terms_[i], sums_[i]);
}

/// Blocks that follow each other without a gap take one load, where each begins in a new row.
void VectorTree::load(const Tile& tile) {
  const std::int64_t skipped = std::int64_t{tile.first} * row_lanes_;
  const std::int64_t count =
      std::min(tile.blocks[0].count - skipped, std::int64_t{tile.rows} * row_lanes_);
  const auto lanes = static_cast<std::uint32_t>(std::min(count, std::int64_t{row_lanes_}));
  for (std::size_t o = 0; o < operands_.size(); ++o) {
    for (std::size_t b = 0; b < tile.blocks.size();) {
      const std::int64_t first = tile.blocks[b].first + skipped;
      const auto row = static_cast<std::uint32_t>(b) * tile.rows;
      std::int64_t all = count;
      const auto follows = [&] {
        return b < tile.blocks.size() && tile.blocks[b].first + skipped == first + all &&
               all % lanes == 0;
      };
      for (++b; follows(); ++b) all += count;
      program_.load(addresses_[o] + static_cast<std::uint64_t>(4 * first), all, lanes,
                    operands_[o].from(row));
    }
  }
}

/// Lanes behind the last element of a block add +0.
void VectorTree::mask_rest(const Tile& tile) {
  const std::int64_t count = tile.blocks[0].count;
  const auto rest = static_cast<std::uint32_t>(count % row_lanes_);
  if (rest == 0 || (tile.first + tile.rows) * std::int64_t{row_lanes_} < count) return;
  if (masked_ != rest) {
    program_.use_rows(1);
    program_.apply(VectorOperation::Fill, mask_, {}, VectorOperand::bits(~0U));
    program_.store_rows(mask_, 1, rest, scratch_, 0);
    program_.load_rows(scratch_, 0, 1, rest, mask_);
    masked_ = rest;
  }
  program_.use_rows(static_cast<std::uint32_t>(tile.blocks.size()));
  for (const VectorBlock term : terms_) {
    const VectorBlock last = term.from(tile.rows - 1).with_step(tile.rows);
    program_.apply(VectorOperation::Select, last, last, 0.0F, mask_.repeat());
  }
}

template <class Apply>
void VectorTree::for_each_row(std::uint32_t blocks, std::uint32_t rows, const Apply& apply) {
  const bool by_row = blocks >= rows;
  program_.use_rows(by_row ? blocks : rows);
  for (std::uint32_t i = 0; i < (by_row ? rows : blocks); ++i)
    by_row ? apply(0U, i, true) : apply(i, 0U, false);
}

void VectorTree::accumulate(const Tile& tile, VectorBlock term, VectorBlock sums) {
  const auto blocks = static_cast<std::uint32_t>(tile.blocks.size());
  const std::uint32_t used = std::min(rows_per_group_, tile.rows);
  for (std::uint32_t first = 0; first < tile.rows; first += rows_per_group_) {
    const bool starts = tile.first == 0 && first == 0;
    const std::int64_t rest =
        tile.blocks[0].count - std::int64_t{row_lanes_} * (tile.first + first);
    for_each_row(blocks, std::min(rows_per_group_, tile.rows - first),
                 [&](std::uint32_t block, std::uint32_t row, bool by_row) {
                   const auto at = [&](VectorBlock rows, std::uint32_t step) {
                     const VectorBlock from = rows.from(block * step + row);
                     return by_row ? from.with_step(step) : from;
                   };
                   const VectorBlock sum = at(sums, used);
                   const VectorBlock value = at(term.from(first), tile.rows);
                   if (starts)
                     program_.apply(VectorOperation::Add, sum, value, 0.0F);
                   else
                     program_.apply(VectorOperation::Add, sum, sum, value);
                   add_other_groups(value, rest, sum);
                 });
  }
}

/// The groups of 32 lanes behind the first one, in the order of the elements. Rows of the operands
/// are free when their terms are there.
void VectorTree::add_other_groups(VectorBlock value, std::int64_t elements, VectorBlock sum) {
  const VectorBlock moved = operands_[0];
  for (std::uint32_t lane = width_; lane < row_lanes_ && lane < elements; lane += width_) {
    program_.rotate(value, lane, moved);
    program_.apply(VectorOperation::Add, sum, sum, moved);
  }
}

/// Lane l gets lane l + 16 and so on, of `used` rows per block. The sum is in lane 0 of the first.
void VectorTree::fold(std::uint32_t blocks, std::uint32_t used, VectorBlock sums) {
  std::uint32_t half = kTreeLanes / 2;
  for (; half >= width_; half /= 2) {
    const std::uint32_t distance = half / width_;
    if (used <= distance) continue;
    for_each_row(blocks, std::min(distance, used - distance),
                 [&](std::uint32_t block, std::uint32_t row, bool by_row) {
                   VectorBlock low = sums.from(block * used + row);
                   VectorBlock high = low.from(distance);
                   if (by_row) {
                     low = low.with_step(used);
                     high = high.with_step(used);
                   }
                   program_.apply(VectorOperation::Add, low, low, high);
                 });
  }
  const VectorBlock first = sums.with_step(used), moved = operands_[0];
  program_.use_rows(blocks);
  for (; half > 0; half /= 2) {
    program_.rotate(first, half, moved);
    program_.apply(VectorOperation::Add, first, first, moved);
  }
}

void VectorTree::push(VectorBlock sum, std::uint32_t at_once, Pending& pending) {
  VectorBlock carried = sum;
  for (auto bit = pending.count++; bit % 2 == 1; bit /= 2) {
    const VectorBlock left = pending.rows[--pending.depth];
    program_.apply(VectorOperation::Add, left, left, carried);
    carried = left;
  }
  if (pending.depth == pending.rows.size()) pending.rows.push_back(program_.allocate(at_once));
  const VectorBlock waiting = pending.rows[pending.depth++];
  if (carried.row != waiting.row) program_.apply(VectorOperation::Move, waiting, carried);
}

void VectorTree::finish(Pending& pending, VectorBlock total) {
  if (pending.depth == 0) return program_.apply(VectorOperation::Fill, total, {}, 0.0F);
  VectorBlock sum = pending.rows[pending.depth - 1];
  for (std::size_t i = pending.depth - 1; i-- > 0;) {
    program_.apply(VectorOperation::Add, pending.rows[i], pending.rows[i], sum);
    sum = pending.rows[i];
  }
  program_.apply(VectorOperation::Move, total, sum);
  pending = {std::move(pending.rows), 0, 0};
}

}  // namespace triptych::systolic
