// Random programs on RTL whose PEs take several cycles, and on the twin. What these machines have
// of their own is in every program: the skew, the hazard, the swap's way past the capture.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "Vmmu_latency_2.h"
#include "Vmmu_latency_2___024root.h"
#include "Vmmu_latency_3.h"
#include "Vmmu_latency_3___024root.h"
#include "systolic/sim/rtl_machine.h"
#include "systolic/sim/verilated_model.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/cosim/compare.h"

namespace triptych::mmu {
namespace {

template <class Model>
std::unique_ptr<Machine> open_rtl(const MachineConfig& machine) {
  return make_rtl_machine(std::make_unique<VerilatedModel<Model>>(), machine);
}

/// The parameters of the models are those of mmu4, PEs aside.
void expect_equal(PeKind pe, std::uint32_t latency, const Opener& open) {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    std::mt19937 random(seed);
    MachineConfig machine = vary_machine(find_machine("mmu4"), random);
    machine.pe = pe;
    machine.pe_latency = latency;
    const Case test = random_case(machine, random);
    if (compare(test, open_twin, open).empty()) continue;
    const Case small = shrink(test, open_twin, open);
    FAIL() << "seed " << seed << "\n" << describe(small) << compare(small, open_twin, open);
  }
}

TEST(Latency, twin_equals_the_rtl_of_int8_pes_of_two_cycles) {
  expect_equal(PeKind::Int8, 2, open_rtl<Vmmu_latency_2>);
}
TEST(Latency, twin_equals_the_rtl_of_bf16_pes_of_three_cycles) {
  expect_equal(PeKind::Bf16, 3, open_rtl<Vmmu_latency_3>);
}

}  // namespace
}  // namespace triptych::mmu
