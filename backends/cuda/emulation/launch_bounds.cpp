// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/launch_bounds.h"

#include <algorithm>

namespace triptych::cuda::emulation {
namespace {

constexpr double kBytesPerSector = 32, kWarpLanes = 32;
// CUDA C++ programming guide, "Arithmetic instructions" and "Shared memory".
constexpr double kFunctionLanes = 16;  ///< special functions per clock of a multiprocessor
constexpr double kWavefronts = 1;      ///< of shared memory per clock
constexpr double kConstantPasses = 1;  ///< of the constant cache per clock

AccessCounters total_in(const KernelCounters& counters, MemorySpace space) {
  AccessCounters sum;
  for (const auto access : {MemoryAccess::Load, MemoryAccess::Store, MemoryAccess::Atomic}) {
    sum += counters.total(space, access);
  }
  return sum;
}

/// Instructions of warps.
double issued(const KernelCosts& costs, Arithmetic first, Arithmetic last) {
  double sum = 0;
  for (const auto& [kind, at] : costs.arithmetic) {
    if (kind >= first && kind <= last) sum += static_cast<double>(at.warps);
  }
  return sum;
}

}  // namespace

std::vector<UnitBound> bounds_of(const Gpu& gpu, const KernelCounters& counters,
                                 const KernelCosts& costs) {
  const auto& on = multiprocessor_of(gpu);
  const double blocks = counters.launches == 0 ? 0
                                               : static_cast<double>(counters.blocks) /
                                                     static_cast<double>(counters.launches);
  const double multiprocessors =
      std::max(1.0, std::min(blocks, static_cast<double>(gpu.multiprocessors)));
  const double clocks = 1000.0 * gpu.clock_khz * multiprocessors;
  const auto wavefronts = static_cast<double>(total_in(counters, MemorySpace::Shared).wavefronts);
  const auto passes = static_cast<double>(total_in(counters, MemorySpace::Constant).wavefronts);
  const double f32 = issued(costs, Arithmetic::Add32, Arithmetic::Divide32);
  const double f64 = issued(costs, Arithmetic::Add64, Arithmetic::Divide64);
  const double functions = issued(costs, Arithmetic::Function, Arithmetic::Function);
  const double bytes = kBytesPerSector * static_cast<double>(costs.total().memory_sectors);
  std::vector<UnitBound> bounds = {
      {"memory", bytes, "bytes", bytes / gpu.bytes_per_second()},
      {"shared memory", wavefronts, "wavefronts", wavefronts / kWavefronts / clocks},
      {"constant cache", passes, "passes", passes / kConstantPasses / clocks},
      {"f32 units", f32, "instructions", f32 * kWarpLanes / on.f32_lanes / clocks},
      {"f64 units", f64, "instructions", f64 * kWarpLanes / on.f64_lanes / clocks},
      {"function units", functions, "instructions",
       functions * kWarpLanes / kFunctionLanes / clocks}};
  std::erase_if(bounds, [](const UnitBound& each) { return each.work == 0; });
  std::ranges::stable_sort(bounds, std::ranges::greater(), &UnitBound::seconds);
  return bounds;
}

}  // namespace triptych::cuda::emulation
