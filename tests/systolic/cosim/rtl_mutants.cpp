// RTL with a seeded fault must not survive the co-simulation: succeeds when some random program
// tells each mutant from the twin, and none tells the RTL without a fault.
//   mmu_rtl_mutants [--programs N]     (default: 300 for each, as the co-simulation)
// SPDX-License-Identifier: Apache-2.0
#include "rtl_mutants.h"

#include <fmt/core.h>

#include <cstdlib>
#include <string_view>

#include "Vmmu_mutants.h"
#include "Vmmu_mutants___024root.h"
#include "Vmmu_mutants_mutant_pkg.h"
#include "systolic/sim/rtl_machine.h"
#include "systolic/sim/verilated_model.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/cosim/compare.h"

namespace triptych::mmu {
namespace {

int selected = 0;

/// The model, in which the fault is seeded before it sees its first cycle.
class Mutants : public Vmmu_mutants {
 public:
  explicit Mutants(VerilatedContext* context) : Vmmu_mutants(context) {
    rootp->__PVT__mutant_pkg->selected = selected;
  }
};

std::unique_ptr<Machine> open_mutant(const MachineConfig& config) {
  return make_rtl_machine(std::make_unique<VerilatedModel<Mutants>>(), config);
}

/// How the program tells the mutant from the twin; empty: it does not.
std::string tell(std::uint32_t seed) {
  std::mt19937 random(seed);
  const Case test = random_case(vary_machine(find_machine("mmu4"), random), random);
  try {
    return compare(test, open_mutant, open_twin);
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// The first program that tells the mutant; 0: none.
std::uint32_t find(std::uint32_t programs, std::string& problem) {
  for (std::uint32_t seed = 1; seed <= programs; ++seed) {
    problem = tell(seed);
    if (!problem.empty()) return seed;
  }
  return 0;
}

int survivors(std::uint32_t programs) {
  int count = 0;
  std::string problem;
  for (const char* name : kRtlMutants) {
    ++selected;
    const std::uint32_t seed = find(programs, problem);
    fmt::print("{:2} {:36} {:>6}  {}\n", selected, name, seed == 0 ? "alive" : std::to_string(seed),
               problem.substr(0, problem.find('\n')));
    std::fflush(stdout);
    count += seed == 0 ? 1 : 0;
  }
  return count;
}

int run(std::uint32_t programs) {
  std::string problem;
  if (const std::uint32_t seed = find(100, problem)) {
    fmt::print("program {} tells RTL without a fault from the twin: {}\n", seed, problem);
    return 1;
  }
  const int alive = survivors(programs);
  fmt::print("{} of {} faults survive {} programs\n", alive, kRtlMutants.size(), programs);
  return alive == 0 ? 0 : 1;
}

}  // namespace
}  // namespace triptych::mmu

int main(int argc, char** argv) {
  const bool given = argc == 3 && std::string_view(argv[1]) == "--programs";
  return triptych::mmu::run(given ? static_cast<std::uint32_t>(std::atoi(argv[2])) : 300);
}
