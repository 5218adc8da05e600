// The bytes that blocks occupy over time: which of them are in use at some time of an interval.
// A segment tree over time (de Berg et al., "Computational Geometry", section 10.3). A block is
// stored at the O(log n) nodes that make up its lifetime, and adjacent ranges are stored as one.
// So a query of a dense packing visits O(log n) ranges. A query of a packing with many holes
// visits all of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace triptych {

/// Bytes from `begin` up to `end`, which is not included.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  bool operator==(const ByteRange&) const = default;
};

/// Disjoint ranges in ascending order.
class RangeSet {
 public:
  /// Adds the bytes, and merges overlapping and adjacent ranges.
  void add(ByteRange added);
  const std::vector<ByteRange>& ranges() const { return ranges_; }

 private:
  std::vector<ByteRange> ranges_;
};

class OccupiedBytes {
 public:
  /// `times`: every time that begins or ends an interval of a call, in any order.
  explicit OccupiedBytes(std::vector<std::size_t> times);

  /// Marks the bytes as in use from time `first` through time `last`.
  void add(std::size_t first, std::size_t last, ByteRange bytes);
  /// The bytes in use at some time from `first` through `last`, in ascending order of their
  /// begins. Ranges may overlap. Valid until the next call.
  const std::vector<ByteRange>& during(std::size_t first, std::size_t last);

 private:
  struct Node {
    RangeSet throughout;  ///< in use during the whole interval of the node, and not of its parent
    RangeSet sometime;    ///< in use at some time of the interval, and not throughout the parent's
  };
  /// Ranks of times, both included.
  struct Interval {
    std::size_t first, last;
  };

  Interval ranks(std::size_t first, std::size_t last) const;
  /// Calls visit(node, is_inside) for each node that overlaps `wanted`, parents first. Does not
  /// visit the nodes below one inside of `wanted`.
  template <class Visit>
  void walk(Interval wanted, const Visit& visit);
  template <class Visit>
  void walk(std::size_t node, Interval own, Interval wanted, const Visit& visit);

  std::vector<std::size_t> times_;  ///< in ascending order, each once
  std::vector<Node> nodes_;         ///< the children of node i are 2i + 1 and 2i + 2
  std::vector<ByteRange> found_;
};

}  // namespace triptych
