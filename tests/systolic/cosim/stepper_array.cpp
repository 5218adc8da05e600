// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/stepper_array.h"

#include <bit>

#include "systolic/twin/numerics.h"

namespace triptych::mmu {

StepperArray::StepperArray(const MachineConfig& config)
    : buffer(std::size_t{config.buffer_rows} * config.rows),
      accumulators(std::size_t{config.accumulator_rows} * config.columns),
      config_(config),
      history_(config.rows + config.columns + 8),
      lane_taps_(config.rows),
      lane_data_(config.rows),
      row_data_(config.rows),
      activations_(config.rows, std::vector<std::uint16_t>(config.columns)),
      psums_(config.rows, std::vector<std::uint32_t>(config.columns)),
      feedback_(config.columns) {}

// Consumers come before producers, so that each reads what the other's register showed.
void StepperArray::step(const Slot& slot, const SetStream& stream, const SetTaps& taps) {
  history_.push_front(slot);
  history_.pop_back();
  const std::vector<std::uint32_t> asked = read_accumulators();
  write_accumulators();
  multiply();
  feedback_ = asked;
  read_lanes(stream, taps);
}

/// Column c writes position m in cycle s + m + R + 3 + c.
void StepperArray::write_accumulators() {
  for (std::uint32_t c = 0; c < config_.columns; ++c) {
    const Slot& done = slot(config_.rows + 3 + c);
    if (!done.valid || done.index >= done.matmul.count || c >= done.tile->columns) continue;
    const std::uint32_t row = done.matmul.accumulator + done.index;
    accumulators[std::size_t{row} * config_.columns + c] = psums_[config_.rows - 1][c];
  }
}

/// PE (r, c) computes slot p in cycle s + p + 3 + r + c.
void StepperArray::multiply() {
  for (std::uint32_t r = config_.rows; r-- > 0;)
    for (std::uint32_t c = config_.columns; c-- > 0;) {
      const Slot& now = slot(3 + r + c);
      if (!now.valid) continue;
      const std::uint16_t activation = c == 0 ? row_data_[r] : activations_[r][c - 1];
      std::uint32_t psum = r == 0 ? (now.matmul.accumulate ? feedback_[c] : 0) : psums_[r - 1][c];
      if (now.tile->enabled(r, c)) psum = chain(psum, activation, now.tile->weight(r, c));
      activations_[r][c] = activation;
      psums_[r][c] = psum;
    }
  // Row r takes its activation from the transposer in cycle s + p + 2 + r.
  for (std::uint32_t r = 0; r < config_.rows; ++r) {
    const Slot& now = slot(2 + r);
    if (!now.valid) continue;
    row_data_[r] = lane_data_[now.matmul.transpose ? now.index % config_.rows : r];
  }
}

std::uint32_t StepperArray::chain(std::uint32_t psum, std::uint16_t activation,
                                  std::uint16_t weight) const {
  if (config_.pe == PeKind::Bf16)
    return std::bit_cast<std::uint32_t>(
        soft_fma(from_bf16(activation), from_bf16(weight), std::bit_cast<float>(psum)));
  const int product = static_cast<std::int8_t>(activation) * static_cast<std::int8_t>(weight);
  return psum + static_cast<std::uint32_t>(product);
}

/// Column c asks its accumulator bank for position m in cycle s + m + 2 + c.
std::vector<std::uint32_t> StepperArray::read_accumulators() const {
  std::vector<std::uint32_t> values = feedback_;
  for (std::uint32_t c = 0; c < config_.columns; ++c) {
    const Slot& now = slot(2 + c);
    if (!now.valid || now.index >= now.matmul.count) continue;
    const std::uint32_t row = now.matmul.accumulator + now.index;
    values[c] = accumulators[std::size_t{row} * config_.columns + c];
  }
  return values;
}

/// Lane r asks its bank for slot p in cycle s + p + 1 + r.
void StepperArray::read_lanes(const SetStream& stream, const SetTaps& taps) {
  const LaneTap after_last = next_tap(lane_taps_.back(), taps);
  for (std::uint32_t r = config_.rows; r-- > 0;) {
    const Slot& now = slot(1 + r);
    if (!now.valid) continue;
    const Matmul& matmul = now.matmul;
    const bool first = now.index == 0;
    if (first || (matmul.transpose && now.index % config_.rows == 0)) {
      if (r > 0)
        lane_taps_[r] = next_tap(lane_taps_[r - 1], taps);
      else if (first)
        lane_taps_[0] = {static_cast<std::int16_t>(matmul.dy), static_cast<std::int16_t>(matmul.dx),
                         static_cast<std::uint32_t>(matmul.offset), matmul.channel,
                         matmul.kernel_x};
      else
        lane_taps_[0] = after_last;
    }
    const LaneTap& tap = lane_taps_[r];
    const int y = now.y + tap.dy;
    const int x = now.x + tap.dx;
    const bool inside = y >= 0 && y < static_cast<int>(stream.in_height) && x >= 0 &&
                        x < static_cast<int>(stream.in_width);
    const std::size_t row = (now.address + tap.offset) % config_.buffer_rows;
    lane_data_[r] = inside ? buffer[row * config_.rows + r] : std::uint16_t{0};
  }
}

LaneTap StepperArray::next_tap(LaneTap tap, const SetTaps& taps) const {
  const std::uint32_t group = 1U << taps.log2_group;
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
