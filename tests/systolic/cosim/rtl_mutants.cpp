// Faults of the RTL, told by the twin.
// SPDX-License-Identifier: Apache-2.0
#include "Vmmu_mutants.h"
#include "Vmmu_mutants___024root.h"
#include "Vmmu_mutants_mutant_pkg.h"
#include "mutants.h"
#include "systolic/sim/rtl_machine.h"
#include "systolic/sim/verilated_model.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/cosim/find_faults.h"

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

}  // namespace
}  // namespace triptych::mmu

int main(int argc, char** argv) {
  using namespace triptych::mmu;
  const auto random = [](std::mt19937& stream) {
    return random_case(vary_machine(find_machine("mmu4"), stream), stream);
  };
  return find_faults({.faults = kMutants,
                      .selected = &selected,
                      .random_case = random,
                      .open = open_mutant,
                      .open_right = open_twin},
                     argc, argv);
}
