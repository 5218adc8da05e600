// The units of weights and of computation in a run.
// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/stepper_run.h"

#include <algorithm>

namespace triptych::mmu {

void StepperRun::pop_weights() {
  if (queues_[kWeights].empty() || units_[kWeights].busy || !has_tokens(kWeights, 15) ||
      fifo_used_ == config_.weight_tiles)
    return;
  const std::size_t index = pop(kWeights);
  weight_load_ = decode<WeightLoad>(program_[index]);
  start_requests(kWeights, index, weight_load_.rows, cycle_ + 1);
  ++fifo_used_;
  arriving_ = std::make_shared<StepperTile>();
  arriving_->rows = weight_load_.rows;
  arriving_->columns = weight_load_.columns;
  arriving_->stream = weight_load_.stream;
}

void StepperRun::grant_weights() {
  const auto row = static_cast<std::uint32_t>(units_[kWeights].request);
  const std::uint32_t bytes = weight_load_.columns * config_.element_bytes();
  const std::uint32_t address = weight_load_.address + row * weight_load_.pitch;
  const auto data = bytes_at(address, bytes);
  book(kWeights, address, bytes, false, [this, data, tile = arriving_] {
    for (std::uint32_t c = 0; c < tile->columns; ++c)
      tile->weights.push_back(element(data.data(), c));
    if (tile->weights.size() == std::size_t{tile->rows} * tile->columns) fifo_.push_back(tile);
  });
}

void StepperRun::start_loader() {
  if (loader_rows_ > 0) --loader_rows_;
  if (streams_) {
    streams_ = false;
    return take_tile();
  }
  if (loader_rows_ > 0 || fifo_.empty() || !shadow_free_ || fifo_.front()->stream) return;
  shadow_free_ = false;
  shadow_ = fifo_.front();
  at(cycle_ + (config_.pe_latency == 1 ? config_.rows : 1), [this] { shadow_full_ = true; });
  take_tile();
}

void StepperRun::take_tile() {
  fifo_.pop_front();
  loader_rows_ = config_.rows;
  report_.counters.weight_reads += std::uint64_t{config_.rows} * config_.columns;
  at(cycle_ + config_.rows + config_.columns, [this] { --fifo_used_; });
  moved_in_ = cycle_;
}

std::vector<StepperRun::InFlight> StepperRun::in_flight() const {
  std::vector<InFlight> shown;
  for (const InFlight& matmul : matmuls_)
    if (cycle_ < matmul.leaves) shown.push_back(matmul);
  return shown;
}

bool StepperRun::hazard(const Matmul& matmul) const {
  if (matmul.output_stationary) return false;
  if (cycle_ < drained_) return true;
  if (!matmul.accumulate) return false;
  for (const InFlight& other : in_flight()) {
    const std::int64_t b = matmul.accumulator, bj = other.accumulator;
    if (b >= bj + other.count || bj >= b + matmul.count) continue;
    const auto earliest = static_cast<std::int64_t>(other.start + other.drain_slots) + (b - bj) +
                          config_.rows * config_.pe_latency + 2;
    if (static_cast<std::int64_t>(cycle_) < earliest) return true;
  }
  return false;
}

bool StepperRun::may_compute() {
  auto& stalls = report_.counters.stall_cycles;
  const auto because = [&](Stall reason) {
    ++stalls[static_cast<std::size_t>(reason)];
    return false;
  };
  if (queues_[kCompute].empty()) return because(Stall::Drain);
  if (head(kCompute).opcode() != Opcode::Matmul) {
    because(Stall::Drain);
    return has_tokens(kCompute, 15) && in_flight().empty();
  }
  const auto matmul = decode<Matmul>(head(kCompute));
  if (!has_tokens(kCompute, 1U << kLoad | 1U << kWeights)) return because(Stall::Activations);
  if (!has_tokens(kCompute, 1U << kStore)) return because(Stall::Output);
  if (matmul.output_stationary ? !may_stream() : !matmul.keep && !shadow_full_)
    return because(loader_rows_ > 0 ? Stall::Weights : Stall::Dram);
  if (hazard(matmul)) return because(Stall::Accumulator);
  if (in_flight().size() >= 8) return because(Stall::InFlight);
  return true;
}

void StepperRun::step_compute() {
  slot_.valid = false;
  if (slots_left_ == 0 && may_compute()) {
    const std::size_t index = pop(kCompute);
    if (program_[index].opcode() == Opcode::Matmul)
      start_matmul(index);
    else
      set_registers(index);
  }
  if (slots_left_ > 0) issue_slot();
}

void StepperRun::set_registers(std::size_t index) {
  if (program_[index].opcode() == Opcode::SetStream)
    stream_ = decode<SetStream>(program_[index]);
  else
    taps_ = decode<SetTaps>(program_[index]);
  end(kCompute, index, cycle_ + 1);
}

void StepperRun::start_matmul(std::size_t index) {
  const auto matmul = decode<Matmul>(program_[index]);
  const std::uint64_t rows = config_.rows, columns = config_.columns;
  const std::uint64_t fill = rows * config_.pe_latency + (config_.pe_latency > 1 ? 1 : 0);
  const std::uint32_t drain_slots = matmul.output_stationary ? config_.rows : 0;
  slot_.tile = tile_of(matmul);
  const std::uint64_t slots = slots_of(matmul);
  slots_left_ = slots;
  slot_.matmul = matmul;
  if (drain_slots > 0) drained_ = cycle_ + slots + drain_slots;
  slot_.index = 0;
  slot_.lane = matmul.transpose ? next_lane_ : 0;
  next_lane_ = matmul.abut ? (next_lane_ + matmul.count) % config_.rows : 0;
  positions_ = std::make_shared<std::vector<StepperPosition>>();
  slot_.positions = positions_;
  give(kCompute, index, cycle_ + slots + rows, 1U << kLoad | 1U << kWeights);
  const std::uint64_t ends = cycle_ + drain_slots + matmul.count + fill + columns + 2;
  give(kCompute, index, ends, 1U << kStore);
  report_.times[index].end = ends;
  std::erase_if(matmuls_, [&](const InFlight& other) { return cycle_ >= other.leaves; });
  matmuls_.push_back({cycle_, cycle_ + slots + drain_slots + fill + columns + 4, matmul.accumulator,
                      matmul.count, drain_slots});
}

std::shared_ptr<StepperTile> StepperRun::tile_of(const Matmul& matmul) {
  if (matmul.output_stationary) {
    streams_ = true;
    return fifo_.front();
  }
  if (!matmul.keep) swap_weights();
  return active_;
}

std::uint64_t StepperRun::slots_of(const Matmul& matmul) const {
  std::uint64_t slots = matmul.count;
  if (matmul.output_stationary) return config_.rows;
  if (!matmul.transpose || matmul.abut) return slots;
  while ((next_lane_ + slots) % config_.rows != 0) ++slots;
  return std::max<std::uint64_t>(slots, config_.rows);
}

void StepperRun::swap_weights() {
  active_ = shadow_;
  shadow_full_ = false;
  const std::uint64_t rows = config_.rows, chain = rows * config_.pe_latency;
  std::uint64_t until = config_.pe_latency == 3 ? rows : 1;
  if (config_.weight_scheme == WeightScheme::PerColumn) until = chain;
  if (config_.weight_scheme == WeightScheme::Drained) until = chain + config_.columns;
  at(cycle_ + until, [this] { shadow_free_ = true; });
}

void StepperRun::issue_slot() {
  const Matmul& matmul = slot_.matmul;
  if (slot_.index == 0)
    walk_ = {static_cast<std::uint32_t>(matmul.address), matmul.rows_left, matmul.columns_left,
             static_cast<std::int16_t>(matmul.y), static_cast<std::int16_t>(matmul.x)};
  slot_.valid = true;
  slot_.position = {walk_.y, walk_.x, walk_.address};
  positions_->push_back(slot_.position);
  count_slot();
  walk_.next(stream_);
  --slots_left_;
  moved_in_ = cycle_;
  at(cycle_ + 1, [this] {
    ++slot_.index;
    slot_.lane = (slot_.lane + 1) % config_.rows;
  });
}

void StepperRun::count_slot() {
  Counters& counters = report_.counters;
  ++counters.issue_cycles;
  const Matmul& matmul = slot_.matmul;
  const std::uint64_t columns = slot_.tile->columns;
  if (matmul.output_stationary && slot_.index == 0 && matmul.drain)
    counters.accumulator_writes += matmul.count * columns;
  if (slot_.index >= slot_.used()) {
    ++counters.padding_cycles;
    return;
  }
  const std::uint64_t rows = matmul.output_stationary ? matmul.count : slot_.tile->rows;
  counters.macs += rows * columns;
  counters.buffer_reads += rows;
  if (matmul.output_stationary) return;
  counters.accumulator_writes += columns;
  if (matmul.accumulate) counters.accumulator_reads += columns;
}

}  // namespace triptych::mmu
