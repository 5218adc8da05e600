// The DRAM behind an MMU: one deterministic model that the RTL's harness and the twin both call, in
// the same cycles. Bandwidth, latency, bursts and open rows; no refresh.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "systolic/isa/isa.h"
#include "systolic/isa/machine.h"

namespace triptych::mmu {

/// Timing only: the bytes live with whoever owns the memory. Times are kept in 1/256 cycles.
///
/// A request covers whole bursts. A burst that the same unit touched last costs nothing (its data
/// is there already); any other one occupies the bus for burst_bytes / bytes_per_cycle. A burst
/// whose bank has another row (or none) open waits row_miss cycles from the grant, or from the end
/// of the bank's last burst: other banks' bursts have the bus meanwhile. Data of a read arrives
/// `latency` cycles after the bus is done with its own bursts, at least one cycle after the grant
/// and after the unit's previous answer. Row i lies in bank i mod `banks`.
class Dram {
 public:
  explicit Dram(const DramConfig& config);

  void reset();
  /// May a request be granted in this cycle? Not while the bus has more than 32 cycles of work
  /// left, requests granted in this very cycle included.
  bool ready(std::uint64_t cycle) const;
  /// The first cycle from `cycle` on in which ready() holds if nothing is granted before.
  std::uint64_t next_ready(std::uint64_t cycle) const;
  /// Grants a request; cycles never decrease. Returns when the data of a read arrives.
  std::uint64_t request(std::uint64_t cycle, Unit unit, std::uint64_t address, std::uint32_t bytes,
                        bool write);

  std::uint64_t bursts() const { return bursts_; }
  std::uint64_t row_misses() const { return row_misses_; }

 private:
  struct Bank {
    std::uint64_t row;
    std::uint64_t free;  ///< ticks: its last burst is over
  };

  void transfer(std::uint64_t cycle, std::uint64_t burst);

  DramConfig config_;
  int burst_shift_ = 0;
  int row_shift_ = 0;
  std::uint64_t burst_ticks_ = 0;
  std::uint64_t bus_free_ = 0;  ///< ticks
  std::vector<Bank> banks_;
  std::array<std::uint64_t, kUnits> last_burst_{};
  std::array<std::uint64_t, kUnits> last_arrival_{};
  std::uint64_t bursts_ = 0;
  std::uint64_t row_misses_ = 0;
};

}  // namespace triptych::mmu
