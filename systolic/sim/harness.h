// Work of the harness around the RTL in each cycle, for machines of any width: DRAM
// requests on their way, the times of instructions, the meaning of status and counters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "systolic/isa/simulator.h"

namespace triptych::mmu {

/// The port that reads a performance counter by number (systolic/rtl/mmu_counters.sv).
inline constexpr int kCounters = 31;
Counters counters_from(const std::array<std::uint64_t, kCounters>& values);

enum class Status : std::uint8_t { Running, Halted, Illegal, Token, Timeout };

/// Reads of one unit that the DRAM has granted, in order, at most 128.
class Answers {
 public:
  struct Answer {
    std::uint64_t arrival = 0;
    std::uint32_t address = 0;
    std::uint32_t bytes = 0;
  };

  void clear() { first_ = last_ = 0; }
  /// False with as many on their way as are allowed.
  bool has_room() const { return last_ - first_ < kSize; }
  void push(const Answer& answer) { answers_[last_++ % kSize] = answer; }
  /// The read with data that arrive in this cycle, or nullptr. Consumes it.
  const Answer* take(std::uint64_t cycle) {
    if (first_ == last_ || answers_[first_ % kSize].arrival != cycle) return nullptr;
    return &answers_[first_++ % kSize];
  }

 private:
  static constexpr std::size_t kSize = 128;
  std::array<Answer, kSize> answers_;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

/// Start and end of each instruction, from two bits per unit and cycle: units take and end their
/// instructions in order.
class TimesRecorder {
 public:
  explicit TimesRecorder(const Program& program);
  /// Throws HardwareFault for a unit that takes or ends an instruction which it does not have.
  void started(std::uint64_t cycle, unsigned units) {
    if (units != 0) record(cycle, units, true);
  }
  void ended(std::uint64_t cycle, unsigned units) {
    if (units != 0) record(cycle, units, false);
  }
  void halted(std::uint64_t cycle) { times_.back() = {cycle, cycle}; }
  std::vector<InstructionTimes> take() { return std::move(times_); }

  /// A line for each unit that has not ended its first `accepted` instructions: which one it waits
  /// with or works on, and which token it lacks.
  std::string waiting(std::size_t accepted) const;

 private:
  struct Progress {
    std::vector<std::size_t> instructions;  ///< numbers in the program
    std::size_t started = 0, ended = 0;     ///< of them
  };

  void record(std::uint64_t cycle, unsigned units, bool start);
  std::string waiting(std::size_t unit, const Instruction& next) const;
  /// Instructions of `giver` that have given tokens to `taker`, in order. Number of consumed ones.
  std::vector<std::size_t> given(std::size_t giver, std::size_t taker) const;
  std::size_t taken(std::size_t giver, std::size_t taker) const;

  const Program& program_;
  std::vector<InstructionTimes> times_;
  std::array<Progress, kUnits> units_;
};

/// Throws with the reason for the stop of the machine, or, while it runs, that it does not stop:
/// std::runtime_error for more tokens than a counter holds, otherwise HardwareFault, since the
/// program is legal.
[[noreturn]] void throw_stopped(Status status, std::uint64_t cycle, const Program& program,
                                std::size_t accepted, const TimesRecorder& recorder);

}  // namespace triptych::mmu
