// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/harness.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

namespace triptych::mmu {

Counters counters_from(const std::array<std::uint64_t, kCounters>& values) {
  Counters counters;
  counters.cycles = values[0];
  counters.issue_cycles = values[1];
  counters.padding_cycles = values[2];
  std::copy_n(values.begin() + 3, kStalls, counters.stall_cycles.begin());
  counters.macs = values[10];
  counters.buffer_reads = values[11];
  counters.buffer_writes = values[12];
  counters.accumulator_reads = values[13];
  counters.accumulator_writes = values[14];
  counters.weight_reads = values[15];
  std::copy_n(values.begin() + 16, kUnits, counters.dram_bytes.begin());
  std::copy_n(values.begin() + 20, kUnits, counters.instructions.begin());
  return counters;
}

void throw_stopped(Status status, std::uint64_t cycle, const Program& program,
                   std::size_t accepted) {
  const std::string where = accepted == 0 ? std::string("before its first instruction")
                                          : fmt::format("after instruction {} ({})", accepted - 1,
                                                        disassemble(program[accepted - 1]));
  std::string_view reason = "does not know why";
  if (status == Status::Illegal) reason = "refuses that instruction";
  if (status == Status::Token) reason = "has a token counter beyond 255";
  if (status == Status::Timeout)
    reason =
        "waits for tokens, weights or room that nothing will bring: check the waits and signals";
  throw std::runtime_error(
      fmt::format("[mmu] the machine stopped in cycle {}, {}: it {}", cycle, where, reason));
}

TimesRecorder::TimesRecorder(const Program& program) : times_(program.size()) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    const OpcodeInfo* info = find_opcode(program[i].opcode());
    if (info != nullptr && info->opcode != Opcode::Halt)
      instructions_[static_cast<std::size_t>(info->unit)].push_back(i);
  }
}

void TimesRecorder::started(std::uint64_t cycle, unsigned units) {
  for (std::size_t u = 0; u < kUnits; ++u)
    if ((units >> u & 1) != 0) times_[instructions_[u].at(next_start_[u]++)].start = cycle;
}

void TimesRecorder::ended(std::uint64_t cycle, unsigned units) {
  for (std::size_t u = 0; u < kUnits; ++u)
    if ((units >> u & 1) != 0) times_[instructions_[u].at(next_end_[u]++)].end = cycle;
}

}  // namespace triptych::mmu
