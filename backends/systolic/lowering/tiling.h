// How a stream problem is cut to fit a machine: boxes of positions that fit a part of the unified
// buffer, groups of results that fit a part of the accumulators; chosen by a closed-form estimate
// of cycles.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "backends/systolic/lowering/stream_problem.h"

namespace triptych::systolic {

/// Into how many equal parts the two memories are cut, powers of two from 2 on. More of them hide
/// the way from one unit to the next and back; fewer hold larger boxes and groups.
struct Parts {
  std::int64_t buffer = 2, accumulators = 2;
};

/// Tiles of positions in one stage of a transposed stream: what is loaded at a time.
inline constexpr std::int64_t kTransposedTiles = 8;

struct Tiling {
  /// Output positions of one box. More than one image only with whole images; a transposed stream,
  /// whose positions are a chain, cuts rows only into boxes of a single one.
  std::int64_t box_images = 1, box_y = 1, box_x = 1;
  Slicing slicing;
  std::int64_t pass = 0;  ///< of a box's positions (transposed: values), accumulated at a time
  std::int64_t column_tiles = 1;  ///< accumulated at a time
  double cycles = 0;              ///< estimate, without filling and draining
  double ramp = 0;                ///< the first load and the last store

  bool operator==(const Tiling&) const = default;
};

/// The best tilings by estimate, the best one first; with slices of so many channels if that is
/// given. Throws UnsupportedError when the machine is too small for a single position.
std::vector<Tiling> choose_tilings(const StreamProblem& problem, const mmu::MachineConfig& machine,
                                   const Parts& parts,
                                   std::optional<std::int64_t> slice_channels = std::nullopt);

/// The boxes in row-major order of their positions.
std::vector<Box> boxes_of(const StreamProblem& problem, const Tiling& tiling);

}  // namespace triptych::systolic
