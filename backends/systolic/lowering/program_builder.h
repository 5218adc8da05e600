// Puts stages of work into a program: loads of the next boxes run while this one computes, results
// of the last group leave while the next ones accumulate. Unified buffer and accumulators are rings
// of equal parts. Tokens load <-> compute and compute <-> store hand the parts to and fro.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "backends/systolic/lowering/tiling.h"
#include "systolic/driver/driver.h"

namespace triptych::systolic {

/// How results of one column tile leave.
struct ResultStep {
  std::optional<mmu::LoadRegisters> registers;
  mmu::SetOutput output;
  mmu::Store store;
};

/// A weight tile and the matmul that takes it, or one that reuses the tile before, and the loads
/// that it awaits. Buffer and accumulator rows count from the start of a part.
struct TileStep {
  std::vector<mmu::Load> loads;
  std::optional<mmu::WeightLoad> weights;
  mmu::Matmul matmul;
  std::optional<ResultStep> result;  ///< complete with this matmul
};

/// Tiles that work on one content of the buffer, or a part of it.
struct Stage {
  mmu::SetStream stream;
  mmu::SetTaps taps;
  bool fills = false;           ///< it begins with a new content of the buffer
  bool frees = false;           ///< nobody needs the content after it
  bool alone = false;           ///< the program's only one: its loads may be many
  std::vector<TileStep> tiles;  ///< not empty
  bool completes = false;       ///< the accumulators are free for the next group after it
};

class ProgramBuilder {
 public:
  ProgramBuilder(const mmu::MachineConfig& machine, const Parts& parts)
      : machine_(machine), parts_(parts) {}

  void add(Stage stage);
  /// True before the first stage.
  bool is_empty() const { return program_.empty() && pending_.empty(); }
  /// The program, ended by a halt. Throws std::invalid_argument when a number does not fit its
  /// field.
  mmu::Program finish();

 private:
  struct PlacedStage {
    Stage stage;
    std::int64_t fill = 0;    ///< number of its content. 0: nothing is ever read of it
    std::int64_t loads = 0;   ///< stages with loads up to it
    std::size_t emitted = 0;  ///< of its tiles
  };

  void emit_loads(const TileStep& tile);
  /// Loads of the program's only stage, with first matmuls before its last loads.
  void emit_between_loads(PlacedStage& placed);
  /// Emits the first stages, as long as `is_due` holds.
  void flush(const std::function<bool(const PlacedStage&)>& is_due);
  void emit(PlacedStage& placed);
  /// The next tile of a stage, and its result.
  void emit_tile(PlacedStage& placed);
  void emit_result(const ResultStep& result, unsigned signal);
  /// Appends a descriptor that stays set, unless it is set already.
  void set(mmu::Instruction instruction, mmu::Instruction& current);

  const mmu::MachineConfig& machine_;
  Parts parts_;
  mmu::Program program_;
  std::deque<PlacedStage> pending_;  ///< the program contains its loads
  std::int64_t fills_ = 0;           ///< of the buffer
  std::int64_t loads_ = 0;           ///< stages with loads
  std::int64_t groups_ = 0;          ///< of accumulators, finished ones
  bool has_data_ = false;
  bool group_begun_ = false;
  mmu::Instruction stream_, taps_, output_, registers_;
};

}  // namespace triptych::systolic
