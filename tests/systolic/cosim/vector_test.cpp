// Random programs on RTL with a vector unit, and on the twin.
//   mmu_vector_test [--programs N] [--seed S]     (defaults: 300 programs a machine, seed 1)
// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstring>
#include <string_view>

#include "Vmmu_vector_3x5.h"
#include "Vmmu_vector_3x5___024root.h"
#include "Vmmu_vector_4x4.h"
#include "Vmmu_vector_4x4___024root.h"
#include "tests/systolic/cosim/variants.h"

namespace triptych::mmu {
namespace {

std::uint32_t programs = 300;
std::uint32_t first_seed = 1;

TEST(Vector, twin_equals_the_rtl_of_4_lanes) {
  MachineConfig machine = find_machine("mmu4");
  machine.vector_rows = 64;
  expect_twin_equals<Vmmu_vector_4x4>(machine, programs, first_seed);
}
TEST(Vector, twin_equals_the_rtl_of_5_lanes_beside_both_dataflows) {
  MachineConfig machine = find_machine("mmu4");
  machine.rows = 3;
  machine.columns = 5;
  machine.dataflows = Dataflows::Both;
  machine.vector_rows = 16;
  expect_twin_equals<Vmmu_vector_3x5>(machine, programs, first_seed);
}

}  // namespace

void parse_arguments(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    std::uint32_t& target = std::string_view(argv[i]) == "--seed" ? first_seed : programs;
    std::from_chars(argv[i + 1], argv[i + 1] + std::strlen(argv[i + 1]), target);
  }
}

}  // namespace triptych::mmu

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  triptych::mmu::parse_arguments(argc, argv);
  return RUN_ALL_TESTS();
}
