// Faults of the AXI4 ports, found with the twin.
// SPDX-License-Identifier: Apache-2.0
#include "Vmmu_axi_mutants_3x12.h"
#include "Vmmu_axi_mutants_3x12___024root.h"
#include "Vmmu_axi_mutants_3x12_mutant_pkg.h"
#include "Vmmu_axi_mutants_4x4.h"
#include "Vmmu_axi_mutants_4x4___024root.h"
#include "Vmmu_axi_mutants_4x4_mutant_pkg.h"
#include "mutants.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/cosim/axi_machine.h"
#include "tests/systolic/cosim/axi_random.h"
#include "tests/systolic/cosim/find_faults.h"

namespace triptych::mmu {
namespace {

int selected = 0;
AxiTiming timing;  ///< of the last random case

/// The model. The fault is seeded before its first cycle.
template <class Model>
class Mutants : public Model {
 public:
  explicit Mutants(VerilatedContext* context) : Model(context) {
    this->rootp->__PVT__mutant_pkg->selected = selected;
  }
};

std::unique_ptr<Machine> open_mutant(const MachineConfig& machine) {
  if (machine.rows == 3)
    return std::make_unique<AxiMachine<Mutants<Vmmu_axi_mutants_3x12>>>(machine, timing, 1);
  return std::make_unique<AxiMachine<Mutants<Vmmu_axi_mutants_4x4>>>(machine, timing, 1);
}

Case random_mutant_case(std::mt19937& random) {
  const MachineConfig machine = random() % 2 == 0 ? axi_machine_4x4() : axi_machine_3x12();
  timing = random_timing(machine, random);
  return random_axi_case(machine, random);
}

}  // namespace
}  // namespace triptych::mmu

int main(int argc, char** argv) {
  using namespace triptych::mmu;
  return find_faults({.faults = kMutants,
                      .selected = &selected,
                      .random_case = random_mutant_case,
                      .open = open_mutant,
                      .open_right = open_twin,
                      .compared = Compared::Bits},
                     argc, argv);
}
