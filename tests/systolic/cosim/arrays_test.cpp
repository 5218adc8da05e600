// Random programs on several arrays with one DRAM: RTL and twin.
//   mmu_arrays_test [--programs N] [--seed S]     (defaults: 100 runs a machine, seed 1)
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "Vmmu_arrays_2.h"
#include "Vmmu_arrays_3.h"
#include "systolic/driver/pair.h"
#include "systolic/isa/sharing.h"
#include "systolic/twin/arrays.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/cosim/arrays_machine.h"
#include "tests/systolic/cosim/compare.h"
#include "tests/systolic/cosim/random_programs.h"
#include "tests/systolic/cosim/synchronise.h"

namespace triptych::mmu {
namespace {

/// Two arrays of 4 x 4 PEs with a vector unit.
MachineConfig two_arrays() {
  MachineConfig machine = find_machine("mmu4");
  machine.vector_rows = 64;
  machine.arrays = 2;
  machine.dram_bytes = 2 * kCaseDramBytes;
  return machine;
}
/// Three arrays of 3 x 5 PEs with both dataflows.
MachineConfig three_arrays() {
  MachineConfig machine = find_machine("mmu4");
  machine.rows = 3;
  machine.columns = 5;
  machine.pe = PeKind::Int8;
  machine.dataflows = Dataflows::Both;
  machine.arrays = 3;
  machine.dram_bytes = 3 * kCaseDramBytes;
  return machine;
}

/// A random program for each array, in a part of the DRAM of its own.
struct Round {
  MachineConfig machine;
  std::vector<Program> programs;
  std::vector<std::byte> dram;
};
Round random_round(const MachineConfig& machine, std::mt19937& random) {
  MachineConfig one = vary_machine(machine, random);
  Round round;
  for (std::uint32_t a = 0; a < machine.arrays; ++a) {
    const Case test = random_case(one, random);
    round.programs.push_back(
        move_in_dram(synchronise(test.program, one), std::uint64_t{a} * kCaseDramBytes));
    round.dram.insert(round.dram.end(), test.dram.begin(), test.dram.end());
  }
  round.machine = one;
  round.machine.dram_bytes = machine.dram_bytes;
  return round;
}

/// The DRAM counts of all arrays together, in the first report.
void join_dram_counts(std::vector<RunReport>& reports) {
  for (std::size_t a = 1; a < reports.size(); ++a) {
    reports[0].counters.dram_bursts += std::exchange(reports[a].counters.dram_bursts, 0);
    reports[0].counters.dram_row_misses += std::exchange(reports[a].counters.dram_row_misses, 0);
  }
}

void expect_equal(Arrays& twin, Arrays& rtl, const Round& round) {
  for (Arrays* machine : {&twin, &rtl})
    std::memcpy(machine->dram().data(), round.dram.data(), round.dram.size());
  auto expected = twin.run(round.programs, {.record_times = true});
  join_dram_counts(expected);
  const auto found = rtl.run(round.programs, {.record_times = true});
  for (std::size_t a = 0; a < expected.size(); ++a) {
    EXPECT_EQ(difference(found[a], expected[a], round.programs[a]), "") << "array " << a;
    EXPECT_EQ(found[a].times, expected[a].times) << "array " << a;
    EXPECT_EQ(found[a].counters, expected[a].counters) << "array " << a;
    EXPECT_EQ(rtl.read_buffer(a), twin.read_buffer(a)) << "array " << a;
    EXPECT_EQ(rtl.read_accumulators(a), twin.read_accumulators(a)) << "array " << a;
  }
  EXPECT_TRUE(std::ranges::equal(rtl.dram(), twin.dram()));
}

template <class Model>
void expect_twin_equals_the_rtl(const MachineConfig& machine) {
  for (std::uint32_t seed = random_programs.first_seed; seed < random_programs.end(); ++seed) {
    std::mt19937 random(seed);
    const Round round = random_round(machine, random);
    const auto twin = open_twin_arrays(round.machine);
    ArraysMachine<Model> rtl(round.machine);
    ASSERT_NO_THROW(expect_equal(*twin, rtl, round)) << "seed " << seed;
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed << "\n" << to_json(round.machine);
  }
}

TEST(Arrays, twin_equals_the_rtl_of_two_with_vector_units) {
  expect_twin_equals_the_rtl<Vmmu_arrays_2>(two_arrays());
}
TEST(Arrays, twin_equals_the_rtl_of_three_with_both_dataflows) {
  expect_twin_equals_the_rtl<Vmmu_arrays_3>(three_arrays());
}

/// Each array asks for 128 rows, the most that a unit has outstanding. The arbiter holds 256 of
/// 384.
TEST(Arrays, a_full_queue_of_reads_makes_the_arrays_wait) {
  Round round;
  round.machine = three_arrays();
  round.machine.dram = {.preset = "custom", .bytes_per_cycle = 0, .latency = 1000};
  const Program program =
      assemble_program("load units=128 lines=1 buffer_pitch=1 log2_group=0\nhalt\n");
  for (std::uint32_t a = 0; a < 3; ++a)
    round.programs.push_back(move_in_dram(program, std::uint64_t{a} << 16));
  round.dram.resize(round.machine.dram_bytes);
  const auto twin = open_twin_arrays(round.machine);
  ArraysMachine<Vmmu_arrays_3> rtl(round.machine);
  expect_equal(*twin, rtl, round);
  const auto reports = estimate_arrays(round.programs, round.machine);
  EXPECT_GT(reports[0].counters.cycles, 2000U);  // two latencies
}

/// The arbiter takes no time.
TEST(Arrays, an_array_with_idle_neighbours_keeps_its_cycles) {
  for (std::uint32_t seed = random_programs.first_seed; seed < random_programs.end(); ++seed) {
    std::mt19937 random(seed);
    Round round = random_round(two_arrays(), random);
    const std::size_t busy = seed % 2;
    round.programs[1 - busy] = {encode_halt()};
    const auto reports = estimate_arrays(round.programs, round.machine, {.record_times = true});
    const RunReport alone = estimate(round.programs[busy], round.machine, {.record_times = true});
    ASSERT_EQ(reports[busy].times, alone.times) << "seed " << seed;
    ASSERT_EQ(reports[busy].counters, alone.counters) << "seed " << seed;
  }
}

}  // namespace
}  // namespace triptych::mmu

int main(int argc, char** argv) {
  return triptych::mmu::run_tests_of_random_programs(argc, argv, 100);
}
