// Random programs on RTL with a vector unit, and on the twin.
//   mmu_vector_test [--programs N] [--seed S]     (defaults: 300 programs a machine, seed 1)
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "Vmmu_vector_3x5.h"
#include "Vmmu_vector_3x5___024root.h"
#include "Vmmu_vector_4x4.h"
#include "Vmmu_vector_4x4___024root.h"
#include "tests/systolic/cosim/random_programs.h"
#include "tests/systolic/cosim/variants.h"

namespace triptych::mmu {
namespace {

TEST(Vector, twin_equals_the_rtl_of_4_lanes) {
  MachineConfig machine = find_machine("mmu4");
  machine.vector_rows = 64;
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

}  // namespace
}  // namespace triptych::mmu

int main(int argc, char** argv) {
  return triptych::mmu::run_tests_of_random_programs(argc, argv, 300);
}
