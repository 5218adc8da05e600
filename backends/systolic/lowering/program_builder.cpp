// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/program_builder.h"

#include <algorithm>
#include <utility>

namespace triptych::systolic {
namespace {

// Loads that precede the matmul of the first of them in the program: with those of the next stages
// they fit the load unit's queue, so that the matmul does not wait behind them.
constexpr std::size_t kLoadsAhead = 12;

constexpr unsigned bit(mmu::Unit unit) { return 1U << static_cast<unsigned>(unit); }

/// The first row of a part.
std::uint32_t part_of(std::int64_t index, std::int64_t rows, std::int64_t parts) {
  return static_cast<std::uint32_t>(index % parts * (rows / parts));
}

}  // namespace

// Loads come before the stages that are pending, and run while those compute.
void ProgramBuilder::add(Stage stage) {
  if (stage.fills) has_data_ = false;
  const auto has_loads = [](const TileStep& tile) { return !tile.loads.empty(); };
  const bool loads = std::ranges::any_of(stage.tiles, has_loads);
  if (loads) ++loads_;
  PlacedStage placed = {.stage = std::move(stage), .loads = loads_};
  if (loads && placed.stage.alone) {
    emit_between_loads(placed);
  } else if (loads) {
    for (const auto& tile : placed.stage.tiles) emit_loads(tile);
    flush([&](const PlacedStage& other) { return other.loads <= loads_ - parts_.buffer + 1; });
  }
  placed.fill = has_data_ ? fills_ : 0;
  pending_.push_back(std::move(placed));
}

void ProgramBuilder::emit_between_loads(PlacedStage& placed) {
  const auto& tiles = placed.stage.tiles;
  std::size_t ahead = 0;
  for (const auto& tile : tiles) {
    emit_loads(tile);
    ahead += tile.loads.size();
    placed.fill = fills_;
    for (; ahead > kLoadsAhead && &tiles[placed.emitted] != &tile; emit_tile(placed))
      ahead -= tiles[placed.emitted].loads.size();
  }
}

void ProgramBuilder::emit_loads(const TileStep& tile) {
  for (const auto& unplaced : tile.loads) {
    auto load = unplaced;
    mmu::Tokens tokens;
    if (!std::exchange(has_data_, true) && ++fills_ > parts_.buffer) {
      // Who frees the part comes first.
      flush([&](const PlacedStage& placed) { return placed.fill <= fills_ - parts_.buffer; });
      tokens.wait = bit(mmu::Unit::Compute);
    }
    load.buffer_row += part_of(fills_ - 1, machine_.buffer_rows, parts_.buffer);
    if (&unplaced == &tile.loads.back()) tokens.signal = bit(mmu::Unit::Compute);
    program_.push_back(encode(load, tokens));
  }
}

void ProgramBuilder::flush(const std::function<bool(const PlacedStage&)>& is_due) {
  while (!pending_.empty() && is_due(pending_.front())) {
    emit(pending_.front());
    pending_.pop_front();
  }
}

void ProgramBuilder::emit(PlacedStage& placed) {
  while (placed.emitted < placed.stage.tiles.size()) emit_tile(placed);
  if (placed.stage.completes) {
    ++groups_;
    group_begun_ = false;
  }
}

void ProgramBuilder::emit_tile(PlacedStage& placed) {
  const auto& stage = placed.stage;
  const auto i = placed.emitted++;
  const auto& tile = stage.tiles[i];
  set(encode(stage.stream), stream_);
  set(encode(stage.taps), taps_);
  const auto buffer =
      placed.fill > 0 ? part_of(placed.fill - 1, machine_.buffer_rows, parts_.buffer) : 0;
  const auto accumulator = part_of(groups_, machine_.accumulator_rows, parts_.accumulators);
  mmu::Tokens tokens;
  if (!tile.loads.empty()) tokens.wait |= bit(mmu::Unit::Load);
  const bool takes_part = !std::exchange(group_begun_, true);
  if (takes_part && groups_ >= parts_.accumulators) tokens.wait |= bit(mmu::Unit::Store);
  const bool last = i + 1 == stage.tiles.size();
  if (last && stage.frees && placed.fill > 0) tokens.signal |= bit(mmu::Unit::Load);
  if (tile.result) tokens.signal |= bit(mmu::Unit::Store);
  auto matmul = tile.matmul;
  matmul.address += static_cast<std::int32_t>(buffer);
  matmul.accumulator += accumulator;
  if (tile.weights) program_.push_back(encode(*tile.weights));
  program_.push_back(encode(matmul, tokens));
  if (!tile.result) return;
  auto result = *tile.result;
  result.store.accumulator += accumulator;
  emit_result(result, last ? bit(mmu::Unit::Compute) : 0);
}

void ProgramBuilder::emit_result(const ResultStep& result, unsigned signal) {
  set(encode(result.output), output_);
  if (result.registers) set(encode(*result.registers), registers_);
  program_.push_back(encode(result.store, {.wait = bit(mmu::Unit::Compute), .signal = signal}));
}

void ProgramBuilder::set(mmu::Instruction instruction, mmu::Instruction& current) {
  if (instruction == current) return;
  current = instruction;
  program_.push_back(instruction);
}

mmu::Program ProgramBuilder::finish() {
  flush([](const PlacedStage&) { return true; });
  program_.push_back(mmu::encode_halt());
  return std::move(program_);
}

}  // namespace triptych::systolic
