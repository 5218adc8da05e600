// The one stated summation tree. Every floating-point reduction outside a matrix product computes
// it, so that sums have the same bits on every backend and at any number of threads.
//
// A sequence of elements is given as rows (contiguous runs). Each row is cut into blocks of
// kReductionBlock elements, the last one shorter. In a block, lane l of kReductionLanes starts at
// +0 and adds elements l, l + lanes, l + 2 lanes, ... in ascending order; the lanes are then folded
// by halving: lane l += lane l + 16, then + 8, + 4, + 2, + 1. The block sums, row after row, are
// folded by a balanced tree: neighbours (0, 1), (2, 3), ... are added, an odd last one is kept,
// until one is left. An empty sequence sums to +0. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace triptych {

inline constexpr std::int64_t kReductionLanes = 32;
inline constexpr std::int64_t kReductionBlock = 1024;

/// Blocks of a row of `length` elements.
constexpr std::int64_t reduction_blocks(std::int64_t length) {
  return (length + kReductionBlock - 1) / kReductionBlock;
}

/// Additions on the longest path of the tree over `count` elements, however they lie in rows.
constexpr std::int64_t reduction_depth(std::int64_t count) {
  const auto in_block = count < kReductionBlock ? count : kReductionBlock;
  std::int64_t depth = (in_block + kReductionLanes - 1) / kReductionLanes;
  for (std::int64_t lanes = kReductionLanes; lanes > 1; lanes /= 2) ++depth;
  for (std::int64_t blocks = count; blocks > 1; blocks = (blocks + 1) / 2) ++depth;
  return depth;
}

/// Folds the lanes of one block in place and returns their sum.
constexpr float fold_lanes(float* lanes) {
  for (std::int64_t half = kReductionLanes / 2; half > 0; half /= 2) {
    for (std::int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

/// The sum of one block: `count` <= kReductionBlock elements, element i = value(i).
template <class Value>
constexpr float block_sum(std::int64_t count, const Value& value) {
  float lanes[kReductionLanes] = {};
  std::int64_t i = 0;
  for (; i + kReductionLanes <= count; i += kReductionLanes) {
    for (std::int64_t l = 0; l < kReductionLanes; ++l) lanes[l] += value(i + l);
  }
  for (std::int64_t l = 0; i + l < count; ++l) lanes[l] += value(i + l);
  return fold_lanes(lanes);
}

/// Folds block sums by the balanced tree, overwriting them.
constexpr float fold_tree(std::span<float> sums) {
  if (sums.empty()) return 0;
  for (std::size_t count = sums.size(); count > 1; count = (count + 1) / 2) {
    for (std::size_t i = 0; i + 1 < count; i += 2) sums[i / 2] = sums[i] + sums[i + 1];
    if (count % 2 == 1) sums[count / 2] = sums[count - 1];
  }
  return sums[0];
}

}  // namespace triptych
