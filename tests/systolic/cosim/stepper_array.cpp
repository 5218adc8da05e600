// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/stepper_array.h"

#include <bit>

#include "systolic/twin/numerics.h"

namespace triptych::mmu {

StepperArray::StepperArray(const MachineConfig& config)
    : buffer(std::size_t{config.buffer_rows} * config.rows),
      accumulators(std::size_t{config.accumulator_rows} * config.columns),
      config_(config),
      latency_(config.pe_latency),
      product_(config.pe_latency > 1 ? 1 : 0),
      history_(config.rows * (config.pe_latency + 1) + config.columns + 8),
      lane_taps_(config.rows),
      lane_values_(config.rows),
      lane_data_(config.rows),
      activations_(config.rows, std::vector<std::uint16_t>(config.columns)),
      multiplied_(config.rows, std::vector<std::uint16_t>(config.columns)),
      psums_(config.rows, std::vector(config.columns, std::deque<std::uint32_t>(latency_))),
      own_(config.rows, std::vector<std::uint32_t>(config.columns)),
      held_(own_),
      feedback_(config.columns) {
  for (std::uint32_t r = 0; r < config.rows; ++r) row_data_.emplace_back(1 + r * (latency_ - 1));
}

// Consumers come before producers, so that each reads the previous value of the other's register.
void StepperArray::step(const Slot& slot, const SetStream& stream, const SetTaps& taps) {
  history_.push_front(slot);
  history_.pop_back();
  const std::vector<std::uint32_t> asked = read_accumulators();
  write_accumulators();
  multiply();
  feedback_ = asked;
  read_lanes(stream, taps);
}

/// Column c writes position m in cycle s + m + R L + D + 3 + c, and result m of a drain as position
/// R + m.
void StepperArray::write_accumulators() {
  for (std::uint32_t c = 0; c < config_.columns; ++c) {
    const std::uint32_t ago = config_.rows * latency_ + product_ + 3 + c;
    const Slot& drained = slot(ago + config_.rows);
    if (!slot(ago).stays()) write_accumulator(slot(ago), c);
    if (drained.stays() && drained.matmul.drain) write_accumulator(drained, c);
  }
}

void StepperArray::write_accumulator(const Slot& done, std::uint32_t column) {
  if (!done.valid || done.index >= done.matmul.count || column >= done.tile->columns) return;
  const std::uint32_t row = done.matmul.accumulator + done.index;
  accumulators[std::size_t{row} * config_.columns + column] =
      psums_[config_.rows - 1][column].back();
}

/// PE (r, c) has the activation of slot p in cycle s + p + 3 + r L + c, its sum D cycles later.
void StepperArray::multiply() {
  for (std::uint32_t r = config_.rows; r-- > 0;)
    for (std::uint32_t c = config_.columns; c-- > 0;) {
      const std::uint16_t activation = c == 0 ? row_data_[r].back() : activations_[r][c - 1];
      const Slot& now = slot(3 + product_ + r * latency_ + c);
      std::uint32_t psum = 0;
      if (r > 0) psum = psums_[r - 1][c].back();
      if (r == 0 && now.valid && now.matmul.accumulate) psum = feedback_[c];
      if (config_.has_output_stationary()) {
        // Row r's sum joins the path in the drain slot that is r slots after the first one.
        const Slot& drained = slot(3 + config_.rows + r + c);
        const bool leaves = drained.stays() && drained.matmul.drain && drained.index == r;
        psum = leaves ? held_[r][c] : psum;
      }
      if (now.stays())
        multiply_own(now, r, c, activation);
      else if (now.valid && now.tile->enabled(r, c))
        psum = chain(psum, product_ > 0 ? multiplied_[r][c] : activation, now.tile->weight(r, c));
      multiplied_[r][c] = activations_[r][c] = activation;
      psums_[r][c].pop_back();
      psums_[r][c].push_front(psum);
    }
  // Row r takes its activation from the transposer in cycle s + p + 2 + r.
  for (std::uint32_t r = 0; r < config_.rows; ++r) {
    const Slot& now = slot(2 + r);
    row_data_[r].pop_back();
    row_data_[r].push_front(now.valid ? lane_data_[now.matmul.transpose ? now.lane : r] : 0);
  }
}

/// A slot of an output-stationary matmul is one link of every PE's own chain.
void StepperArray::multiply_own(const Slot& now, std::uint32_t r, std::uint32_t c,
                                std::uint16_t activation) {
  std::uint32_t& own = own_[r][c];
  if (now.index == 0 && !now.matmul.accumulate) own = 0;
  if (now.tile->enabled(now.index, c)) own = chain(own, activation, now.tile->weight(now.index, c));
  if (now.index + 1 == config_.rows && now.matmul.drain) held_[r][c] = own;
}

std::uint32_t StepperArray::chain(std::uint32_t psum, std::uint16_t activation,
                                  std::uint16_t weight) const {
  if (config_.pe == PeKind::Bf16)
    return std::bit_cast<std::uint32_t>(
        soft_fma(from_bf16(activation), from_bf16(weight), std::bit_cast<float>(psum)));
  const int product = static_cast<std::int8_t>(activation) * static_cast<std::int8_t>(weight);
  return psum + static_cast<std::uint32_t>(product);
}

/// Column c asks its accumulator bank for position m in cycle s + m + D + 2 + c.
std::vector<std::uint32_t> StepperArray::read_accumulators() const {
  std::vector<std::uint32_t> values = feedback_;
  for (std::uint32_t c = 0; c < config_.columns; ++c) {
    const Slot& now = slot(2 + product_ + c);
    if (!now.valid || now.index >= now.matmul.count) continue;
    const std::uint32_t row = now.matmul.accumulator + now.index;
    values[c] = accumulators[std::size_t{row} * config_.columns + c];
  }
  return values;
}

namespace {

LaneTap first_tap(const Matmul& matmul) {
  return {static_cast<std::int16_t>(matmul.dy), static_cast<std::int16_t>(matmul.dx),
          static_cast<std::uint32_t>(matmul.offset), matmul.channel, matmul.kernel_x};
}

}  // namespace

/// A lane reads its bank: forward, lane r for slot p in cycle s + p + 1 + r. Transposed, the lane
/// of value p for position i in cycle s + p + 1 + i.
void StepperArray::read_lanes(const SetStream& stream, const SetTaps& taps) {
  for (std::uint32_t r = config_.rows; r-- > 0;) {
    const Slot& now = slot(1 + r);
    if (!now.valid || now.matmul.transpose) continue;
    if (now.index == 0)
      lane_taps_[r] = r > 0 ? next_tap(lane_taps_[r - 1], taps) : first_tap(now.matmul);
    lane_data_[r] = read(r, now.position, lane_taps_[r], stream);
  }
  const Slot& begun = slot(1);
  if (begun.valid && begun.matmul.transpose && begun.index < begun.used()) begin_value(begun, taps);
  for (std::uint32_t r = 0; r < config_.rows; ++r) {
    LaneValue& value = lane_values_[r];
    if (!value.positions || value.next == config_.rows) continue;
    lane_data_[r] = read(r, value.positions->at(value.next++), value.tap, stream);
  }
}

void StepperArray::begin_value(const Slot& slot, const SetTaps& taps) {
  const std::uint32_t before = (slot.lane + config_.rows - 1) % config_.rows;
  lane_values_[slot.lane] = {
      slot.index == 0 ? first_tap(slot.matmul) : next_tap(lane_values_[before].tap, taps),
      slot.positions};
}

std::uint16_t StepperArray::read(std::uint32_t lane, const StepperPosition& position,
                                 const LaneTap& tap, const SetStream& stream) const {
  const int y = position.y + tap.dy;
  const int x = position.x + tap.dx;
  const bool inside = y >= 0 && y < static_cast<int>(stream.in_height) && x >= 0 &&
                      x < static_cast<int>(stream.in_width);
  const std::size_t row = (position.address + tap.offset) % config_.buffer_rows;
  return inside ? buffer[row * config_.rows + lane] : std::uint16_t{0};
}

LaneTap StepperArray::next_tap(LaneTap tap, const SetTaps& taps) const {
  const std::uint32_t group = config_.group(taps.log2_group);
  if (tap.channel + 1 < taps.channels) {
    if (tap.channel % group == group - 1) tap.offset += 1;
    tap.channel += 1;
  } else if (tap.kernel_x + 1 < taps.kernel_width) {
    tap.channel = 0;
    tap.kernel_x += 1;
    tap.dx = static_cast<std::int16_t>(tap.dx + taps.step_dx);
    tap.offset += static_cast<std::uint32_t>(taps.jump_x);
  } else {
    tap.channel = 0;
    tap.kernel_x = 0;
    tap.dx = static_cast<std::int16_t>(taps.restart_dx);
    tap.dy = static_cast<std::int16_t>(tap.dy + taps.step_dy);
    tap.offset += static_cast<std::uint32_t>(taps.jump_y);
  }
  return tap;
}

}  // namespace triptych::mmu
