// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/simulator.h"

namespace triptych::mmu {
namespace {

template <std::size_t n>
void add(std::array<std::uint64_t, n>& sum, const std::array<std::uint64_t, n>& other) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += other[i];
}

constexpr std::array<std::string_view, kStalls> kStallNames{
    "drain", "activations", "output", "dram", "weights", "accumulator", "in_flight"};

}  // namespace

std::string_view to_string(Stall stall) { return kStallNames[static_cast<std::size_t>(stall)]; }

std::vector<NamedCount> named_counts(const Counters& counters) {
  std::vector<NamedCount> named = {{"cycles", counters.cycles},
                                   {"issue_cycles", counters.issue_cycles},
                                   {"padding_cycles", counters.padding_cycles}};
  const auto add = [&](std::string_view before, auto names, std::string_view after,
                       const auto& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::string name(before);
      name += to_string(static_cast<decltype(names)>(i));
      named.push_back({name += after, values[i]});
    }
  };
  add("stall_", Stall{}, "_cycles", counters.stall_cycles);
  named.insert(named.end(), {{"macs", counters.macs},
                             {"buffer_reads", counters.buffer_reads},
                             {"buffer_writes", counters.buffer_writes},
                             {"accumulator_reads", counters.accumulator_reads},
                             {"accumulator_writes", counters.accumulator_writes},
                             {"weight_reads", counters.weight_reads}});
  add("dram_", Unit{}, "_bytes", counters.dram_bytes);
  named.insert(named.end(), {{"dram_bursts", counters.dram_bursts},
                             {"dram_row_misses", counters.dram_row_misses}});
  add("", Unit{}, "_instructions", counters.instructions);
  return named;
}

Counters& Counters::operator+=(const Counters& other) {
  cycles += other.cycles;
  issue_cycles += other.issue_cycles;
  padding_cycles += other.padding_cycles;
  add(stall_cycles, other.stall_cycles);
  macs += other.macs;
  buffer_reads += other.buffer_reads;
  buffer_writes += other.buffer_writes;
  accumulator_reads += other.accumulator_reads;
  accumulator_writes += other.accumulator_writes;
  weight_reads += other.weight_reads;
  add(dram_bytes, other.dram_bytes);
  dram_bursts += other.dram_bursts;
  dram_row_misses += other.dram_row_misses;
  add(instructions, other.instructions);
  return *this;
}

}  // namespace triptych::mmu
