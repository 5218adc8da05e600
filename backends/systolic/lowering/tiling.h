// Divides a stream problem to fit a machine: boxes of positions that fit a part of the unified
// buffer, groups of results that fit a part of the accumulators. A closed-form estimate of cycles
// and of DRAM traffic chooses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <string>

#include "backends/systolic/lowering/stream_problem.h"

namespace triptych::systolic {

/// Into how many equal parts the two memories are cut, powers of two from 2 on. More of them hide
/// the way from one unit to the next and back. Fewer hold larger boxes and groups.
struct Parts {
  std::int64_t buffer = 2, accumulators = 2;

  bool operator==(const Parts&) const = default;
};

/// Tiles of positions in one stage of a transposed stream: the unit of its loads.
inline constexpr std::int64_t kTransposedTiles = 8;

/// The operand that stays in the array: weights while results pass, or results while weights pass.
enum class Dataflow { WeightStationary, OutputStationary };

struct Tiling {
  Dataflow dataflow = Dataflow::WeightStationary;
  /// Output positions of one box. More than one image only with whole images. A transposed stream,
  /// which has positions in a chain, cuts rows only into boxes of a single one.
  std::int64_t box_images = 1, box_y = 1, box_x = 1;
  Slicing slicing;
  std::int64_t pass = 0;  ///< of a box's positions (transposed: values), accumulated at a time
  std::int64_t column_tiles = 1;  ///< accumulated at a time
  double cycles = 0;              ///< estimate, without filling and draining
  double ramp = 0;                ///< the first load and the last store
  double traffic = 0;             ///< estimate of the bytes that cross the DRAM's bus

  bool operator==(const Tiling&) const = default;
};

/// Requested sizes. The others are open. One that is larger than the problem's means all of it.
struct TilingChoice {
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kMost = 1'000'000'000;

  std::optional<Dataflow> dataflow;
  std::optional<std::int64_t> images, y, x;  ///< of a box
  std::optional<std::int64_t> channels;      ///< of a slice
  std::optional<std::int64_t> taps;          ///< of a slice: 1 or kAll
  /// A transposed stream's counts values and becomes the next multiple of the array's rows.
  std::optional<std::int64_t> pass;
  std::optional<std::int64_t> columns;               ///< Tiling::column_tiles
  std::optional<std::int64_t> buffer, accumulators;  ///< Parts
  std::optional<std::int64_t> group;                 ///< StreamProblem::group
  std::string text = {};                             ///< in its original spelling, or empty
};

/// An estimate this much above the fewest cycles may still be within kSlack of them in truth.
inline constexpr double kEstimateSlack = 1.03;

/// Tilings worth pricing, by estimate, of one dataflow after the other.
struct TilingCandidates {
  std::vector<Tiling> fastest;   ///< the fewest cycles first
  std::vector<Tiling> lightest;  ///< within kEstimateSlack of them, the least traffic first
};

/// The candidates that have the sizes of `choice`. Throws UnsupportedError where there is none: the
/// machine is too small for a single position, or for these sizes.
TilingCandidates choose_tilings(const StreamProblem& problem, const mmu::MachineConfig& machine,
                                const Parts& parts, const TilingChoice& choice = {});

/// The boxes in row-major order of their positions.
std::vector<Box> boxes_of(const StreamProblem& problem, const Tiling& tiling);

}  // namespace triptych::systolic
