// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/program_builder.h"

#include <utility>

namespace triptych::systolic {
namespace {

constexpr unsigned bit(mmu::Unit unit) { return 1U << static_cast<unsigned>(unit); }

}  // namespace

void ProgramBuilder::add(Stage stage) {
  if (stage.fills) {
    fill(stage);
    flush();
  }
  const auto half = has_data_ && fills_ % 2 == 0 ? machine_.buffer_rows / 2 : 0;
  pending_.push_back({std::move(stage), static_cast<std::int32_t>(half), has_data_});
}

// Called before the stages of the box before are emitted: they run while this loads.
void ProgramBuilder::fill(Stage& stage) {
  has_data_ = !stage.loads.empty();
  if (!has_data_) return;
  const auto half = fills_ % 2 == 1 ? machine_.buffer_rows / 2 : 0;
  for (std::size_t i = 0; i < stage.loads.size(); ++i) {
    auto& load = stage.loads[i];
    load.buffer_row += half;
    mmu::Tokens tokens;
    if (i == 0 && fills_ >= 2) tokens.wait = bit(mmu::Unit::Compute);
    if (i + 1 == stage.loads.size()) tokens.signal = bit(mmu::Unit::Compute);
    program_.push_back(encode(load, tokens));
  }
  ++fills_;
}

void ProgramBuilder::flush() {
  for (const auto& placed : pending_) emit(placed);
  pending_.clear();
}

void ProgramBuilder::emit(const PlacedStage& placed) {
  const auto& stage = placed.stage;
  if (stage.fills && placed.has_data) data_is_new_ = true;
  set(encode(stage.stream), stream_);
  set(encode(stage.taps), taps_);
  const auto accumulator = groups_ % 2 == 1 ? machine_.accumulator_rows / 2 : 0;
  const auto first_result = stage.tiles.size() - stage.results.size();
  for (std::size_t i = 0; i < stage.tiles.size(); ++i) {
    const auto& tile = stage.tiles[i];
    mmu::Tokens tokens;
    if (std::exchange(data_is_new_, false)) tokens.wait |= bit(mmu::Unit::Load);
    if (!std::exchange(group_begun_, true) && groups_ >= 2) tokens.wait |= bit(mmu::Unit::Store);
    const bool last = i + 1 == stage.tiles.size();
    if (last && stage.frees && placed.has_data) tokens.signal |= bit(mmu::Unit::Load);
    if (i >= first_result) tokens.signal |= bit(mmu::Unit::Store);
    auto matmul = tile.matmul;
    matmul.address += placed.buffer;
    matmul.accumulator += accumulator;
    program_.push_back(encode(tile.weights));
    program_.push_back(encode(matmul, tokens));
  }
  for (std::size_t i = 0; i < stage.results.size(); ++i) {
    auto result = stage.results[i];
    result.store.accumulator += accumulator;
    const bool last = i + 1 == stage.results.size();
    emit_result(result, last ? bit(mmu::Unit::Compute) : 0);
  }
  if (!stage.results.empty()) {
    ++groups_;
    group_begun_ = false;
  }
}

void ProgramBuilder::emit_result(const ResultStep& result, unsigned signal) {
  set(encode(result.output), output_);
  if (result.bias) set(encode(*result.bias), bias_);
  program_.push_back(encode(result.store, {.wait = bit(mmu::Unit::Compute), .signal = signal}));
}

void ProgramBuilder::set(mmu::Instruction instruction, mmu::Instruction& current) {
  if (instruction == current) return;
  current = instruction;
  program_.push_back(instruction);
}

mmu::Program ProgramBuilder::finish() {
  flush();
  program_.push_back(mmu::encode_halt());
  return std::move(program_);
}

}  // namespace triptych::systolic
