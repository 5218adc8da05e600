// A program of the systolic array that tests a machine: its text contains the inputs and the
// expected outputs (systolic/isa/listing.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "experiments/measure/mmu_program.h"

namespace triptych::measure {

struct ProgramTest {
  bool passed = false;
  std::uint64_t cycles = 0;  ///< 0: it did not come to its end
  std::string said;          ///< the difference to the expected result. Empty: nothing
};

/// Runs the program on the values in its text. A program that is refused, RTL that breaks an
/// assertion or does not end has not passed. Neither has one if its text leaves an array without
/// values.
ProgramTest test_program(const ProgramRequest& request);

}  // namespace triptych::measure
