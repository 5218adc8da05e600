// SPDX-License-Identifier: Apache-2.0
#include "experiments/compare/ceilings.h"

#include <fmt/core.h>

#include <algorithm>

#include "backends/all_backends.h"
#include "experiments/measure/bandwidth.h"
#include "experiments/measure/calibrate.h"

namespace triptych::compare {
namespace {

using machines::Figure;
using training::DeviceSet;

/// Format that the machine's units multiply under the contract: the CPU's are float32 always, the
/// exact contract's chains run on a GPU's CUDA cores, an array takes bf16 alone.
std::string format_of(const DeviceSet& machine) {
  const auto kind = measure::kind_of(machine.device());
  const bool tensor_cores = kind == "gpu" && machine.config().contract == Contract::Bf16;
  return kind == "array" || tensor_cores ? "bf16" : "f32";
}

std::optional<Ceilings> from_file(const DeviceSet& machine,
                                  const machines::MachineFigures& figures) {
  const auto peak = figures.peaks.find(format_of(machine));
  if (peak == figures.peaks.end() || figures.levels.empty()) return std::nullopt;
  Ceilings ceilings = {
      .peak = peak->second, .levels = {}, .memory = {}, .source = "device file " + figures.name};
  for (const auto& level : figures.levels) {
    const auto& better = !level.copy || (level.triad && level.triad->value > level.copy->value)
                             ? level.triad
                             : level.copy;
    if (better) ceilings.levels.emplace_back(level.name, *better);
  }
  if (ceilings.levels.empty()) return std::nullopt;
  ceilings.memory = ceilings.levels.back().second;
  return ceilings;
}

/// An array's two operations of each PE and cycle; a GPU's clocks and lanes; a CPU's short loop.
std::optional<Figure> peak_of(const DeviceSet& machine) {
  if (const double measured = machine.device().measure_peak(machine.config().contract);
      measured > 0)
    return Figure{measured, TimeKind::Measured, "a loop of multiply-adds, just now"};
  const auto& info = machine.device().info();
  const auto peak = info.facts.peak_flops(format_of(machine));
  if (!peak) return std::nullopt;
  const bool array = info.facts.rows.has_value();
  return Figure{*peak, TimeKind::Modelled,
                array ? "two operations of each element and cycle"
                      : "the driver's clock and number of units"};
}

}  // namespace

std::optional<Ceilings> ceilings_of(const DeviceSet& machine,
                                    std::span<const machines::MachineFigures> figures) {
  if (!find_backend(machine.config().backend).emulates().empty()) return std::nullopt;
  const auto file = std::ranges::find(figures, measure::kind_of(machine.device()),
                                      &machines::MachineFigures::kind);
  if (file != figures.end()) {
    if (auto ceilings = from_file(machine, *file)) return ceilings;
  }
  const auto peak = peak_of(machine);
  if (!peak) return std::nullopt;
  Ceilings ceilings = {.peak = *peak,
                       .levels = {},
                       .memory = {},
                       .source = measure::kind_of(machine.device()) == "array"
                                     ? "machine description"
                                     : "measured now"};
  for (const auto& level : measure::measure_bandwidths(machine.device())) {
    const auto* how =
        level.kind == TimeKind::Measured ? "copy or triad, just now" : "its description";
    ceilings.levels.emplace_back(level.level, Figure{measure::best_of(level), level.kind, how});
  }
  if (ceilings.levels.empty()) return std::nullopt;
  ceilings.memory = ceilings.levels.back().second;
  return ceilings;
}

}  // namespace triptych::compare
