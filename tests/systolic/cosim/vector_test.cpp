// Random programs on RTL with a vector unit, and on the twin.
//   mmu_vector_test [--programs N] [--seed S]     (defaults: 300 programs a machine, seed 1)
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "Vmmu_vector_3x5.h"
#include "Vmmu_vector_3x5___024root.h"
#include "Vmmu_vector_4x4.h"
#include "Vmmu_vector_4x4___024root.h"
#include "tests/systolic/cosim/random_programs.h"
#include "tests/systolic/cosim/stepper.h"
#include "tests/systolic/cosim/variants.h"

namespace triptych::mmu {
namespace {

TEST(Vector, twin_equals_the_rtl_of_4_lanes) {
  MachineConfig machine = find_machine("mmu4");
  machine.vector_rows = 256;
  expect_twin_equals<Vmmu_vector_4x4>(machine, random_programs);
}
TEST(Vector, twin_equals_the_rtl_of_5_lanes_beside_both_dataflows) {
  MachineConfig machine = find_machine("mmu4");
  machine.rows = 3;
  machine.columns = 5;
  machine.dataflows = Dataflows::Both;
  machine.vector_rows = 16;
  expect_twin_equals<Vmmu_vector_3x5>(machine, random_programs);
}

/// Empty when twin, RTL and stepper agree on a program without tokens.
std::string difference_on(const char* program, const DramConfig& dram) {
  Case test{find_machine("mmu4"), assemble_program(program), {}};
  test.machine.vector_rows = 256;
  test.machine.dram = dram;
  const Opener rtl = [](const MachineConfig& config) {
    return make_rtl_machine(std::make_unique<VerilatedModel<Vmmu_vector_4x4>>(), config);
  };
  return compare(test, open_twin, rtl) + compare(test, open_twin, open_stepper);
}

TEST(Vector, a_load_has_128_rows_outstanding) {
  const DramConfig slow{.preset = "custom", .bytes_per_cycle = 0, .latency = 400};
  EXPECT_EQ(difference_on("vector_load pitch=16 count=250 columns=4\n"
                          "vector_store pitch=16 address=8192 count=250 columns=4\nhalt\n",
                          slow),
            "");
}
TEST(Vector, an_operation_may_take_longer_than_the_timeout) {
  EXPECT_EQ(difference_on("vector_load count=3 pitch=16 columns=4\n"
                          "vector_op operation=fma a=0 b=1 c=2 destination=3 count=40000\n"
                          "vector_store address=64 row=3 count=1 columns=4\nhalt\n",
                          {}),
            "");
}

}  // namespace
}  // namespace triptych::mmu

int main(int argc, char** argv) {
  return triptych::mmu::run_tests_of_random_programs(argc, argv, 300);
}
