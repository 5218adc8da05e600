// Runs the schedules of all ranks on symbols instead of numbers: it finds the final value of every
// element, the order of its sum, and ranks that would wait for ever.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parallel/collectives/schedule.h"

namespace triptych::parallel {

/// A sum of the ranks' contributions, by number.
using TermId = int;

/// Sums of contributions. Equal sums have equal numbers: the operands of an addition have no order,
/// but additions do.
class Terms {
 public:
  struct Node {
    int rank = -1;                 ///< of a contribution
    TermId left = -1, right = -1;  ///< of a sum
  };

  /// Contribution of `rank`. Every rank's element i is the same symbol, as elements never mix.
  TermId contribution(int rank);
  TermId sum(TermId a, TermId b);
  /// As printed: "((0+1)+2)". The part with the smaller first rank comes first.
  std::string text(TermId term) const;
  const Node& node(TermId term) const { return nodes_[static_cast<std::size_t>(term)]; }

 private:
  int first_rank(TermId term) const;

  std::vector<Node> nodes_;
  std::map<std::pair<TermId, TermId>, TermId> sums_;  // contributions: (-1, rank)
};

/// Runs `schedules`, one per rank, in any order that their waits allow. Returns the final value of
/// each element of each rank's buffer: [rank][element]. Throws InvalidArgument with the rank and
/// the step when all are waiting, when a receive meets a send of another size, when nobody receives
/// a message, when scratch memory is read before it is written, or when a step overwrites data that
/// are still being sent.
std::vector<std::vector<TermId>> run_symbolically(std::span<const Schedule> schedules,
                                                  std::int64_t elements, Terms& terms);

}  // namespace triptych::parallel
