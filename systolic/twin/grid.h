// Matmuls in a row that pass the same activations by many weight tiles. Together they are one large
// matrix product: tiles along k continue the same chains, adjacent tiles share the gathered
// operands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/twin/array.h"

namespace triptych::mmu {

/// A tile of weights, where it lies in DRAM or, once that has changed, in a copy.
struct Tile {
  std::uint32_t rows = 0, columns = 0;
  const std::byte* memory = nullptr;
  std::uint32_t address = 0, pitch = 0;
  std::shared_ptr<const std::byte[]> copy = nullptr;

  const std::byte* row(std::uint32_t r) const {
    return memory + static_cast<std::uint32_t>(address + r * pitch);
  }
};

/// Steps first_step, ... of a grid in its first `columns` columns.
struct GridPart {
  std::size_t first_step = 0, steps = 0, columns = 0;
};

/// A grid of weight tiles, [step][column]: the matmuls of a step differ in tile and accumulators,
/// those of a column continue each other's chains. Only the last step may lack columns.
class MatmulGrid {
 public:
  struct Step {
    Matmul start;
    std::uint32_t rows;
    std::uint32_t lane;  ///< of a transposed stream's first value
  };
  struct Column {
    std::uint32_t accumulator, columns;
  };

  /// False if the matmul does not belong to this grid: begin a new one.
  bool add(const Matmul& matmul, const Tile& tile, std::uint32_t lane);
  void clear();

  bool empty() const { return tiles_.empty(); }
  /// True when the first step accumulates, as the others do.
  bool accumulate() const { return steps_.front().start.accumulate; }
  std::uint32_t count() const { return steps_.front().start.count; }
  std::span<const Step> steps_of(const GridPart& part) const {
    return std::span(steps_).subspan(part.first_step, part.steps);
  }
  const std::vector<Column>& columns() const { return columns_; }
  const Tile& tile(std::size_t step, std::size_t column) const {
    return tiles_[step * columns_.size() + column];
  }
  /// The complete steps, and the rest of the last one. A part may be empty.
  std::array<GridPart, 2> parts() const;

 private:
  bool add_step(const Matmul& matmul, const Tile& tile, std::uint32_t lane);
  bool add_to_step(const Matmul& matmul, const Tile& tile);

  std::vector<Step> steps_;
  std::vector<Column> columns_;
  std::vector<Tile> tiles_;
  std::uint32_t rows_ = 0;
};

/// True when both steps stream the same, under the same descriptors and from the same buffer.
bool same_activations(const MatmulGrid::Step& a, const MatmulGrid::Step& b);

}  // namespace triptych::mmu
