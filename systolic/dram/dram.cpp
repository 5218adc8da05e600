// SPDX-License-Identifier: Apache-2.0
#include "systolic/dram/dram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace triptych::mmu {
namespace {

constexpr std::uint64_t kTicks = 256;
constexpr std::uint64_t kBacklogCycles = 32;
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
  last_burst_.fill(kNone);
  last_arrival_.fill(0);
  bursts_ = 0;
  row_misses_ = 0;
}

bool Dram::ready(std::uint64_t cycle) const {
  return bus_free_ <= (cycle + kBacklogCycles) * kTicks;
}

std::uint64_t Dram::next_ready(std::uint64_t cycle) const {
  const std::uint64_t free = (bus_free_ + kTicks - 1) / kTicks;
  return std::max(cycle, free > kBacklogCycles ? free - kBacklogCycles : 0);
}

std::uint64_t Dram::request(std::uint64_t cycle, Unit unit, std::uint64_t address,
                            std::uint32_t bytes, bool write) {
  const auto u = static_cast<std::size_t>(unit);
  const std::uint64_t end = (address + bytes - 1) >> burst_shift_;
  bool moved = false;
  for (std::uint64_t burst = address >> burst_shift_; burst <= end; ++burst) {
    if (burst == last_burst_[u]) continue;
    last_burst_[u] = burst;
    if (!moved) bus_free_ = std::max(bus_free_, cycle * kTicks);
    moved = true;
    transfer(cycle, burst);
  }
  std::uint64_t arrival = cycle + 1;
  if (moved) arrival = std::max(arrival, (bus_free_ + kTicks - 1) / kTicks + config_.latency);
  if (write) return arrival;
  return last_arrival_[u] = std::max(arrival, last_arrival_[u] + 1);
}

void Dram::transfer(std::uint64_t cycle, std::uint64_t burst) {
  const std::uint64_t row = burst << burst_shift_ >> row_shift_;
  Bank& bank = banks_[row % config_.banks];
  if (bank.row != row) {
    bank.row = row;
    ++row_misses_;
    const std::uint64_t opened = std::max(bank.free, cycle * kTicks) + config_.row_miss * kTicks;
    bus_free_ = std::max(bus_free_, opened);
  }
  bus_free_ += burst_ticks_;
  bank.free = bus_free_;
  ++bursts_;
}

}  // namespace triptych::mmu
