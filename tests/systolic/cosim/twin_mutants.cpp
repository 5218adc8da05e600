// Faults of the twin, told by the stepper.
// SPDX-License-Identifier: Apache-2.0
#include "mutants.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/cosim/find_faults.h"
#include "tests/systolic/cosim/seeded_fault.h"
#include "tests/systolic/cosim/stepper.h"

namespace triptych::mmu {

int seeded_fault = 0;

}  // namespace triptych::mmu

int main(int argc, char** argv) {
  using namespace triptych::mmu;
  const auto random = [](std::mt19937& stream) {
    const bool vector = stream() % 3 == 0;
    return random_case(vector ? random_vector_machine(stream) : random_machine(stream), stream);
  };
  return find_faults({.faults = kMutants,
                      .selected = &seeded_fault,
                      .random_case = random,
                      .open = open_twin,
                      .open_right = open_stepper},
                     argc, argv);
}
