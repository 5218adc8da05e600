// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "systolic/driver/pair.h"
#include "systolic/isa/accesses.h"
#include "systolic/isa/check.h"
#include "systolic/isa/field.h"
#include "tests/systolic/cosim/synchronise.h"

namespace triptych::mmu {
namespace {

std::string times_text(const InstructionTimes& times) {
  return fmt::format("{} to {}", times.start, times.end);
}

/// The instruction with the earliest difference of times.
std::string compare_times(const RunReport& first, const RunReport& second, const Program& program) {
  if (first.times.empty()) return {};
  std::size_t found = program.size();
  std::uint64_t earliest = ~std::uint64_t{0};
  for (std::size_t i = 0; i < program.size(); ++i) {
    const InstructionTimes &a = first.times[i], &b = second.times[i];
    if (a == b) continue;
    const std::uint64_t cycle =
        a.start != b.start ? std::min(a.start, b.start) : std::min(a.end, b.end);
    if (cycle < earliest) {
      earliest = cycle;
      found = i;
    }
  }
  if (found == program.size()) return {};
  return fmt::format("cycle {}: instruction {} ({}) runs from {} and {}", earliest, found,
                     disassemble(program[found]), times_text(first.times[found]),
                     times_text(second.times[found]));
}

std::string compare_accumulators(Machine& first, Machine& second, const RunReport& report,
                                 const Program& program) {
  const auto a = first.read_accumulators(), b = second.read_accumulators();
  const auto parted = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  if (parted == a.size()) return {};
  const MachineConfig& config = first.config();
  const std::size_t row = parted / config.columns, column = parted % config.columns;
  std::string text = fmt::format("accumulator row {}, column {}: {:#010x} and {:#010x}", row,
                                 column, a[parted], b[parted]);
  for (std::size_t i = report.times.size(); i-- > 0;) {
    if (program[i].opcode() != Opcode::Matmul) continue;
    const auto matmul = decode<Matmul>(program[i]);
    if (row < matmul.accumulator || row >= matmul.accumulator + rows_written(matmul)) continue;
    const std::uint64_t cycle = report.times[i].start + row - matmul.accumulator +
                                config.chain_cycles() + config.product_cycles() + 3 + column +
                                (matmul.output_stationary ? config.rows : 0);
    return fmt::format("cycle {}: {}, last written by instruction {} ({})", cycle, text, i,
                       disassemble(program[i]));
  }
  return text;
}

std::string compare_buffers(Machine& first, Machine& second) {
  const auto a = first.read_buffer(), b = second.read_buffer();
  const auto parted = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  if (parted == a.size()) return {};
  return fmt::format("buffer row {}, bank {}: {:#06x} and {:#06x}", parted / first.config().rows,
                     parted % first.config().rows, a[parted], b[parted]);
}

std::string compare_dram(Machine& first, Machine& second, const Program& program) {
  const auto a = first.dram(), b = second.dram();
  const auto parted = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  if (parted == a.size()) return {};
  StoreGeometry geometry;
  std::string writer = "nobody";
  for (std::size_t i = 0; i < program.size(); ++i) {
    geometry.set(program[i]);
    visit_accesses(program[i], geometry, first.config(),
                   [&](std::uint64_t address, std::uint64_t bytes, bool is_write) {
                     if (is_write && address <= parted && parted < address + bytes)
                       writer = fmt::format("instruction {} ({})", i, disassemble(program[i]));
                     return true;
                   });
  }
  return fmt::format("DRAM byte {}: {:#04x} and {:#04x}, last written by {}", parted,
                     static_cast<int>(a[parted]), static_cast<int>(b[parted]), writer);
}

void forget_times(RunReport& report) {
  report.times.clear();
  Counters& counters = report.counters;
  counters.cycles = counters.dram_bursts = counters.dram_row_misses = 0;
  counters.vector.cycles = 0;
  counters.stall_cycles.fill(0);
}

std::string compare_runs(Machine& first, Machine& second, const Program& program,
                         Compared compared) {
  RunReport a = first.run(program, {.record_times = true});
  RunReport b = second.run(program, {.record_times = true});
  if (compared == Compared::Bits) {
    forget_times(a);
    forget_times(b);
  }
  for (const std::string& problem :
       {compare_times(a, b, program), compare_accumulators(first, second, a, program),
        compare_buffers(first, second), compare_dram(first, second, program),
        difference(a, b, program)})
    if (!problem.empty()) return problem;
  return {};
}

/// The case without instructions [begin, end).
Case without(const Case& test, std::size_t begin, std::size_t end) {
  Case smaller = test;
  smaller.program.erase(smaller.program.begin() + static_cast<std::ptrdiff_t>(begin),
                        smaller.program.begin() + static_cast<std::ptrdiff_t>(end));
  return smaller;
}

/// Says whether a case still fails.
using Fails = std::function<bool(const Case&)>;

bool is_legal(const Case& test) {
  try {
    check_program(synchronise(test.program, test.machine), test.machine);
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

bool drop_instructions(Case& test, const Fails& still_fails) {
  bool progress = false;
  for (std::size_t length = test.program.size() / 2; length > 0; length /= 2)
    for (std::size_t begin = 0; begin + length < test.program.size();) {
      const Case smaller = without(test, begin, begin + length);
      if (still_fails(smaller)) {
        test = smaller;
        progress = true;
      } else {
        begin += length;
      }
    }
  return progress;
}

/// Moves operands towards zero, or the smallest legal size.
bool simplify_operands(Case& test, const Fails& still_fails) {
  bool progress = false;
  for (std::size_t i = 0; i < test.program.size(); ++i)
    for (const Field& field : find_opcode(test.program[i].opcode())->fields)
      for (const std::int64_t divisor : {0, 2}) {
        const std::int64_t value = get_field(test.program[i], field);
        const std::int64_t smaller = divisor == 0 ? 0 : value / divisor;
        if (smaller == value) continue;
        Case candidate = test;
        set_field(candidate.program[i], field, smaller);
        if (!still_fails(candidate)) continue;
        test = candidate;
        progress = true;
      }
  return progress;
}

}  // namespace

std::string compare(const Case& test, const Opener& first, const Opener& second,
                    Compared compared) {
  const Program program = synchronise(test.program, test.machine);
  check_program(program, test.machine);
  const auto a = first(test.machine), b = second(test.machine);
  for (Machine* machine : {a.get(), b.get()})
    std::memcpy(machine->dram().data(), test.dram.data(), test.dram.size());
  try {
    return compare_runs(*a, *b, program, compared);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

Case shrink(Case test, const Opener& first, const Opener& second, Compared compared) {
  const Fails still_fails = [&](const Case& smaller) {
    return is_legal(smaller) && !compare(smaller, first, second, compared).empty();
  };
  while (drop_instructions(test, still_fails) || simplify_operands(test, still_fails)) {
  }
  return test;
}

std::string describe(const Case& test) {
  std::string text = to_json(test.machine);
  const Program program = synchronise(test.program, test.machine);
  for (std::size_t i = 0; i < program.size(); ++i)
    text += fmt::format("{:3}  {}\n", i, disassemble(program[i]));
  return text;
}

}  // namespace triptych::mmu
