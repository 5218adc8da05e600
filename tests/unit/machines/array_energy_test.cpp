// Area of an array's units and the energy of its actions.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/array_energy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "experiments/machines/array_area.h"
#include "systolic/isa/machine.h"

namespace triptych::machines {
namespace {

mmu::MachineConfig machine_of(std::uint32_t rows, std::uint32_t columns) {
  auto machine = mmu::find_machine("mmu4");
  machine.rows = rows;
  machine.columns = columns;
  return machine;
}

double events_of(const std::vector<EnergyPart>& parts, const std::string& name) {
  const auto found = std::ranges::find(parts, name, &EnergyPart::name);
  return found == parts.end() ? -1 : found->events;
}

// Both sizes were synthesised whole by tests/systolic/rtl/area.py.
TEST(ArrayArea, agrees_with_the_synthesis_of_whole_machines) {
  const auto square = total_area(machine_of(4, 4)), flat = total_area(machine_of(4, 2));
  EXPECT_NEAR(square.gates, 121'736, 0.02 * 121'736);
  EXPECT_NEAR(square.flip_flops, 6189, 0.02 * 6189);
  EXPECT_NEAR(flat.gates, 78'890, 0.02 * 78'890);
  EXPECT_NEAR(flat.flip_flops, 5221, 0.02 * 5221);
}

// Vector units of 2 and 4 lanes with 64 rows were synthesised by `area.py --top mmu_vector`.
TEST(ArrayArea, agrees_with_the_synthesis_of_vector_units) {
  const auto expect = [](std::uint32_t columns, double gates, double flip_flops) {
    auto machine = machine_of(4, columns);
    const auto without = total_area(machine);
    machine.vector_rows = 64;
    const auto with = total_area(machine);
    EXPECT_NEAR(with.gates - without.gates, gates, 0.02 * gates);
    EXPECT_NEAR(with.flip_flops - without.flip_flops, flip_flops, 0.02 * flip_flops);
    EXPECT_EQ(with.ram_bits - without.ram_bits, 2.0 * 64 * columns * 32);
  };
  expect(2, 23'442, 522);
  expect(4, 46'084, 836);
}

TEST(ArrayArea, counts_every_bit_of_the_memories) {
  auto machine = machine_of(4, 2);
  const double bits = machine.buffer_rows * 4.0 * 16 + machine.accumulator_rows * 2.0 * 32 +
                      machine.weight_tiles * 8.0 * 17;
  EXPECT_EQ(total_area(machine).ram_bits, bits);
  machine.pe = mmu::PeKind::Int8;
  EXPECT_EQ(total_area(machine).ram_bits, machine.buffer_rows * 4.0 * 8 +
                                              machine.accumulator_rows * 2.0 * 32 +
                                              machine.weight_tiles * 8.0 * 9);
}

TEST(ArrayEnergy, prices_the_actions_of_one_tile) {
  const auto table = find_energy_table("45nm");
  const auto machine = machine_of(4, 2);
  mmu::Counters counters;
  counters.cycles = 100;
  counters.issue_cycles = 10;
  counters.macs = 80;
  counters.buffer_reads = 40;
  counters.buffer_writes = 4;
  counters.accumulator_reads = 20;
  counters.accumulator_writes = 20;
  counters.weight_reads = 8;
  counters.dram_bytes = {80, 16, 0, 80};
  const auto parts = array_energy(counters, machine, table);
  EXPECT_EQ(events_of(parts, "multiply"), 80);
  EXPECT_EQ(events_of(parts, "activation registers"), 10 * 8 * 16);
  EXPECT_EQ(events_of(parts, "sum registers"), 10 * 8 * 32);
  EXPECT_EQ(events_of(parts, "weight registers"), 8 * 4.5 * 16);  // 1 to 4 on the way, then 2
  EXPECT_EQ(events_of(parts, "weight FIFO"), 16 * 8 + 8 * 16);
  EXPECT_EQ(events_of(parts, "accumulators"), 40 * 32);
  EXPECT_EQ(events_of(parts, "unified buffer"), 44 * 16);
  EXPECT_EQ(events_of(parts, "DRAM"), 176 * 8);
  EXPECT_EQ(events_of(parts, "clock"), 100 * total_area(machine).flip_flops);
  EXPECT_EQ(events_of(parts, "leakage of gates"),
            100 / (machine.clock_mhz * 1e6) * total_area(machine).gates);
}

TEST(ArrayEnergy, prices_the_actions_of_a_vector_unit) {
  const auto table = find_energy_table("45nm");
  auto machine = machine_of(4, 2);
  mmu::Counters counters;
  counters.vector = {
      .cycles = 9, .reads = 40, .writes = 30, .adds = 6, .multiplies = 4, .fmas = 3, .others = 5};
  const auto has_vectors = [](const std::vector<EnergyPart>& parts) {
    return std::ranges::any_of(
        parts, [](const EnergyPart& part) { return part.name.starts_with("vector"); });
  };
  EXPECT_FALSE(has_vectors(array_energy(counters, machine, table)));
  machine.vector_rows = 1024;
  const auto parts = array_energy(counters, machine, table);
  EXPECT_EQ(events_of(parts, "vector multiply"), 4 + 3);
  EXPECT_EQ(events_of(parts, "vector add"), 6 + 3);
  EXPECT_EQ(events_of(parts, "vector other"), 5);
  EXPECT_EQ(events_of(parts, "vector memory"), 70 * 32);
}

TEST(ArrayEnergy, bounds_the_weights_that_an_output_stationary_program_moves) {
  auto machine = machine_of(4, 2);
  machine.dataflows = mmu::Dataflows::Both;
  mmu::Counters counters;
  counters.weight_reads = 8;
  const auto parts = array_energy(counters, machine, find_energy_table("45nm"));
  EXPECT_EQ(events_of(parts, "weight registers (at most)"), 8 * 6 * 16);
}

TEST(ArrayEnergy, follows_the_kind_of_pe_its_latency_and_the_memory) {
  const auto table = find_energy_table("7nm");
  auto machine = machine_of(4, 2);
  machine.pe = mmu::PeKind::Int8;
  machine.pe_latency = 3;
  machine.dram = mmu::dram_preset("hbm", machine.clock_mhz);
  mmu::Counters counters;
  counters.macs = 1;
  counters.issue_cycles = 1;
  const auto parts = array_energy(counters, machine, table);
  EXPECT_EQ(parts[0].event.name, "int8 multiply");
  EXPECT_EQ(parts[1].event.name, "int32 add");
  EXPECT_EQ(events_of(parts, "activation registers"), 8 * 8);
  EXPECT_EQ(events_of(parts, "sum registers"), 3 * 8 * 32);
  const auto dram = std::ranges::find(parts, "DRAM", &EnergyPart::name);
  EXPECT_EQ(dram->event.name, "HBM bit");
}

}  // namespace
}  // namespace triptych::machines
