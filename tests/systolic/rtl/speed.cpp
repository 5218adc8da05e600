// The speed of the RTL simulation: cycles per second of each given machine (or all), on a stream of
// matmuls that keeps the array busy, swaps weights every `positions` slots and loads activations at
// the same time. Takes the best of five runs.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <string>
#include <vector>

#include "systolic/sim/rtl_machine.h"

namespace triptych::mmu {
namespace {

constexpr std::uint32_t kPositions = 256;
constexpr std::uint32_t kTiles = 2;
constexpr unsigned kLoad = 1, kCompute = 4, kStore = 8;

Program busy_program(const MachineConfig& machine, int repetitions) {
  const auto log2_group = static_cast<std::uint32_t>(std::countr_zero(machine.rows));
  const std::uint32_t line = kTiles * machine.rows * machine.element_bytes();
  Program program;
  program.push_back(encode(SetStream{.in_height = 1,
                                     .in_width = kPositions,
                                     .stride_x = 1,
                                     .out_height = 1,
                                     .out_width = kPositions,
                                     .step_x = kTiles}));
  program.push_back(encode(
      SetTaps{.channels = kTiles * machine.rows, .kernel_width = 1, .log2_group = log2_group}));
  program.push_back(encode(SetOutput{.out_height = 1,
                                     .out_width = kPositions,
                                     .step_x = 4 * static_cast<std::int32_t>(machine.columns)}));
  const Load load{.pitch = line,
                  .buffer_pitch = kTiles,
                  .units = kTiles,
                  .lines = kPositions / 8,
                  .log2_group = log2_group};
  program.push_back(encode(load, {.signal = kCompute}));
  for (int i = 0; i < repetitions; ++i) {
    for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
      const bool last = tile + 1 == kTiles;
      program.push_back(encode(WeightLoad{.address = 1U << 20,
                                          .pitch = machine.columns * machine.element_bytes(),
                                          .rows = machine.rows,
                                          .columns = machine.columns}));
      program.push_back(encode(Matmul{.accumulate = i > 0 || tile > 0,
                                      .rows_left = 1,
                                      .columns_left = kPositions,
                                      .count = kPositions,
                                      .channel = tile * machine.rows,
                                      .offset = static_cast<std::int32_t>(tile)},
                               {.wait = tile == 0 ? kLoad : 0, .signal = last ? kLoad : 0}));
    }
    program.push_back(encode(load, {.wait = kCompute, .signal = kCompute}));
  }
  program.push_back(encode_halt());
  return program;
}

void measure(const std::string& name) {
  MachineConfig machine = find_machine(name);
  machine.dram = dram_preset("ideal", machine.clock_mhz);
  const auto simulated = open_rtl_machine(machine);
  const int repetitions =
      static_cast<int>(200'000 / (kTiles * kPositions) * 64 / (machine.rows + 48));
  const Program program = busy_program(machine, repetitions);
  double best = 1e30;
  Counters counters;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    counters = simulated->run(program, {}).counters;
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count());
  }
  fmt::print(
      "{:12} {:8} cycles, {:4.1f} % of them issue, {:6.3f} M cycles/s\n", name, counters.cycles,
      100.0 * static_cast<double>(counters.issue_cycles) / static_cast<double>(counters.cycles),
      static_cast<double>(counters.cycles) / best / 1e6);
}

}  // namespace
}  // namespace triptych::mmu

int main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  if (names.empty()) names = triptych::mmu::rtl_machine_names();
  for (const std::string& name : names) triptych::mmu::measure(name);
}
