// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/array_energy.h"

#include <numeric>

#include "experiments/machines/array_area.h"

namespace triptych::machines {
namespace {

constexpr double kByteBits = 8;
constexpr double kSumBits = 32;

double real(std::uint64_t count) { return static_cast<double>(count); }

/// Bits of the registers that values pass in the array.
std::vector<EnergyPart> register_parts(const mmu::Counters& counts,
                                       const mmu::MachineConfig& machine,
                                       const EnergyTable& table) {
  const double element_bits = kByteBits * machine.element_bytes();
  const double pe_slots = real(counts.issue_cycles) * machine.rows * machine.columns;
  // Counters do not tell the dataflow. An output-stationary program sends weights past all rows.
  const bool moves_weights = machine.has_output_stationary();
  const double weight_hops = (moves_weights ? machine.rows : (machine.rows + 1) / 2.0) + 2;
  const auto& bit = table.of(EnergyAction::RegisterBit);
  return {{"activation registers", pe_slots * element_bits, bit},
          {"sum registers", pe_slots * kSumBits * machine.pe_latency, bit},
          {moves_weights ? "weight registers (at most)" : "weight registers",
           real(counts.weight_reads) * weight_hops * element_bits, bit}};
}

std::vector<EnergyPart> memory_parts(const mmu::Counters& counts, const mmu::MachineConfig& machine,
                                     const EnergyTable& table) {
  const double element_bits = kByteBits * machine.element_bytes();
  const double buffer_bytes =
      double{1} * machine.buffer_rows * machine.rows * machine.element_bytes();
  const double accumulator_bytes = 4.0 * machine.accumulator_rows * machine.columns;
  const auto& by_unit = counts.dram_bytes;
  const auto dram_bytes = std::accumulate(by_unit.begin(), by_unit.end(), 0.0);
  const bool stacked = machine.dram.preset.starts_with("hbm");
  return {{"weight FIFO",
           kByteBits * real(by_unit[static_cast<std::size_t>(mmu::Unit::Weights)]) +
               element_bits * real(counts.weight_reads),
           table.of(EnergyAction::FifoBit)},
          {"accumulators", kSumBits * (real(counts.accumulator_reads + counts.accumulator_writes)),
           table.memory_bit(accumulator_bytes)},
          {"unified buffer", element_bits * (real(counts.buffer_reads + counts.buffer_writes)),
           table.memory_bit(buffer_bytes)},
          {"DRAM", kByteBits * dram_bytes,
           table.of(stacked ? EnergyAction::HbmBit : EnergyAction::DramBit)}};
}

std::vector<EnergyPart> vector_parts(const mmu::VectorCounts& counts,
                                     const mmu::MachineConfig& machine, const EnergyTable& table) {
  const double bytes = 4.0 * machine.vector_rows * machine.columns;
  return {
      {"vector multiply", real(counts.multiplies + counts.fmas),
       table.of(EnergyAction::Float32Multiply)},
      {"vector add", real(counts.adds + counts.fmas), table.of(EnergyAction::Float32Add)},
      {"vector other", real(counts.others), table.of(EnergyAction::Int32Add)},
      {"vector memory", kSumBits * real(counts.reads + counts.writes), table.memory_bit(bytes)}};
}

}  // namespace

std::vector<EnergyPart> array_energy(const mmu::Counters& counts, const mmu::MachineConfig& machine,
                                     const EnergyTable& table) {
  const bool bf16 = machine.pe == mmu::PeKind::Bf16;
  const double macs = real(counts.macs);
  std::vector<EnergyPart> parts = {
      {"multiply", macs, table.of(bf16 ? EnergyAction::Bf16Multiply : EnergyAction::Int8Multiply)},
      {"add", macs, table.of(bf16 ? EnergyAction::Float32Add : EnergyAction::Int32Add)}};
  for (auto& part : register_parts(counts, machine, table)) parts.push_back(std::move(part));
  for (auto& part : memory_parts(counts, machine, table)) parts.push_back(std::move(part));
  if (machine.has_vector_unit())
    for (auto& part : vector_parts(counts.vector, machine, table)) parts.push_back(std::move(part));
  const auto area = total_area(machine);
  const double cycles = real(counts.cycles);
  const double seconds = cycles / (machine.clock_mhz * 1e6);
  parts.push_back({"clock", cycles * area.flip_flops, table.of(EnergyAction::FlipFlopClock)});
  parts.push_back({"leakage of gates", seconds * area.gates, table.of(EnergyAction::GateLeakage)});
  parts.push_back(
      {"leakage of memories", seconds * area.ram_bits, table.of(EnergyAction::RamBitLeakage)});
  return parts;
}

}  // namespace triptych::machines
