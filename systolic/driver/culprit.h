// Which PE of which matmul was the first to go wrong, found by running parts of a program again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// An accumulator that differs between two machines after the first instructions of a program.
struct WrongSum {
  std::size_t instructions = 0;
  std::uint32_t row = 0, column = 0;
};

struct Culprit {
  std::size_t matmul = 0;  ///< its number in the program
  std::uint32_t pe_row = 0, pe_column = 0;
  std::uint64_t cycle = 0;  ///< in which that PE added the wrong product
  std::uint32_t position = 0;
};

/// Runs a program on both machines from the same memory and says whether that accumulator differs.
using Differs = std::function<bool(const Program& program, const WrongSum& sum)>;

/// The chain of matmuls behind the sum is cut until it is right: first after a matmul, then after a
/// row of its tile. nullopt: the sum is right whenever it is looked at alone.
std::optional<Culprit> find_culprit(const Program& program,
                                    const std::vector<InstructionTimes>& times,
                                    const MachineConfig& machine, const WrongSum& sum,
                                    const Differs& differs);

}  // namespace triptych::mmu
