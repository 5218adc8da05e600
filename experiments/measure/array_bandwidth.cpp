// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/array_bandwidth.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "systolic/twin/twin.h"

namespace triptych::measure {
namespace {

using mmu::Unit;

constexpr unsigned bit(Unit unit) { return 1U << static_cast<unsigned>(unit); }

/// A position is one element for each row of the array.
struct Sizes {
  explicit Sizes(const mmu::MachineConfig& machine)
      : positions(std::min({machine.buffer_rows / 2, machine.accumulator_rows / 2, 4096U})),
        columns(std::min(machine.rows, machine.columns)),
        group(static_cast<std::uint32_t>(std::countr_zero(machine.rows))),
        row_bytes(machine.rows * machine.element_bytes()),
        result_bytes(columns * machine.element_bytes()) {}

  std::uint32_t positions, columns, group, row_bytes, result_bytes;
};

/// One tile of weights, and streams of `positions` positions, one buffer row each.
mmu::Program preamble(const mmu::MachineConfig& machine, const Sizes& sizes) {
  const auto width = sizes.positions;
  return {mmu::encode(mmu::SetStream{1, width, 1, 1, 0, 0, 1, width, 1, 0, 0}),
          mmu::encode(mmu::SetTaps{machine.rows, 1, sizes.group, 0, 0, 0, 0, 0}),
          mmu::encode(mmu::WeightLoad{0, sizes.result_bytes, machine.rows, sizes.columns})};
}

/// Number `chunk` of a program. Its operands lie in half chunk % 2 of the memories.
mmu::Matmul stream_of(const Sizes& sizes, int chunk) {
  const auto begin = static_cast<std::uint32_t>(chunk % 2) * sizes.positions;
  mmu::Matmul matmul;
  matmul.keep = chunk > 0;
  matmul.address = static_cast<std::int32_t>(begin);
  matmul.rows_left = 1;
  matmul.columns_left = matmul.count = sizes.positions;
  matmul.accumulator = begin;
  return matmul;
}

mmu::Load load_of(const Sizes& sizes, std::uint32_t address, int chunk) {
  const auto begin = static_cast<std::uint32_t>(chunk % 2) * sizes.positions;
  return {address, sizes.row_bytes, begin, 1, 1, sizes.positions, sizes.group};
}

using MakeProgram = StreamProgram (*)(const mmu::MachineConfig&, bool, int);

/// Bytes per second between `few` and `many` chunks, so that begin and end do not count.
machines::Figure steady_rate(const mmu::MachineConfig& machine, MakeProgram make, bool triad,
                             double StreamProgram::*bytes) {
  constexpr int few = 8, many = 40;
  const auto short_run = make(machine, triad, few), long_run = make(machine, triad, many);
  const auto cycles = [&](const StreamProgram& run) {
    return static_cast<double>(mmu::estimate(run.program, machine).counters.cycles);
  };
  const double seconds = (cycles(long_run) - cycles(short_run)) / (machine.clock_mhz * 1e6);
  return {(long_run.*bytes - short_run.*bytes) / seconds, TimeKind::Simulated,
          fmt::format("{} of {} chunks on {}, by the twin", triad ? "triad" : "copy", many,
                      machine.name)};
}

machines::Figure declared(double value, const mmu::MachineConfig& machine) {
  return {value, TimeKind::Modelled, "description of " + machine.name};
}

}  // namespace

StreamProgram on_chip_program(const mmu::MachineConfig& machine, bool triad, int chunks) {
  const Sizes sizes(machine);
  StreamProgram run = {.program = preamble(machine, sizes)};
  for (int half = 0; half < 2; ++half) {
    run.program.push_back(
        mmu::encode(load_of(sizes, sizes.row_bytes * machine.rows, half), {0, bit(Unit::Compute)}));
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    auto matmul = stream_of(sizes, chunk);
    matmul.accumulate = triad && chunk > 1;
    run.program.push_back(mmu::encode(matmul, {chunk < 2 ? bit(Unit::Load) : 0, 0}));
  }
  run.program.push_back(mmu::encode_halt());
  const double read = sizes.row_bytes, sum = 4.0 * sizes.columns;
  run.chip_bytes = (read + sum * (triad ? 2 : 1)) * sizes.positions * chunks;
  return run;
}

StreamProgram dram_program(const mmu::MachineConfig& machine, bool triad, int chunks) {
  const Sizes sizes(machine);
  const auto chunk_in = sizes.row_bytes * sizes.positions;
  const auto chunk_out = sizes.result_bytes * sizes.positions;
  const auto inputs = static_cast<std::uint32_t>(std::bit_ceil(chunk_in));
  // Operands and results lie in three parts of DRAM, behind the weights.
  const std::uint32_t operands = inputs * static_cast<std::uint32_t>(chunks + 1);
  const std::uint32_t results = 2 * operands;
  StreamProgram run = {.program = preamble(machine, sizes)};
  const auto step = static_cast<std::int32_t>(sizes.result_bytes);
  run.program.push_back(mmu::encode(mmu::SetOutput{1, sizes.positions, step, 0, 0}));
  if (triad) run.program.push_back(mmu::encode(mmu::SetOperand{step, 0, 0}));
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const auto number = static_cast<std::uint32_t>(chunk);
    const bool waits = chunk > 1, is_awaited = chunk + 2 < chunks;
    run.program.push_back(mmu::encode(load_of(sizes, inputs + number * chunk_in, chunk),
                                      {waits ? bit(Unit::Compute) : 0, bit(Unit::Compute)}));
    run.program.push_back(mmu::encode(stream_of(sizes, chunk),
                                      {bit(Unit::Load) | (waits ? bit(Unit::Store) : 0),
                                       bit(Unit::Store) | (is_awaited ? bit(Unit::Load) : 0)}));
    mmu::Store store;
    store.narrow = true;
    store.residual = triad;
    store.address = results + number * chunk_out;
    store.operand = triad ? operands + number * chunk_out : 0;
    store.count = store.columns_left = sizes.positions;
    store.accumulator = static_cast<std::uint32_t>(chunk % 2) * sizes.positions;
    store.rows_left = 1;
    store.columns = sizes.columns;
    run.program.push_back(
        mmu::encode(store, {bit(Unit::Compute), is_awaited ? bit(Unit::Compute) : 0}));
  }
  run.program.push_back(mmu::encode_halt());
  run.dram_bytes = static_cast<double>(chunk_in + chunk_out * (triad ? 2 : 1)) * chunks;
  return run;
}

std::vector<machines::MemoryLevel> array_bandwidths(const mmu::MachineConfig& machine) {
  mmu::validate(machine);
  const double buffer =
      static_cast<double>(machine.buffer_rows) * machine.rows * machine.element_bytes();
  const double sums = 4.0 * machine.accumulator_rows * machine.columns;
  const auto rate = [&](MakeProgram make, bool triad, double StreamProgram::*bytes) {
    return steady_rate(machine, make, triad, bytes);
  };
  return {{.name = "unified buffer and accumulators",
           .capacity = declared(buffer + sums, machine),
           .copy = rate(on_chip_program, false, &StreamProgram::chip_bytes),
           .triad = rate(on_chip_program, true, &StreamProgram::chip_bytes)},
          {.name = "DRAM",
           .capacity = declared(static_cast<double>(machine.dram_bytes), machine),
           .copy = rate(dram_program, false, &StreamProgram::dram_bytes),
           .triad = rate(dram_program, true, &StreamProgram::dram_bytes)}};
}

}  // namespace triptych::measure
