// From a stream problem with its operands in DRAM to instructions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "backends/systolic/lowering/program_builder.h"
#include "backends/systolic/lowering/stream_problem.h"
#include "backends/systolic/lowering/tiling.h"

namespace triptych::systolic {

/// DRAM addresses of one problem's operands, in bytes.
struct StreamAddresses {
  std::uint32_t stream = 0;  ///< slices of channels, each [image][y][x][channel]
  /// One column tile of C columns (the last: what is left) after the other, each [row][column].
  std::uint32_t stationary = 0;
  /// 32 bits per column, one file after the other from the bias on; with all three the results are
  /// requantised.
  struct Registers {
    std::uint32_t address = 0;
    std::int64_t files = 0;
    std::int64_t pitch = 0;
  } registers;
  std::uint32_t result = 0;  ///< in column tiles as `stationary`
};

/// Appends the work of one problem to `builder`. `relu` cuts the results at zero.
void lower(const StreamProblem& problem, const StreamAddresses& addresses, bool relu,
           const Tiling& tiling, const mmu::MachineConfig& machine, ProgramBuilder& builder);

}  // namespace triptych::systolic
