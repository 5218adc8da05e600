// A whole machine: the manual's timetable on a small program, values, memories, waves.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "systolic/sim/rtl_machine.h"
#include "systolic/sim/save_file.h"

namespace triptych::mmu {
namespace {

constexpr unsigned kLoad = 1, kCompute = 4, kStore = 8;
constexpr std::uint32_t kWeights = 4096, kOutput = 8192;

std::uint16_t bf16(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}

template <class T>
void put(Machine& machine, std::size_t address, T value) {
  std::memcpy(machine.dram().data() + address, &value, sizeof(T));
}
template <class T>
T get(Machine& machine, std::size_t address) {
  T value;
  std::memcpy(&value, machine.dram().data() + address, sizeof(T));
  return value;
}

MachineConfig small_machine() {
  MachineConfig machine = find_machine("mmu4");
  machine.dram = dram_preset("ideal", machine.clock_mhz);
  return machine;
}

/// Six positions of four channels times a tile of `columns` columns.
Program product_program(std::uint32_t columns) {
  return {encode(SetStream{.in_height = 1,
                           .in_width = 6,
                           .stride_x = 1,
                           .out_height = 1,
                           .out_width = 6,
                           .step_x = 1}),
          encode(SetTaps{.channels = 4, .kernel_width = 1, .log2_group = 2}),
          encode(SetOutput{.out_height = 1, .out_width = 6, .step_x = 16}),
          encode(WeightLoad{.address = kWeights, .pitch = 8, .rows = 4, .columns = columns}),
          encode(Load{.pitch = 8, .buffer_pitch = 1, .units = 1, .lines = 6, .log2_group = 2},
                 {.signal = kCompute}),
          encode(Matmul{.rows_left = 1, .columns_left = 6, .count = 6},
                 {.wait = kLoad, .signal = kStore}),
          encode(Store{.address = kOutput,
                       .count = 6,
                       .rows_left = 1,
                       .columns_left = 6,
                       .columns = columns},
                 {.wait = kCompute}),
          encode_halt()};
}

std::unique_ptr<Machine> machine_with_operands() {
  auto machine = open_rtl_machine(small_machine());
  for (int m = 0; m < 6; ++m)
    for (int k = 0; k < 4; ++k)
      put(*machine, static_cast<std::size_t>(8 * m + 2 * k), bf16(static_cast<float>(m + 1 - k)));
  for (int k = 0; k < 4; ++k)
    for (int c = 0; c < 4; ++c)
      put(*machine, kWeights + static_cast<std::size_t>(8 * k + 2 * c),
          bf16(static_cast<float>(k * c + 1)));
  return machine;
}

TEST(RtlMachine, multiplies_matrices) {
  auto machine = machine_with_operands();
  machine->run(product_program(3));
  for (int m = 0; m < 6; ++m)
    for (int c = 0; c < 4; ++c) {
      int expected = 0;
      for (int k = 0; k < 4; ++k) expected += (m + 1 - k) * (k * c + 1);
      if (c == 3) expected = 0;  // beyond the tile
      EXPECT_EQ(get<float>(*machine, kOutput + static_cast<std::size_t>(16 * m + 4 * c)),
                static_cast<float>(expected))
          << m << ", " << c;
    }
  EXPECT_EQ(machine->read_buffer()[4 * 5 + 1], bf16(5.0F)) << "buffer row 5, lane 1";
  EXPECT_EQ(machine->read_accumulators()[4 * 2 + 1], std::bit_cast<std::uint32_t>(10.0F));
}

TEST(RtlMachine, keeps_the_manual_s_timetable) {
  auto machine = machine_with_operands();
  const RunReport report = machine->run(product_program(4), {.record_times = true});
  const std::vector<InstructionTimes>& times = report.times;
  // Accepted in cycles 0 to 6, one per cycle, and popped a cycle later.
  EXPECT_EQ(times[0], (InstructionTimes{1, 2}));
  EXPECT_EQ(times[1], (InstructionTimes{2, 3}));
  EXPECT_EQ(times[2], (InstructionTimes{3, 4}));
  // Weights: rows granted from 5 on, each arriving two cycles later (one of latency).
  EXPECT_EQ(times[3].start, 4U);
  EXPECT_EQ(times[4].start, 5U);
  const std::uint64_t s = times[5].start;
  EXPECT_EQ(s, std::max(times[4].end, times[3].end + 4)) << "activations and weights are there";
  EXPECT_EQ(times[5].end, s + 6 + 4 + 4 + 2) << "s + count + R + C + 2";
  EXPECT_EQ(times[6].start, times[5].end);
  EXPECT_EQ(times[6].end, times[6].start + 3 + 6) << "the first position asks after 3 cycles";
  EXPECT_EQ(times[7].start, report.counters.cycles);
  EXPECT_EQ(report.counters.cycles, times[6].end);
}

TEST(RtlMachine, keeps_eight_matmuls_in_flight) {
  auto machine = machine_with_operands();
  Program program = product_program(4);
  program.resize(6);
  // With the weights kept, each starts in the cycle after the one before.
  for (std::uint32_t i = 0; i < 12; ++i)
    program.push_back(encode(Matmul{
        .keep = true, .rows_left = 1, .columns_left = 1, .count = 1, .accumulator = 16 + i}));
  program.push_back(encode_halt());
  program[5] = encode(Matmul{.rows_left = 1, .columns_left = 6, .count = 6}, {.wait = kLoad});
  const RunReport report = machine->run(program, {.record_times = true});
  const std::uint64_t s = report.times[5].start;
  for (std::uint64_t i = 0; i < 7; ++i) EXPECT_EQ(report.times[6 + i].start, s + 6 + i) << i;
  // The first leaves 4 + R + C cycles after its last slot, and frees one entry.
  EXPECT_EQ(report.times[13].start, s + 6 + 4 + 4 + 4);
  EXPECT_EQ(report.times[14].start, s + 6 + 1 + 4 + 4 + 4);
  EXPECT_EQ(report.counters.stall_cycles[static_cast<std::size_t>(Stall::InFlight)], 5U);
}

TEST(RtlMachine, splits_its_cycles_into_issue_and_stalls) {
  auto machine = machine_with_operands();
  const Counters counters = machine->run(product_program(3)).counters;
  std::uint64_t sum = counters.issue_cycles;
  for (const std::uint64_t stall : counters.stall_cycles) sum += stall;
  EXPECT_EQ(sum, counters.cycles);
  EXPECT_EQ(counters.issue_cycles, 6U);
  EXPECT_EQ(counters.macs, 6U * 4 * 3);
  EXPECT_EQ(counters.accumulator_writes, 6U * 3);
  EXPECT_EQ(counters.dram_bytes, (std::array<std::uint64_t, kUnits>{48, 24, 0, 72}));
  EXPECT_EQ(counters.instructions, (std::array<std::uint64_t, kUnits>{1, 1, 3, 2}));
}

TEST(RtlMachine, repeats_a_program_cycle_by_cycle) {
  auto machine = machine_with_operands();
  const Counters first = machine->run(product_program(4)).counters;
  EXPECT_EQ(machine->run(product_program(4)).counters, first);
}

TEST(RtlMachine, writes_waves_of_a_window) {
  const std::string path = testing::TempDir() + "mmu4.fst";
  auto machine = machine_with_operands();
  for (int run = 0; run < 2; ++run) {
    std::filesystem::remove(path);
    machine->run(product_program(4), {.waves = path, .waves_begin = 5, .waves_end = 20});
    EXPECT_GT(std::filesystem::file_size(path), 500U);
  }
  for (const auto& file : view_files(path)) {
    EXPECT_GT(std::filesystem::file_size(file), 30U) << file;
    std::filesystem::remove(file);
  }
  std::filesystem::remove(path);
}

TEST(RtlMachine, a_watchdog_names_what_each_unit_waits_for) {
  auto machine = machine_with_operands();
  try {
    machine->run(product_program(4), {.max_cycles = 9});
    FAIL() << "ran to its end";
  } catch (const HardwareFault& fault) {
    EXPECT_THAT(
        fault.what(),
        testing::AllOf(testing::HasSubstr("has not ended in cycle 9"),
                       testing::HasSubstr("load works on instruction 4 (load signal=compute"),
                       testing::HasSubstr("compute waits with instruction 5 (matmul wait=load"),
                       testing::HasSubstr("for a token of load, which has given it 0")));
  }
}

TEST(RtlMachine, shows_numbers_and_instructions_in_words) {
  const std::string one = "0011111110000000", minus_two = "1100000000000000";
  EXPECT_EQ(wave_text(WaveFormat::Elements, minus_two + one, PeKind::Bf16), "1 -2");
  EXPECT_EQ(wave_text(WaveFormat::Elements, "1111111100000111", PeKind::Int8), "7 -1");
  EXPECT_EQ(wave_text(WaveFormat::Weights, "0" + one + "1" + minus_two, PeKind::Bf16), "-2 off");
  EXPECT_EQ(wave_text(WaveFormat::Sums, minus_two + std::string(16, '0'), PeKind::Bf16), "-2");
  EXPECT_EQ(wave_text(WaveFormat::Sums, std::string(32, '1'), PeKind::Int8), "-1");
  EXPECT_EQ(wave_text(WaveFormat::Instruction, std::string(255, '0') + "1", PeKind::Int8), "halt");
  EXPECT_EQ(wave_text(WaveFormat::Hexadecimal, "110101", PeKind::Int8), "35");
  EXPECT_EQ(format_of("u_pe", "act_q[15:0]"), WaveFormat::Elements);
  EXPECT_EQ(format_of("u_pe", "active_q[16:0]"), WaveFormat::Weights);
  EXPECT_EQ(format_of("gen_row[0]", "psum[1][2][31:0]"), WaveFormat::Sums);
  EXPECT_EQ(format_of("mmu_top", "instruction_i[255:0]"), WaveFormat::Instruction);
  EXPECT_EQ(format_of("u_compute", "head_valid_i"), WaveFormat::Hexadecimal);
}

TEST(RtlMachine, refuses_malformed_programs_and_unbuilt_machines) {
  auto machine = machine_with_operands();
  EXPECT_THROW(machine->run({}), std::invalid_argument);
  MachineConfig other = small_machine();
  other.weight_tiles = 7;
  EXPECT_THROW(open_rtl_machine(other), std::runtime_error);
}

}  // namespace
}  // namespace triptych::mmu
