// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/culprit.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <vector>

#include "systolic/isa/field.h"
#include "systolic/isa/schedule.h"

namespace triptych::mmu {
namespace {

/// A matmul that adds to a sum, and the load of its tile.
struct Link {
  std::size_t matmul = 0, weights = 0;
  std::uint32_t position = 0;
};

/// Everything that was added to the accumulator since it last started from zero.
std::vector<Link> chain_of(const Program& program, const MachineConfig& machine,
                           const WrongSum& sum) {
  std::vector<Link> chain;
  std::deque<std::size_t> tiles;
  std::size_t active = 0;
  for (std::size_t i = 0; i < sum.instructions; ++i) {
    if (program[i].opcode() == Opcode::WeightLoad) tiles.push_back(i);
    if (program[i].opcode() != Opcode::Matmul) continue;
    const auto matmul = decode<Matmul>(program[i]);
    if (!matmul.keep) {
      active = tiles.front();
      tiles.pop_front();
    }
    const std::uint32_t position = (sum.row - matmul.accumulator) & (machine.accumulator_rows - 1);
    if (position >= matmul.count) continue;
    if (!matmul.accumulate) chain.clear();
    chain.push_back({i, active, position});
  }
  return chain;
}

Program first_instructions(const Program& program, std::size_t count) {
  Program part(program.begin(), program.begin() + static_cast<std::ptrdiff_t>(count));
  part.push_back(encode_halt());
  return part;
}

/// The instruction with as many rows of its tile.
Instruction with_rows(const Instruction& instruction, std::uint32_t rows) {
  Instruction cut = instruction;
  for (const Field& field : find_opcode(Opcode::WeightLoad)->fields)
    if (field.name == "rows") set_field(cut, field, rows);
  return cut;
}

}  // namespace

std::optional<Culprit> find_culprit(const Program& program,
                                    const std::vector<InstructionTimes>& times,
                                    const MachineConfig& machine, const WrongSum& sum,
                                    const Differs& differs) {
  const auto chain = chain_of(program, machine, sum);
  const auto link = std::ranges::partition_point(chain, [&](const Link& tried) {
    return !differs(first_instructions(program, tried.matmul + 1), sum);
  });
  if (link == chain.end()) return std::nullopt;
  Program part = first_instructions(program, link->matmul + 1);
  std::vector<std::uint32_t> rows(std::max(decode<WeightLoad>(program[link->weights]).rows, 1U) -
                                  1);  // from 1
  std::iota(rows.begin(), rows.end(), 1U);
  const auto wrong = std::ranges::partition_point(rows, [&](std::uint32_t count) {
    part[link->weights] = with_rows(program[link->weights], count);
    return !differs(part, sum);
  });
  const auto pe_row = static_cast<std::uint32_t>(wrong - rows.begin());
  return Culprit{
      .matmul = link->matmul,
      .pe_row = pe_row,
      .pe_column = sum.column,
      .cycle = pe_cycle(machine, times[link->matmul].start, {link->position, pe_row, sum.column}),
      .position = link->position};
}

}  // namespace triptych::mmu
