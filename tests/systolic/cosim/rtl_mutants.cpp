// Faults of the RTL, told by the twin.
// SPDX-License-Identifier: Apache-2.0
#include "Vmmu_mutants_1.h"
#include "Vmmu_mutants_1___024root.h"
#include "Vmmu_mutants_1_mutant_pkg.h"
#include "Vmmu_mutants_3.h"
#include "Vmmu_mutants_3___024root.h"
#include "Vmmu_mutants_3_mutant_pkg.h"
#include "Vmmu_mutants_5x7.h"
#include "Vmmu_mutants_5x7___024root.h"
#include "Vmmu_mutants_5x7_mutant_pkg.h"
#include "Vmmu_mutants_both.h"
#include "Vmmu_mutants_both___024root.h"
#include "Vmmu_mutants_both_mutant_pkg.h"
#include "Vmmu_mutants_vector.h"
#include "Vmmu_mutants_vector___024root.h"
#include "Vmmu_mutants_vector_mutant_pkg.h"
#include "mutants.h"
#include "systolic/sim/rtl_machine.h"
#include "systolic/sim/verilated_model.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/cosim/find_faults.h"

namespace triptych::mmu {
namespace {

int selected = 0;

/// The model. The fault is seeded before its first cycle.
template <class Model>
class Mutants : public Model {
 public:
  explicit Mutants(VerilatedContext* context) : Model(context) {
    this->rootp->__PVT__mutant_pkg->selected = selected;
  }
};

std::unique_ptr<RtlModel> make_mutants(const MachineConfig& machine) {
  if (machine.rows == 5) return std::make_unique<VerilatedModel<Mutants<Vmmu_mutants_5x7>>>();
  if (machine.has_output_stationary())
    return std::make_unique<VerilatedModel<Mutants<Vmmu_mutants_both>>>();
  if (machine.has_vector_unit())
    return std::make_unique<VerilatedModel<Mutants<Vmmu_mutants_vector>>>();
  if (machine.pe_latency == 1) return std::make_unique<VerilatedModel<Mutants<Vmmu_mutants_1>>>();
  return std::make_unique<VerilatedModel<Mutants<Vmmu_mutants_3>>>();
}

std::unique_ptr<Machine> open_mutant(const MachineConfig& config) {
  return make_rtl_machine(make_mutants(config), config);
}

Case random_mutant_case(std::mt19937& random) {
  MachineConfig machine = vary_machine(find_machine("mmu4"), random);
  machine.pe_latency = random() % 2 == 0 ? 1 : 3;
  const auto kind = random() % 16;
  if (kind < 3) {
    machine.rows = 5;
    machine.columns = 7;
    machine.pe_latency = 1;
  } else if (kind < 5) {
    machine.dataflows = Dataflows::Both;
    machine.pe_latency = 1;
  } else if (kind < 11) {
    machine.vector_rows = 64;
    machine.pe_latency = 1;
  }
  return random_case(machine, random);
}

}  // namespace
}  // namespace triptych::mmu

int main(int argc, char** argv) {
  using namespace triptych::mmu;
  return find_faults({.faults = kMutants,
                      .selected = &selected,
                      .random_case = random_mutant_case,
                      .open = open_mutant,
                      .open_right = open_twin},
                     argc, argv);
}
