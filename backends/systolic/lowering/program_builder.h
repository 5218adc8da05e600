// Puts stages of work into a program: loads of the next box run while this one computes, results
// of the last group leave while the next one accumulates. Unified buffer and accumulators are used
// in halves; tokens load <-> compute and compute <-> store hand the halves to and fro.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "systolic/driver/driver.h"

namespace triptych::systolic {

/// One weight tile and the matmul that swaps it in. Buffer and accumulator rows count from the
/// start of a half.
struct TileStep {
  mmu::WeightLoad weights;
  mmu::Matmul matmul;
};

/// How the results of one column tile leave.
struct ResultStep {
  std::optional<mmu::LoadBias> bias;
  mmu::SetOutput output;
  mmu::Store store;
};

/// Tiles that work on one content of the buffer.
struct Stage {
  mmu::SetStream stream;
  mmu::SetTaps taps;
  bool fills = false;            ///< does it begin with a new content of the buffer?
  std::vector<mmu::Load> loads;  ///< that content; none: nothing of it is ever read
  bool frees = false;            ///< does nobody need the content after it?
  std::vector<TileStep> tiles;   ///< not empty
  /// Not empty: the accumulators are complete; results[i] belongs to the tile that is i-th among
  /// the last results.size() ones.
  std::vector<ResultStep> results;
};

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const mmu::MachineConfig& machine) : machine_(machine) {}

  void add(Stage stage);
  /// The program, ended by a halt. Throws std::invalid_argument when a number does not fit its
  /// field.
  mmu::Program finish();

 private:
  struct PlacedStage {
    Stage stage;
    std::int32_t buffer = 0;  ///< first row of its half
    bool has_data = false;
  };

  void fill(Stage& stage);
  void flush();
  void emit(const PlacedStage& placed);
  void emit_result(const ResultStep& result, unsigned signal);
  /// Appends a descriptor that stays set, unless it is set already.
  void set(mmu::Instruction instruction, mmu::Instruction& current);

  const mmu::MachineConfig& machine_;
  mmu::Program program_;
  std::vector<PlacedStage> pending_;  ///< of the box that was loaded last
  std::int64_t fills_ = 0;
  std::int64_t groups_ = 0;  ///< of accumulators, finished ones
  bool has_data_ = false;
  bool group_begun_ = false;
  bool data_is_new_ = false;
  mmu::Instruction stream_, taps_, output_, bias_;
};

}  // namespace triptych::systolic
