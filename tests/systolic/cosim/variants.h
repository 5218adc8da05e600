// Random programs on the twin and on RTL of one machine. Only the DRAM and the weight scheme vary.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "systolic/sim/rtl_machine.h"
#include "systolic/sim/verilated_model.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/cosim/compare.h"
#include "tests/systolic/cosim/random_programs.h"

namespace triptych::mmu {

/// The model's parameters are the machine's.
template <class Model>
void expect_twin_equals(const MachineConfig& machine,
                        const RandomPrograms& programs = {.count = 150}) {
  const Opener open = [](const MachineConfig& config) {
    return make_rtl_machine(std::make_unique<VerilatedModel<Model>>(), config);
  };
  for (std::uint32_t seed = programs.first_seed; seed < programs.end(); ++seed) {
    std::mt19937 random(seed);
    const Case test = random_case(vary_machine(machine, random), random);
    if (compare(test, open_twin, open).empty()) continue;
    const Case small = shrink(test, open_twin, open);
    FAIL() << "seed " << seed << "\n" << describe(small) << compare(small, open_twin, open);
  }
}

}  // namespace triptych::mmu
