// The DRAM behind an MMU: one deterministic model that the RTL's harness and the twin both call, in
// the same cycles. Bandwidth, latency, bursts and open rows, without refresh.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// Timing only: the bytes live with whoever owns the memory. Times are in units of 1/256 cycle.
///
/// A request covers whole bursts. A burst that the same port touched last costs nothing (its data
/// are there already). Any other one occupies the bus for burst_bytes / bytes_per_cycle. A burst
/// that finds another row (or none) open in its bank waits row_miss cycles from the grant, or from
/// the end of the bank's last burst: other banks' bursts have the bus meanwhile. Data of a read
/// arrives `latency` cycles after the bus is done with its own bursts, at least one cycle after the
/// grant and after the port's previous answer. The store unit has two ports, one that writes and
/// one that reads. Row i lies in bank i mod `banks`.
class Dram {
 public:
  explicit Dram(const DramConfig& config);

  void reset();
  /// True when a request may be granted in this cycle: not while the bus has more than 32 cycles of
  /// work left, requests granted in this very cycle included.
  bool ready(std::uint64_t cycle) const;
  /// The first cycle from `cycle` on when ready() holds if nothing is granted before.
  std::uint64_t next_ready(std::uint64_t cycle) const;
  struct Answer {
    std::uint64_t arrival = 0;  ///< of a read's data: a cycle
    std::uint64_t bursts = 0, row_misses = 0;
  };
  /// Grants a request. Cycles never decrease.
  Answer grant(std::uint64_t cycle, Unit unit, std::uint64_t address, std::uint32_t bytes,
               bool write);
  /// The same. Returns when the data of a read arrives.
  std::uint64_t request(std::uint64_t cycle, Unit unit, std::uint64_t address, std::uint32_t bytes,
                        bool write) {
    return grant(cycle, unit, address, bytes, write).arrival;
  }

  std::uint64_t bursts() const { return bursts_; }
  std::uint64_t row_misses() const { return row_misses_; }

 private:
  static constexpr std::uint64_t kTicks = 256;
  static constexpr std::uint64_t kBacklogCycles = 32;

  struct Bank {
    std::uint64_t row;
    std::uint64_t free;  ///< ticks: its last burst is over
  };

  /// True when the burst's row was not open.
  bool transfer(std::uint64_t cycle, std::uint64_t burst);

  DramConfig config_;
  int burst_shift_ = 0;
  int row_shift_ = 0;
  std::uint64_t burst_ticks_ = 0;
  std::uint64_t bus_free_ = 0;  ///< ticks
  std::vector<Bank> banks_;
  std::size_t last_bank_ = 0;  ///< of the last transfer
  static constexpr std::size_t kOperandPort = kUnits, kPorts = kUnits + 1;
  std::array<std::uint64_t, kPorts> last_burst_{};
  std::array<std::uint64_t, kPorts> last_arrival_{};
  std::uint64_t bursts_ = 0;
  std::uint64_t row_misses_ = 0;
};

// Here, because the twin asks for every request of millions.

inline std::uint64_t Dram::next_ready(std::uint64_t cycle) const {
  const std::uint64_t free = (bus_free_ + kTicks - 1) / kTicks;
  return std::max(cycle, free > kBacklogCycles ? free - kBacklogCycles : 0);
}

inline Dram::Answer Dram::grant(std::uint64_t cycle, Unit unit, std::uint64_t address,
                                std::uint32_t bytes, bool write) {
  const std::size_t port =
      unit == Unit::Store && !write ? kOperandPort : static_cast<std::size_t>(unit);
  const std::uint64_t end = (address + bytes - 1) >> burst_shift_;
  Answer answer;
  for (std::uint64_t burst = address >> burst_shift_; burst <= end; ++burst) {
    if (burst == last_burst_[port]) continue;
    last_burst_[port] = burst;
    if (answer.bursts == 0) bus_free_ = std::max(bus_free_, cycle * kTicks);
    ++answer.bursts;
    answer.row_misses += transfer(cycle, burst) ? 1 : 0;
  }
  bursts_ += answer.bursts;
  row_misses_ += answer.row_misses;
  answer.arrival = cycle + 1;
  if (answer.bursts > 0)
    answer.arrival = std::max(answer.arrival, (bus_free_ + kTicks - 1) / kTicks + config_.latency);
  if (!write)
    last_arrival_[port] = answer.arrival = std::max(answer.arrival, last_arrival_[port] + 1);
  return answer;
}

inline bool Dram::transfer(std::uint64_t cycle, std::uint64_t burst) {
  const std::uint64_t row = burst << burst_shift_ >> row_shift_;
  if (banks_[last_bank_].row != row) last_bank_ = row % config_.banks;
  Bank& bank = banks_[last_bank_];
  const bool misses = bank.row != row;
  if (misses) {
    bank.row = row;
    const std::uint64_t opened = std::max(bank.free, cycle * kTicks) + config_.row_miss * kTicks;
    bus_free_ = std::max(bus_free_, opened);
  }
  bus_free_ += burst_ticks_;
  bank.free = bus_free_;
  return misses;
}

}  // namespace triptych::mmu
