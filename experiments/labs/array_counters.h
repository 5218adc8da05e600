// Counters of the systolic array while it runs one operator (`triptych trace`).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "experiments/labs/bench.h"

namespace triptych::labs {

/// Counters of one node, by their names in docs/reference/json.md.
class ArrayCounters {
 public:
  /// Runs `triptych trace ARGUMENTS --json` on the bench, of which the node must be the only one.
  /// Throws InvalidArgument with the program's words when it refuses.
  ArrayCounters(Bench& bench, const std::vector<std::string>& arguments);

  std::int64_t operator[](const char* name) const { return counters_.at(name).get<std::int64_t>(); }
  std::int64_t cycles() const { return (*this)["cycles"]; }
  /// Cycles in which nothing enters the array.
  std::int64_t stalls() const { return cycles() - (*this)["issue_cycles"]; }

 private:
  page::Json counters_;
};

}  // namespace triptych::labs
