// Multiply-adds of one matmul, PE by PE, as the array computes them: one after the other, to be
// shown. functional.cpp computes the same sums fast.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"
#include "systolic/isa/simulator.h"
#include "systolic/twin/grid.h"

namespace triptych::mmu {

/// State that a matmul finds when it starts. `element(row, lane)` and `sum(row, column)` are the
/// numbers in buffer and accumulators.
struct MatmulView {
  const MachineConfig& machine;
  const SetStream& stream;
  const SetTaps& taps;
  const Tile& tile;
  std::uint32_t lane = 0;       ///< of a transposed stream's first value
  std::uint32_t first_sum = 0;  ///< row of the first chain's sum
  std::function<double(std::uint32_t row, std::uint32_t lane)> element;
  std::function<double(std::uint32_t row, std::uint32_t column)> sum;
};

/// Tells of every PE with a weight, link after link of one chain after the other. `start` and
/// `instruction` are the matmul's.
void visit_pes(const Matmul& matmul, const MatmulView& view, std::uint64_t start,
               std::size_t instruction, const PeWatcher& watcher);

}  // namespace triptych::mmu
