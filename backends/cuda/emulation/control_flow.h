// Where the lanes of a warp meet again: the graph of the pieces of straight code that they have
// passed, and its immediate post-dominators (Cooper, Harvey, Kennedy: A Simple, Fast Dominance
// Algorithm, 2001).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace triptych::cuda::emulation {

class ControlFlow {
 public:
  /// Nodes are pieces of code. The first one has no name of its own, and the last one is no code.
  static constexpr std::uint32_t kStart = 0, kEnd = 1, kFirst = 2;

  void clear();
  /// A lane goes from one piece to the next.
  void add(std::uint32_t from, std::uint32_t to);
  /// Finds the post-dominators. `unfinished`: the last pieces of lanes whose further way is not
  /// known yet. A loop that nobody has left ends at its head.
  void solve(std::span<const std::uint32_t> unfinished);
  /// The nearest piece that all ways from `node` lead through, as of the last call of solve().
  std::uint32_t meeting_point(std::uint32_t node) const;

 private:
  using Marks = std::vector<bool>;
  using Edges = std::vector<std::vector<std::uint32_t>>;

  std::uint32_t local(std::uint32_t node);
  void find_exits(std::span<const std::uint32_t> unfinished);
  void find_order();
  void find_meeting_points();
  static void spread(const Edges& edges, std::uint32_t from, Marks& marks);

  std::vector<std::uint32_t> local_;  ///< by node: its number in this graph, plus 1
  std::vector<std::uint32_t> nodes_;  ///< by number
  Edges next_, before_;
  Edges ends_next_, ends_before_;     ///< with the edges to kEnd that are only assumed
  std::vector<std::uint32_t> order_;  ///< from the end: every node after one of its successors
  std::vector<std::uint32_t> meets_;  ///< by number
};

}  // namespace triptych::cuda::emulation
