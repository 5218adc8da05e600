// A twin with a seeded fault must not survive the co-simulation: succeeds when some random program
// tells it from the stepper.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "systolic/twin/twin.h"
#include "tests/systolic/cosim/compare.h"
#include "tests/systolic/cosim/stepper.h"

int main() {
  using namespace triptych::mmu;
  constexpr std::uint32_t kPrograms = 300;  // as many as the co-simulation of an ordinary test run
  for (std::uint32_t seed = 1; seed <= kPrograms; ++seed) {
    std::mt19937 random(seed);
    const Case test = random_case(random_machine(random), random);
    const std::string problem = compare(test, open_twin, open_stepper);
    if (problem.empty()) continue;
    std::printf("program %u: %s\n", seed, problem.c_str());
    return 0;
  }
  std::printf("no difference in %u programs\n", kPrograms);
  return 1;
}
