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
  counters.vector = {.cycles = values[24],
                     .reads = values[25],
                     .writes = values[26],
                     .adds = values[27],
                     .multiplies = values[28],
                     .fmas = values[29],
                     .others = values[30]};
  return counters;
}

void throw_stopped(Status status, std::uint64_t cycle, const Program& program, std::size_t accepted,
                   const TimesRecorder& recorder) {
  const std::string where = accepted == 0 ? std::string("before its first instruction")
                                          : fmt::format("after instruction {} ({})", accepted - 1,
                                                        disassemble(program[accepted - 1]));
  const std::string stopped =
      fmt::format("[mmu] the machine stopped in cycle {}, {}: ", cycle, where);
  switch (status) {
    case Status::Token:
      throw std::runtime_error(stopped + "it has a token counter beyond 255");
    case Status::Illegal:
      throw HardwareFault(stopped + "it refuses that instruction, which is legal");
    case Status::Timeout:
      throw HardwareFault(stopped + "no unit has moved for 65,536 cycles" +
                          recorder.waiting(accepted));
    case Status::Running:
      throw HardwareFault(
          fmt::format("[mmu] the machine has not ended in cycle {}, {}: its watchdog "
                      "stops it{}",
                      cycle, where, recorder.waiting(accepted)));
    default:
      throw HardwareFault(stopped + fmt::format("its status_o is {}, which means nothing",
                                                static_cast<unsigned>(status)));
  }
}

TimesRecorder::TimesRecorder(const Program& program) : program_(program), times_(program.size()) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    const OpcodeInfo* info = find_opcode(program[i].opcode());
    if (info != nullptr && info->opcode != Opcode::Halt)
      units_[static_cast<std::size_t>(info->unit)].instructions.push_back(i);
  }
}

void TimesRecorder::record(std::uint64_t cycle, unsigned units, bool start) {
  for (std::size_t u = 0; u < kUnits; ++u) {
    if ((units >> u & 1) == 0) continue;
    Progress& unit = units_[u];
    if ((start ? unit.started : unit.ended) == unit.instructions.size())
      throw HardwareFault(fmt::format(
          "[mmu] cycle {}: the unit {} {} an instruction (port {}) after all {} that it was given",
          cycle, to_string(static_cast<Unit>(u)), start ? "takes" : "ends",
          start ? "trace_start_o" : "trace_end_o", unit.instructions.size()));
    if (start)
      times_[unit.instructions[unit.started++]].start = cycle;
    else
      times_[unit.instructions[unit.ended++]].end = cycle;
  }
}

std::vector<std::size_t> TimesRecorder::given(std::size_t giver, std::size_t taker) const {
  std::vector<std::size_t> givers;
  for (std::size_t i = 0; i < units_[giver].ended; ++i) {
    const std::size_t instruction = units_[giver].instructions[i];
    if ((program_[instruction].signal() >> taker & 1) != 0) givers.push_back(instruction);
  }
  return givers;
}

std::size_t TimesRecorder::taken(std::size_t giver, std::size_t taker) const {
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < units_[taker].started; ++i)
    tokens += program_[units_[taker].instructions[i]].wait() >> giver & 1;
  return tokens;
}

std::string TimesRecorder::waiting(std::size_t unit, const Instruction& next) const {
  std::string missing, there;
  for (std::size_t giver = 0; giver < kUnits; ++giver) {
    if ((next.wait() >> giver & 1) == 0) continue;
    const auto name = to_string(static_cast<Unit>(giver));
    const auto givers = given(giver, unit);
    const std::size_t number = taken(giver, unit);
    if (number >= givers.size())
      missing += fmt::format("{} for a token of {}, which has given it {}",
                             missing.empty() ? "" : ", and", name, givers.size());
    else
      there += fmt::format("{} {} has given its token (instruction {} ({}), in cycle {})",
                           there.empty() ? ", although" : ", and", name, givers[number],
                           disassemble(program_[givers[number]]), times_[givers[number]].end);
  }
  if (!missing.empty()) return missing;
  return there + ": for weights, for room, or for itself";
}

std::string TimesRecorder::waiting(std::size_t accepted) const {
  std::string text;
  for (std::size_t u = 0; u < kUnits; ++u) {
    const Progress& unit = units_[u];
    const auto name = to_string(static_cast<Unit>(u));
    const auto is_there = [&](std::size_t next) {
      return next < unit.instructions.size() && unit.instructions[next] < accepted;
    };
    if (unit.ended < unit.started) {
      const std::size_t i = unit.instructions[unit.ended];
      text += fmt::format("\n  {} works on instruction {} ({}) since cycle {}", name, i,
                          disassemble(program_[i]), times_[i].start);
    }
    if (is_there(unit.started)) {
      const std::size_t i = unit.instructions[unit.started];
      text += fmt::format("\n  {} waits with instruction {} ({}){}", name, i,
                          disassemble(program_[i]), waiting(u, program_[i]));
    }
  }
  if (text.empty()) text = "\n  every unit has ended its instructions";
  if (accepted < program_.size())
    text += fmt::format("\n  dispatch waits with instruction {} ({})", accepted,
                        disassemble(program_[accepted]));
  return text;
}

}  // namespace triptych::mmu
