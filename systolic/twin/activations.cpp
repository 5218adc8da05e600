// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/activations.h"

#include <algorithm>

namespace triptych::mmu {
namespace {

/// From one position's values to the next one's: no power of two, or they would share cache lines.
constexpr std::size_t kValueStride = kMostRows + kStrip;
constexpr std::size_t kPlaceVectors = kBlock * kValueStride / kStrip;
constexpr std::size_t kPlaces = 32;  ///< about a megabyte

}  // namespace

Activations::Activations(const MachineConfig& machine)
    : machine_(machine), values_(kPlaces * kPlaceVectors) {}

void Activations::forget() {
  kept_.clear();
  next_kept_ = 0;
  used_ = 1;
}

float* Activations::place(std::size_t index) { return values_[index * kPlaceVectors].lanes; }

bool Activations::find_kept() {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const std::size_t candidate = (next_kept_ + i) % kept_.size();
    if (!std::ranges::equal(kept_[candidate].steps, steps_, same_activations)) continue;
    place_ = kept_[candidate].place;
    next_kept_ = candidate + 1;
    return true;
  }
  return false;
}

bool Activations::keep() {
  const std::size_t blocks = (count() + kBlock - 1) / kBlock;
  if (used_ + blocks > kPlaces) return false;
  kept_.push_back({{steps_.begin(), steps_.end()}, used_});
  place_ = used_;
  used_ += blocks;
  return true;
}

template <class Element>
void Activations::begin(Steps steps, const SetStream& stream, const SetTaps& taps,
                        const BufferView<Element>& buffer) {
  steps_ = steps;
  if (find_kept()) return;
  stream_ = &stream;
  begin_walk(taps);
  if (!keep()) {
    place_ = 0;
    return;
  }
  for (std::size_t i = place_; i < used_; ++i) gather_next(buffer, place(i));
}

/// Collects the common part of all blocks: taps or, for a transposed stream, positions.
void Activations::begin_walk(const SetTaps& taps) {
  slot_ = 0;
  if (transpose()) {
    tap_walk_.emplace(taps, steps_.front().start, machine_);
    positions_.clear();
    for (const auto& step : steps_) {
      PositionWalk walk(*stream_, step.start);
      for (std::uint32_t i = 0; i < step.rows; ++i, walk.next())
        positions_.push_back(walk.position());
    }
    return;
  }
  position_walk_.emplace(*stream_, steps_.front().start);
  runs_.clear();
  std::uint32_t value = 0;
  for (const auto& step : steps_) {
    TapWalk walk(taps, step.start, machine_);
    append_runs(walk, value, 0, step.rows, machine_.rows, runs_);
    value += step.rows;
  }
}

template <class Element>
void Activations::gather_next(const BufferView<Element>& buffer, float* target) {
  const std::uint32_t slots = std::min(kBlock, count() - slot_);
  if (transpose()) {
    gather_values(buffer, slots, target);
  } else {
    positions_.clear();
    for (std::uint32_t i = 0; i < slots; ++i, position_walk_->next())
      positions_.push_back(position_walk_->position());
    gather<Element>(buffer, *stream_, positions_, runs_, kValueStride, target);
  }
  slot_ += slots;
}

/// The next values of a transposed stream, which steps read in lanes of their own.
template <class Element>
void Activations::gather_values(const BufferView<Element>& buffer, std::uint32_t slots,
                                float* target) {
  const std::span<const Position> all = positions_;
  for (std::size_t step = 0, first = 0, end = 0; step < steps_.size(); first = end) {
    const std::uint32_t lane = steps_[step].lane;
    for (; step < steps_.size() && steps_[step].lane == lane; ++step) end += steps_[step].rows;
    TapWalk walk = *tap_walk_;
    runs_.clear();
    append_runs(walk, 0, lane + slot_, slots, buffer.lanes, runs_);
    gather(buffer, *stream_, all.subspan(first, end - first), runs_, kBlock,
           target + first * kBlock);
  }
  for (std::uint32_t i = 0; i < slots; ++i) tap_walk_->next();
}

template <class Element>
ActivationBlock Activations::block(std::uint32_t first, const BufferView<Element>& buffer) {
  if (place_ == 0) gather_next(buffer, place(0));
  const float* x = place(place_ == 0 ? 0 : place_ + first / kBlock);
  const std::uint32_t slots = std::min(kBlock, count() - first);
  if (transpose()) return {x, 1, kBlock, slots};
  return {x, kValueStride, 1, slots};
}

template void Activations::begin(Steps, const SetStream&, const SetTaps&,
                                 const BufferView<std::uint16_t>&);
template void Activations::begin(Steps, const SetStream&, const SetTaps&,
                                 const BufferView<std::int8_t>&);
template ActivationBlock Activations::block(std::uint32_t, const BufferView<std::uint16_t>&);
template ActivationBlock Activations::block(std::uint32_t, const BufferView<std::int8_t>&);

}  // namespace triptych::mmu
