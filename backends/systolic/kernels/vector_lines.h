// Lines of a tensor along an axis on the vector unit. Lines lie side by side in the lanes, so that
// an element of all of them is a row, and a reduction adds whole rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "backends/systolic/kernels/vector_kernel.h"
#include "core/ops/axes.h"

namespace triptych::systolic {

/// Some neighbouring lines, in elements of the tensor.
struct LineTile {
  std::int64_t line = 0;   ///< number of the first one
  std::int64_t lines = 0;  ///< side by side
  std::int64_t start = 0;  ///< of element 0 of the first line
  std::int64_t step = 0;   ///< to the next element of a line

  std::uint64_t address(std::uint64_t tensor, std::int64_t element) const {
    return tensor + static_cast<std::uint64_t>(4 * (start + element * step));
  }
  /// In a tensor of one value per line.
  std::uint64_t line_address(std::uint64_t tensor) const {
    return tensor + static_cast<std::uint64_t>(4 * line);
  }
};

class VectorLines {
 public:
  VectorLines(const AxisLines& lines, const mmu::MachineConfig& machine);

  std::int64_t elements() const { return lines_.count; }  ///< of a line
  std::int64_t lines() const { return lines_.outer * lines_.inner; }
  std::int64_t scratch_bytes() const { return gathers_ ? 4 * lines() * lines_.count : 0; }

  /// Returns the address of the tensor whose tiles for_each_tile() visits: x, or its copy.
  std::uint64_t gather(VectorProgram& program, std::uint64_t x, std::uint64_t scratch) const;
  /// The address of results in the order of such tiles: y, or a copy for scatter().
  std::uint64_t target(std::uint64_t y, std::uint64_t scratch) const {
    return gathers_ ? scratch : y;
  }
  void scatter(VectorProgram& program, std::uint64_t scratch, std::uint64_t y) const;

  void for_each_tile(VectorProgram& program,
                     const std::function<void(const LineTile& tile)>& body) const;

 private:
  AxisLines lines_;
  /// Too few lines are neighbours. A program then gathers the tensor in the scratch memory.
  bool gathers_;
};

/// Emits element `number` of the present lines.
using LineElement = std::function<void(std::int64_t number, VectorBlock y)>;
/// Emits a = a + b, or another operation.
using LineCombination = std::function<void(VectorBlock a, VectorBlock b)>;

/// y becomes the elements' reduction by the stated tree (core/base/reduction.h). A lane of the tree
/// begins with its first element: those of a sum must not be -0.
void fold_lines(VectorProgram& program, std::int64_t elements, const LineElement& element,
                const LineCombination& combine, VectorBlock y);
/// Blocks that fold_lines() takes in addition to y.
std::uint32_t fold_blocks(std::int64_t elements);

}  // namespace triptych::systolic
