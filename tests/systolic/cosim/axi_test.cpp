// Random programs on the RTL behind AXI4 masters, with a memory that stalls at random.
//   mmu_axi_test [--programs N] [--seed S]     (defaults: 150 programs a machine, seed 1)
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "Vmmu_axi_3x12.h"
#include "Vmmu_axi_3x12___024root.h"
#include "Vmmu_axi_4x4.h"
#include "Vmmu_axi_4x4___024root.h"
#include "systolic/twin/twin.h"
#include "tests/systolic/cosim/axi_machine.h"
#include "tests/systolic/cosim/axi_random.h"
#include "tests/systolic/cosim/compare.h"
#include "tests/systolic/cosim/random_programs.h"

namespace triptych::mmu {
namespace {

/// The model's parameters are the machine's.
template <class Model>
void expect_the_twins_bits(const MachineConfig& machine) {
  for (std::uint32_t seed = random_programs.first_seed; seed < random_programs.end(); ++seed) {
    std::mt19937 random(seed);
    const Case test = random_axi_case(machine, random);
    const AxiTiming timing = random_timing(machine, random);
    const Opener open = [&](const MachineConfig& config) {
      return std::make_unique<AxiMachine<Model>>(config, timing, seed);
    };
    if (compare(test, open_twin, open, Compared::Bits).empty()) continue;
    const Case small = shrink(test, open_twin, open, Compared::Bits);
    FAIL() << "seed " << seed << ", " << timing.stall_percent << " % stalls, latency "
           << timing.latency << " + " << timing.spread << "\n"
           << describe(small) << compare(small, open_twin, open, Compared::Bits);
  }
}

using Axi4x4 = AxiMachine<Vmmu_axi_4x4>;

MachineConfig small_machine() {
  MachineConfig machine = axi_machine_4x4();
  machine.dram_bytes = kCaseDramBytes;
  return machine;
}

/// Cycles of the program behind AXI, and those of the twin whose DRAM has the same latency plus the
/// four cycles of the ports.
struct Cycles {
  std::uint64_t axi = 0, twin = 0;
};
Cycles cycles_of(const std::string& text, std::uint32_t latency) {
  const Program program = assemble_program(text);
  MachineConfig machine = small_machine();
  machine.dram = {.preset = "custom", .bytes_per_cycle = 0, .latency = latency + 4};
  Axi4x4 axi(machine, {.latency = latency, .open_bursts = 128}, 1);
  return {axi.run(program, {}).counters.cycles, open_twin(machine)->run(program).counters.cycles};
}

TEST(Axi, a_row_alone_takes_four_cycles_more) {
  for (const std::uint32_t latency : {1U, 9U, 60U}) {
    const Cycles one = cycles_of("load units=1 lines=1 log2_group=2\nhalt\n", latency);
    EXPECT_EQ(one.axi, one.twin) << latency;
    const Cycles apart =
        cycles_of("load pitch=64 buffer_pitch=1 units=1 lines=50 log2_group=2\nhalt\n", latency);
    EXPECT_EQ(apart.axi, apart.twin) << latency;
  }
}
TEST(Axi, rows_together_wait_for_64_bytes) {
  constexpr std::uint64_t kRows = 64 / 8;
  for (const std::uint32_t latency : {1U, 9U, 60U}) {
    const Cycles together = cycles_of("load units=64 lines=1 log2_group=2\nhalt\n", latency);
    EXPECT_EQ(together.axi, together.twin + kRows) << latency;
  }
}
TEST(Axi, writes_take_no_cycle_more) {
  const Cycles rows = cycles_of("vector_store pitch=16 count=64 columns=4\nhalt\n", 30);
  EXPECT_EQ(rows.axi, rows.twin);
}
TEST(Axi, rows_share_bursts) {
  const Program program = assemble_program("load units=64 lines=1 log2_group=2\nhalt\n");
  Axi4x4 prompt(small_machine(), {.latency = 20, .open_bursts = 128}, 1);
  prompt.run(program, {});
  EXPECT_EQ(prompt.load_bursts(), 512U / 64);  // of four beats
  Axi4x4 slow(small_machine(), {.latency = 40, .open_bursts = 1}, 1);
  slow.run(program, {});
  EXPECT_LE(slow.load_bursts(), 4U);
}
TEST(Axi, a_row_across_4_KiB_takes_two_bursts) {
  Axi4x4 axi(small_machine(), {}, 1);
  for (std::uint32_t i = 0; i < 8; ++i) axi.dram()[4092 + i] = std::byte(i);
  axi.run(assemble_program("load address=4092 units=1 lines=1 log2_group=2\nhalt\n"), {});
  EXPECT_EQ(axi.load_bursts(), 2U);
  EXPECT_EQ(axi.read_buffer()[3], 0x0706);
}
TEST(Axi, a_read_waits_for_the_row_that_is_still_cut_into_beats) {
  MachineConfig machine = axi_machine_3x12();
  machine.dram_bytes = kCaseDramBytes;
  const Program program = assemble_program(
      "set_output out_height=1 out_width=1\n"
      "store signal=load count=1 rows_left=1 columns_left=1 columns=12\n"
      "load wait=store address=44 units=1 lines=1 log2_group=2\nhalt\n");
  for (std::uint32_t seed = 1; seed <= 16; ++seed) {
    AxiMachine<Vmmu_axi_3x12> axi(machine, {.latency = 40, .max_beats = 2}, seed);
    std::ranges::fill(axi.dram().first(64), std::byte{0x55});
    axi.run(program, {});
    EXPECT_EQ(axi.read_buffer()[0], 0) << seed;
    EXPECT_EQ(axi.read_buffer()[2], 0) << seed;
  }
}
TEST(Axi, an_error_of_the_memory_is_reported) {
  for (const char* text :
       {"load units=4 lines=1 log2_group=2\nhalt\n", "weight_load rows=2 columns=4\nhalt\n",
        "vector_load count=1 columns=4\nhalt\n", "vector_store count=1 columns=4\nhalt\n"}) {
    Axi4x4 faulty(small_machine(), {.response = 2}, 1);
    faulty.run(assemble_program(text), {});
    EXPECT_TRUE(faulty.error()) << text;
    Axi4x4 right(small_machine(), {}, 1);
    right.run(assemble_program(text), {});
    EXPECT_FALSE(right.error()) << text;
  }
}

TEST(Axi, programs_have_the_twins_bits_with_a_vector_unit) {
  expect_the_twins_bits<Vmmu_axi_4x4>(axi_machine_4x4());
}
TEST(Axi, programs_have_the_twins_bits_with_few_short_bursts) {
  expect_the_twins_bits<Vmmu_axi_3x12>(axi_machine_3x12());
}

}  // namespace
}  // namespace triptych::mmu

int main(int argc, char** argv) {
  return triptych::mmu::run_tests_of_random_programs(argc, argv, 150);
}
