// Random programs on all models of the machine.
//   mmu_cosim_test [--programs N] [--seed S]     (defaults: 300 programs, seed 1)
// A failure prints the seed, the shrunk program and where the models part.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "systolic/driver/driver.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/cosim/compare.h"
#include "tests/systolic/cosim/random_programs.h"
#include "tests/systolic/cosim/stepper.h"
#include "tests/systolic/cosim/synchronise.h"

namespace triptych::mmu {
namespace {

std::unique_ptr<Machine> open_driver_rtl(const MachineConfig& machine) {
  return open_machine(machine, Simulation::Rtl);
}

/// Shrinks and explains the case if the models differ.
void expect_equal(const Case& test, std::uint32_t seed, const Opener& first, const Opener& second) {
  if (compare(test, first, second).empty()) return;
  const Case small = shrink(test, first, second);
  FAIL() << "seed " << seed << "\n" << describe(small) << compare(small, first, second);
}

TEST(Cosimulation, twin_equals_the_stepper_on_random_programs) {
  for (std::uint32_t seed = random_programs.first_seed; seed < random_programs.end(); ++seed) {
    std::mt19937 random(seed);
    const Case test = random_case(random_machine(random), random);
    expect_equal(test, seed, open_twin, open_stepper);
    if (HasFatalFailure()) return;
  }
}

TEST(Cosimulation, twin_equals_the_stepper_with_a_vector_unit) {
  for (std::uint32_t seed = random_programs.first_seed; seed < random_programs.end(); ++seed) {
    std::mt19937 random(seed);
    const Case test = random_case(random_vector_machine(random), random);
    expect_equal(test, seed, open_twin, open_stepper);
    if (HasFatalFailure()) return;
  }
}

TEST(Cosimulation, random_programs_reach_every_stall_and_counter) {
  Counters sum;
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const Case test = random_case(random_machine(random), random);
    sum += estimate(synchronise(test.program, test.machine), test.machine).counters;
  }
  for (int stall = 0; stall < kStalls; ++stall)
    EXPECT_GT(sum.stall_cycles[static_cast<std::size_t>(stall)], 0U) << "stall " << stall;
  EXPECT_GT(sum.padding_cycles, 0U);
  EXPECT_GT(sum.dram_row_misses, 0U);
  EXPECT_GT(sum.dram_bytes[0], 0U);
  EXPECT_GT(sum.dram_bytes[1], 0U);
  EXPECT_GT(sum.dram_bytes[3], 0U);
}

std::unique_ptr<Machine> open_twin_that_loads_late(MachineConfig machine) {
  machine.dram.latency += 1;
  return open_twin(machine);
}

TEST(Cosimulation, a_failure_is_shrunk_and_named) {
  std::mt19937 random(4);
  const Case test = random_case(random_machine(random), random);
  ASSERT_GT(test.program.size(), 5U);
  const Case small = shrink(test, open_twin, open_twin_that_loads_late);
  EXPECT_EQ(small.program.size(), 2U) << describe(small);
  EXPECT_THAT(compare(small, open_twin, open_twin_that_loads_late),
              testing::MatchesRegex("cycle [0-9]+: instruction 0 .* runs from 1 to .*"));
}

TEST(Cosimulation, twin_equals_the_rtl_on_random_programs) {
  const std::vector<std::string> machines = rtl_machines();
  if (machines.empty()) GTEST_SKIP() << "this build has no RTL (TRIPTYCH_ENABLE_RTL)";
  for (std::uint32_t seed = random_programs.first_seed; seed < random_programs.end(); ++seed) {
    std::mt19937 random(seed);
    const MachineConfig machine = find_machine(machines[seed % machines.size()]);
    const Case test = random_case(vary_machine(machine, random), random);
    expect_equal(test, seed, open_twin, open_driver_rtl);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace triptych::mmu

int main(int argc, char** argv) {
  return triptych::mmu::run_tests_of_random_programs(argc, argv, 300);
}
