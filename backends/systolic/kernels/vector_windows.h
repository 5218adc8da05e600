// Adjacent 2 x 2 windows of images on the vector unit. The pixels of a window are in two
// neighbouring lanes of two rows. Lane masks move every second lane to the front, or back.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>

#include "backends/systolic/kernels/vector_kernel.h"
#include "core/ops/conv_geometry.h"

namespace triptych::systolic {

/// Windows of one vector row, and the rows that select lanes: for each power of two below it, those
/// that a value reaches when it moves so many lanes, and at last the odd lanes.
struct WindowLanes {
  std::uint32_t columns, windows, steps;
  bool spreads;  ///< values move from lane i to lane 2 i, otherwise from there to i

  WindowLanes(std::uint32_t lanes, bool spread);

  std::int64_t parameters() const { return std::int64_t{steps + 1} * columns; }
  void fill_masks(float* masks) const;
};

/// The masks, a row each.
VectorBlock load_masks(VectorProgram& program, const WindowLanes& lanes, std::uint64_t address);

void gather_even_lanes(VectorProgram& program, const WindowLanes& lanes, VectorBlock masks,
                       VectorBlock x, VectorBlock scratch);
/// Lanes 2 i and 2 i + 1 get lane i.
void spread_lanes(VectorProgram& program, const WindowLanes& lanes, VectorBlock masks,
                  VectorBlock x, VectorBlock scratch);

/// Windows of all planes: those of a large image, and a pixel for each in a small one.
class WindowWalk {
 public:
  /// Large and small images have these heights and widths.
  WindowWalk(std::int64_t planes, const std::int64_t (&large)[2], const std::int64_t (&small)[2])
      : planes_(planes), large_{large[0], large[1]}, small_{small[0], small[1]} {}

  /// Some rows of windows, `width` in each. Addresses are in bytes, from those of the tensors.
  struct Tile {
    std::uint32_t rows, width;
    std::uint64_t large, small;
  };
  std::int64_t rows() const { return planes_ * small_[0]; }
  void for_each_tile(VectorProgram& program, std::int64_t windows,
                     const std::function<void(const Tile& tile)>& body) const;

  /// The upper or the lower pixels of the windows.
  void load_large(VectorProgram& program, std::uint64_t image, const Tile& tile, bool lower,
                  VectorBlock to) const;
  void store_large(VectorProgram& program, VectorBlock from, std::uint64_t image, const Tile& tile,
                   bool lower) const;
  void load_small(VectorProgram& program, std::uint64_t image, const Tile& tile,
                  VectorBlock to) const;
  void store_small(VectorProgram& program, VectorBlock from, std::uint64_t image,
                   const Tile& tile) const;

 private:
  std::uint64_t large_at(std::uint64_t image, const Tile& tile, bool lower) const {
    return image + tile.large + static_cast<std::uint64_t>(lower ? 4 * large_[1] : 0);
  }

  std::int64_t planes_, large_[2], small_[2];
};

/// result: all bits 1 where a is above b, or a NaN (core/base/reduction.h).
void outranks(VectorProgram& program, VectorBlock a, VectorBlock b, VectorBlock result,
              VectorBlock scratch);

using EmitWindows =
    std::function<void(VectorProgram& program, const VectorAddresses& at, VectorBlock masks)>;
/// A task with `blocks` blocks. The masks are its first rows.
VectorTask window_task(const WindowWalk& walk, const WindowLanes& lanes, std::uint32_t blocks,
                       const EmitWindows& emit);

/// small = ((0 + upper left) + upper right) + lower left) + lower right, times `factor`.
VectorTask window_sums(const WindowWalk& walk, float factor, const mmu::MachineConfig& machine);

/// All pixels of a window = small times `factor`, plus 0 where that is not 1.
VectorTask spread_windows(const WindowWalk& walk, float factor, const mmu::MachineConfig& machine);

}  // namespace triptych::systolic
