// From a stream problem with its operands in DRAM, or left in the buffer, to instructions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "backends/systolic/lowering/program_builder.h"
#include "backends/systolic/lowering/stream_problem.h"
#include "backends/systolic/lowering/tiling.h"

namespace triptych::systolic {

/// Where a result stays in the unified buffer, as activations of the next program.
struct KeptResult {
  std::int64_t row = 0;    ///< of the first position's first channels
  std::int64_t group = 1;  ///< channels of a row: a column tile's
  std::int64_t units = 1;  ///< rows of a position

  bool operator==(const KeptResult&) const = default;
};

/// Places of one problem's operands: DRAM addresses in bytes, and rows of the unified buffer for
/// operands that do not cross the DRAM.
struct StreamAddresses {
  std::uint32_t stream = 0;  ///< slices of channels, each [image][y][x][channel]
  /// One column tile of C columns (fewer in the last) after the other, each [row][column].
  std::uint32_t stationary = 0;
  /// 32 bits per column, one file after the other from the bias on. With all three the results are
  /// requantised.
  struct Registers {
    std::uint32_t address = 0;
    std::int64_t files = 0;
    std::int64_t pitch = 0;
  } registers;
  std::uint32_t result = 0;  ///< in column tiles as `stationary`
  /// Where the whole stream lies already, [image][y][x][unit].
  std::optional<std::int64_t> stream_row = {};
  std::optional<KeptResult> kept = {};  ///< in the place of `result`
};

/// Appends the work of one problem to `builder`. `relu` cuts the results at zero.
void lower(const StreamProblem& problem, const StreamAddresses& addresses, bool relu,
           const Tiling& tiling, const mmu::MachineConfig& machine, ProgramBuilder& builder);

}  // namespace triptych::systolic
