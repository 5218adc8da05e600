// When a store with a second operand requests its rows and presents its positions ("Store" in
// docs/reference/mmu.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "systolic/twin/requests.h"

namespace triptych::mmu {

/// A row of the operand is requested and arrives. It joins the last accumulator row of its
/// position, and goes with it through the stages of the output unit to the port. All stages move on
/// in one step. There is none while a position would leave them and the port is busy. So time is
/// counted in steps: the cycle of step n is n plus the cycles lost before it.
class OperandPipe {
 public:
  OperandPipe() = default;
  OperandPipe(std::uint64_t positions, std::uint64_t rows_per_position, Cycle stages, Cycle pop)
      : positions_(positions),
        rows_(rows_per_position),
        stages_(stages),
        next_read_(pop + 1),
        last_step_(pop) {}

  bool is_idle() const { return written_ == positions_; }
  /// The cycles from which the next row is requested, and the next position is at the port.
  /// kUnknown while that depends on grants to come.
  Cycle next_read() const { return next_read_; }
  Cycle next_write() const { return next_write_; }

  void read_granted(Cycle cycle, Cycle arrival) {
    arrivals_[asked_++ % kDepth] = arrival;
    read_granted_ = cycle;
    next_read_ = kUnknown;
    follow();
  }
  void write_granted(Cycle cycle) {
    ++written_;
    write_granted_ = cycle;
    next_write_ = kUnknown;
    follow();
  }

 private:
  static constexpr std::uint64_t kDepth = 64;  ///< rows asked for and not taken

  void follow() {
    while (show() || take()) {
    }
    if (asked_ == positions_ || next_read_ != kUnknown) return;
    if (asked_ < kDepth)
      next_read_ = read_granted_ + 1;
    else if (asked_ < taken_ + kDepth)
      next_read_ = std::max(read_granted_, taken_in_[asked_ % kDepth]) + 1;
  }
  /// At the port, which the position before has left.
  bool show() {
    if (next_write_ != kUnknown || taken_ == written_) return false;
    const Cycle step = steps_[written_ % kDepth] + stages_;
    const Cycle cycle = std::max(step + lost_, write_granted_);
    if (cycle > step + lost_) resumed_ = step;
    lost_ = cycle - step;
    next_write_ = cycle + 1;
    return true;
  }
  /// The first one after this cycle, which may be before all lost ones.
  Cycle step_after(Cycle arrival) const { return arrival + 1 > lost_ ? arrival + 1 - lost_ : 0; }
  /// Along with the position's last accumulator row.
  bool take() {
    if (taken_ == asked_) return false;
    const std::size_t row = taken_ % kDepth;
    const Cycle step = std::max({last_step_ + rows_, step_after(arrivals_[row]), resumed_});
    const std::uint64_t next = written_ + (next_write_ != kUnknown ? 1 : 0);
    if (next < taken_ && steps_[next % kDepth] + stages_ <= step) return false;
    steps_[row] = last_step_ = step;
    taken_in_[row] = step + lost_;
    ++taken_;
    return true;
  }

  std::uint64_t positions_ = 0, rows_ = 1;
  Cycle stages_ = 1;
  std::uint64_t asked_ = 0, taken_ = 0, written_ = 0;
  Cycle read_granted_ = 0, write_granted_ = 0;  ///< the last ones
  Cycle next_read_ = kUnknown, next_write_ = kUnknown;
  Cycle last_step_ = 0;  ///< the cycle of a position, or the cycle of the pop
  Cycle lost_ = 0;       ///< cycles without a step up to the position that was shown last
  Cycle resumed_ = 0;    ///< first step after some were lost
  std::array<Cycle, kDepth> arrivals_{}, steps_{}, taken_in_{};
};

}  // namespace triptych::mmu
