// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/kernel_costs.h"

#include <cstddef>

namespace triptych::cuda::emulation {

SiteCosts& SiteCosts::operator+=(const SiteCosts& other) {
  contention += other.contention;
  l2_sectors += other.l2_sectors;
  memory_sectors += other.memory_sectors;
  return *this;
}

std::string_view to_string(Arithmetic kind) {
  constexpr std::string_view names[] = {"f32 add",          "f32 multiply", "f32 multiply-add",
                                        "f32 divide",       "f64 add",      "f64 multiply",
                                        "f64 multiply-add", "f64 divide",   "function"};
  return names[static_cast<std::size_t>(kind)];
}

KernelCosts& KernelCosts::operator+=(const KernelCosts& other) {
  for (const auto& [site, costs] : other.sites) sites[site] += costs;
  for (const auto& [site, counters] : other.branches) {
    auto& sum = branches[site];
    sum.warps += counters.warps;
    sum.divergent += counters.divergent;
  }
  for (const auto& [kind, counters] : other.arithmetic) {
    auto& sum = arithmetic[kind];
    sum.warps += counters.warps;
    sum.lanes += counters.lanes;
  }
  return *this;
}

SiteCosts KernelCosts::total() const {
  SiteCosts sum;
  for (const auto& [site, costs] : sites) sum += costs;
  return sum;
}

double KernelCosts::operations() const {
  double sum = 0;
  for (const auto& [kind, at] : arithmetic) {
    const bool is_two = kind == Arithmetic::MultiplyAdd32 || kind == Arithmetic::MultiplyAdd64;
    sum += static_cast<double>(at.lanes) * (is_two ? 2 : 1);
  }
  return sum;
}

}  // namespace triptych::cuda::emulation
