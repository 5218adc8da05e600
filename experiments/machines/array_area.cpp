// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/array_area.h"

#include <array>

namespace triptych::machines {
namespace {

struct Logic {
  double gates = 0, flip_flops = 0;
};

// Yosys 0.23, gates of two inputs: see docs/results/systolic.md. By kind of PE, then pe_latency.
constexpr std::array<std::array<Logic, 3>, 2> kPe = {{
    {{{2800, 101}, {2823, 180}, {2750, 258}}},
    {{{1790, 69}, {794, 138}, {768, 194}}},
}};
// One column of the output unit: in one cycle, and in eleven stages.
constexpr std::array<std::array<Logic, 2>, 2> kOutput = {{
    {{{10426, 128}, {9173, 882}}},
    {{{10440, 134}, {10344, 818}}},
}};
// Addresses of one row of the array. All other units together, of 4 x 4.
constexpr Logic kLane = {1333, 109};
constexpr Logic kControl = {29507, 3625};
// The vector unit: one lane with its part of the datapath, and the rest.
constexpr Logic kVectorLane = {11321, 157}, kVectorControl = {800, 208};
constexpr double kVectorCopies = 2;  ///< of its memory: it reads two rows at once

Area area_of(const Logic& logic) { return {logic.gates, logic.flip_flops, 0}; }
Area ram(double bits) { return {0, 0, bits}; }

}  // namespace

std::vector<UnitArea> unit_areas(const mmu::MachineConfig& machine) {
  const auto kind = static_cast<std::size_t>(machine.pe);
  const auto& pe = kPe[kind][machine.pe_latency - 1];
  const auto& output = kOutput[kind][machine.pe_latency > 1 ? 1 : 0];
  const double rows = machine.rows, columns = machine.columns;
  const double element_bits = 8.0 * machine.element_bytes();
  std::vector<UnitArea> units = {
      {"PE", rows * columns, area_of(pe)},
      {"address lane", rows, area_of(kLane)},
      {"output column", columns, area_of(output)},
      {"control", 1, area_of(kControl)},
      {"unified buffer", 1, ram(machine.buffer_rows * rows * element_bits)},
      {"accumulators", 1, ram(machine.accumulator_rows * columns * 32)},
      {"weight FIFO", 1, ram(machine.weight_tiles * rows * columns * (element_bits + 1))}};
  if (!machine.has_vector_unit()) return units;
  const double vector_bits = machine.vector_rows * columns * 32;
  units.push_back({"vector lane", columns, area_of(kVectorLane)});
  units.push_back({"vector control", 1, area_of(kVectorControl)});
  units.push_back({"vector memory", 1, ram(kVectorCopies * vector_bits)});
  return units;
}

Area total_area(const mmu::MachineConfig& machine) {
  Area sum;
  for (const auto& [unit, number, each] : unit_areas(machine)) {
    sum.gates += number * each.gates;
    sum.flip_flops += number * each.flip_flops;
    sum.ram_bits += number * each.ram_bits;
  }
  return sum;
}

}  // namespace triptych::machines
