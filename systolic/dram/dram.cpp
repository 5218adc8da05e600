// SPDX-License-Identifier: Apache-2.0
#include "systolic/dram/dram.h"

#include <bit>
#include <cmath>

namespace triptych::mmu {
namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

}  // namespace

Dram::Dram(const DramConfig& config) : config_(config) {
  if (config.bytes_per_cycle > 0) {
    const double ticks = config.burst_bytes / config.bytes_per_cycle * static_cast<double>(kTicks);
    burst_ticks_ = static_cast<std::uint64_t>(std::llround(ticks));
  }
  burst_shift_ = std::countr_zero(config.burst_bytes);
  row_shift_ = std::countr_zero(config.row_bytes);
  reset();
}

void Dram::reset() {
  bus_free_ = 0;
  banks_.assign(config_.banks, {kNone, 0});
  last_bank_ = 0;
  last_burst_.fill(kNone);
  last_arrival_.fill(0);
  bursts_ = 0;
  row_misses_ = 0;
}

bool Dram::ready(std::uint64_t cycle) const {
  return bus_free_ <= (cycle + kBacklogCycles) * kTicks;
}

}  // namespace triptych::mmu
