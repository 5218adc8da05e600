// Faults seeded in a machine must not survive the co-simulation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

#include "tests/systolic/cosim/compare.h"

namespace triptych::mmu {

/// A machine with faults, and one without, its reference.
struct FaultyMachine {
  std::span<const char* const> faults;  ///< their names by number, from 1
  int* selected = nullptr;              ///< 0: none
  std::function<Case(std::mt19937&)> random_case;
  std::function<std::unique_ptr<Machine>(const MachineConfig&)> open, open_right;
  Compared compared = Compared::Everything;
};

/// Succeeds when some random program tells each fault, and none tells the machine without a fault.
/// Arguments: [--programs N], for each fault. By default 1000: some machines are seldom drawn.
/// Returns the exit code.
int find_faults(const FaultyMachine& machine, int argc, char** argv);

}  // namespace triptych::mmu
