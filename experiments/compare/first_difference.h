// Where two machines that should agree part: both train again, side by side, and the first step
// after which their states differ is run once more with every value kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "experiments/compare/machine_run.h"

namespace triptych::compare {

/// The first value of the first step that differs between two machines.
struct Difference {
  std::string first, second;  ///< labels of the machines
  std::int64_t step = -1;     ///< from 0; -1: a second run found none
  std::string node;           ///< empty: none
  std::size_t output = 0;     ///< of the node
  std::int64_t element = 0;   ///< the first that differs, row-major
  double values[2] = {0, 0};  ///< of it, on either machine
  std::int64_t different_elements = 0;
  std::int64_t of = 0;  ///< elements of that output
  std::string why;      ///< what the machines promise, in words
};

/// Trains `steps` steps on both machines at most. Throws as run_machine does.
Difference find_difference(const MachineRequest& first, const MachineRequest& second,
                           const Experiment& experiment, std::int64_t steps,
                           const std::atomic<bool>& interrupted);

/// Why the results of two machines may, or must not, differ.
std::string promise_of(const MachineRequest& first, const MachineRequest& second);

}  // namespace triptych::compare
