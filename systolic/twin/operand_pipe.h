// When a store with a second operand asks for its rows and presents its positions; "Store" in
// docs/reference/mmu.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "systolic/twin/requests.h"

namespace triptych::mmu {

/// A row of the operand is asked for, arrives, is taken along with the last accumulator row of its
/// position, and goes with it through the output unit to the port.
class OperandPipe {
 public:
  OperandPipe() = default;
  OperandPipe(std::uint64_t positions, std::uint64_t rows_per_position, Cycle pop)
      : positions_(positions), rows_(rows_per_position), next_read_(pop + 1), output_(pop + 1) {}

  bool is_idle() const { return written_ == positions_; }
  /// From when on the next row is asked for, the next position stands at the port; kUnknown while
  /// that depends on grants to come.
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
    while (take() || pass()) {
    }
    if (asked_ == positions_ || next_read_ != kUnknown) return;
    if (asked_ < kDepth)
      next_read_ = read_granted_ + 1;
    else if (asked_ < taken_ + kDepth)
      next_read_ = std::max(read_granted_, taken_in_[asked_ % kDepth]) + 1;
  }
  bool take() {
    if (taken_ == asked_ || output_ == kUnknown) return false;
    const std::size_t row = taken_++ % kDepth;
    taken_in_[row] = std::max(output_ + rows_ - 1, arrivals_[row] + 1);
    output_ = kUnknown;
    return true;
  }
  /// Through the output unit, which waits for the grant of the position before.
  bool pass() {
    if (output_ != kUnknown || taken_ != written_ + 1) return false;
    output_ = std::max(taken_in_[written_ % kDepth] + 1, write_granted_);
    next_write_ = output_ + 1;
    return true;
  }

  std::uint64_t positions_ = 0, rows_ = 1;
  std::uint64_t asked_ = 0, taken_ = 0, written_ = 0;
  Cycle read_granted_ = 0, write_granted_ = 0;  ///< the last ones
  Cycle next_read_ = kUnknown, next_write_ = kUnknown;
  /// When the last position taken is in the output unit (before the first: the cycle after the
  /// pop).
  Cycle output_ = kUnknown;
  std::array<Cycle, kDepth> arrivals_{}, taken_in_{};
};

}  // namespace triptych::mmu
