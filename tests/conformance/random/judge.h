// Checks a random graph on the CPU: every node by its own float64 reference, and the whole by equal
// bits for every plan. Checks other machines by the same reference, and by the CPU's bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/runtime/plan.h"
#include "tests/conformance/random/grower.h"

namespace triptych::conformance {

/// Things that the graphs checked so far have exercised.
struct Coverage {
  std::set<std::string, std::less<>> ops;  ///< names, composites and their expansions
  int concats_in_place = 0;
  int overwritten = 0;  ///< values that took the memory of a dying one
  int updates = 0;
  int folded = 0;      ///< graphs with a folded constant
  int recomputed = 0;  ///< graphs with a repeated computation
};

/// A machine, with the CPU for the nodes that it does not run.
struct Machine {
  std::vector<Device*> devices;  ///< itself, then the CPU
  int nodes = 0;                 ///< that it has run for `gives_the_bits_of_the_cpu`
};

/// Every check returns an empty string, or the problem. UnsupportedError and others pass through.
class Judge {
 public:
  Judge();

  /// Every node's outputs, computed with every value readable, within the operator's bound of the
  /// reference of the device's own inputs. Composites are checked as a whole and in parts.
  std::string every_node_is_within_its_bound(const RandomGraph& test, Contract contract);
  /// Outputs and states, after one run and after two: the same bits whether memory is shared, from
  /// 1 or 3 threads (bf16-exact), and when dead code is gone and activations are recomputed.
  std::string every_plan_gives_the_same_bits(const RandomGraph& test, Contract contract);
  /// The bound as above, on another machine.
  static std::string every_node_is_within_its_bound(const RandomGraph& test, Contract contract,
                                                    const Machine& machine);
  /// Outputs and states under bf16-exact, after one run and after two. Integers are exact anyway.
  std::string gives_the_bits_of_the_cpu(const RandomGraph& test, Machine& machine);
  std::string threads_do_not_matter(const RandomGraph& test);
  std::string training_passes_change_nothing(const RandomGraph& test, Contract contract);
  /// The inference passes round weights once more: nearly the same outputs, by the reference.
  static std::string inference_passes_change_little(const RandomGraph& test);

  const Coverage& coverage() const { return coverage_; }

 private:
  void count(const Graph& graph, const Plan& plan);

  std::unique_ptr<Device> one_, two_, three_;  ///< of so many threads
  Coverage coverage_;
};

}  // namespace triptych::conformance
