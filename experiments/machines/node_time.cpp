// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/node_time.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace triptych::machines {
namespace {

/// The better of copy and triad. 0: neither is known.
double rate_of(const MemoryLevel& level) {
  return std::max(level.copy ? level.copy->value : 0, level.triad ? level.triad->value : 0);
}

/// True when it stores the previous kernel's output for the next by itself. A GPU's shared memory
/// and an array's buffer do not.
bool is_cache(const MemoryLevel& level) { return level.name.starts_with('L'); }

void require_positive(double value, const char* what) {
  if (value > 0) return;
  throw InvalidArgument(fmt::format("{} must be above 0, got {}", what, value));
}

}  // namespace

std::string_view format_of(Contract contract) {
  if (contract == Contract::F32) return "f32";
  return contract == Contract::Int8 ? "int8" : "bf16";
}

Cost cost_of(const Graph& graph, const Node& node) {
  return node.op->cost(graph.specs(node.inputs), graph.specs(node.outputs));
}

double interpolate(const std::vector<Efficiency>& points, double bound_s, double flops_per_byte) {
  // Only size distinguishes nodes without computation from those with little.
  constexpr double least_intensity = 1e-3, nearest = 1e-3;
  const auto octaves = [](double a, double b) { return std::log2(a / b); };
  double sum = 0, weights = 0;
  for (const auto& point : points) {
    const double size = octaves(bound_s, point.bound_s);
    const double intensity = octaves(std::max(flops_per_byte, least_intensity),
                                     std::max(point.flops_per_byte, least_intensity));
    const double weight = 1 / (size * size + intensity * intensity + nearest);
    sum += weight * std::log(point.fraction);
    weights += weight;
  }
  return std::exp(sum / weights);
}

NodeTimes::NodeTimes(MachineFigures figures, Assumptions assumptions)
    : figures_(std::move(figures)),
      assumptions_(std::move(assumptions)),
      launch_s_(figures_.launch          ? figures_.launch->value
                : figures_.kind == "gpu" ? assumptions_.launch_s
                                         : 0) {
  require_positive(assumptions_.product_fraction, "the fraction of the roofline for products");
  require_positive(assumptions_.other_fraction, "the fraction of the roofline");
  const auto peak = figures_.peaks.find(assumptions_.format);
  if (peak == figures_.peaks.end()) {
    std::vector<std::string> names;
    for (const auto& [name, figure] : figures_.peaks) names.push_back(name);
    throw InvalidArgument(fmt::format("{} states no peak of {}; it has {}", figures_.name,
                                      assumptions_.format, fmt::join(names, ", ")));
  }
  peak_ = peak->second.value / assumptions_.ranks;
}

double NodeTimes::bound(const Cost& cost) const {
  double rate = figures_.memory_bytes_per_s();
  for (const auto& level : figures_.levels) {
    const bool holds = level.capacity && cost.bytes <= level.capacity->value / assumptions_.ranks;
    if (!is_cache(level) || !holds || rate_of(level) == 0) continue;
    rate = rate_of(level);
    break;
  }
  return std::max(cost.flops / peak_, cost.bytes / (rate / assumptions_.ranks));
}

const EfficiencyTable* NodeTimes::table() const {
  const auto& tables = figures_.efficiencies;
  const int ranks = assumptions_.ranks;
  const int busy = assumptions_.busy > 0 ? assumptions_.busy : ranks;
  const auto found = std::ranges::find_if(
      tables, [&](const auto& table) { return table.ranks == ranks && table.busy == busy; });
  if (found != tables.end()) return &*found;
  return tables.empty() ? nullptr : &tables.front();
}

double NodeTimes::fraction(const Op& op, std::string_view kernel, const Cost& cost) const {
  const double assumed =
      op.multiplicands().empty() ? assumptions_.other_fraction : assumptions_.product_fraction;
  const auto* measured = table();
  if (measured == nullptr || cost.bytes == 0) return assumed;
  const auto at = [&](const std::vector<Efficiency>& points) {
    return interpolate(points, bound(cost), cost.flops / cost.bytes);
  };
  const auto own = measured->classes.find(fmt::format("{}/{}", op.name(), kernel));
  if (own != measured->classes.end()) return at(own->second);
  double sum = 0;
  int count = 0;
  for (const auto& [name, points] : measured->classes) {
    if (!name.starts_with(fmt::format("{}/", op.name()))) continue;
    sum += at(points);
    ++count;
  }
  return count > 0 ? sum / count : assumed;
}

Duration NodeTimes::time(const Op& op, std::string_view kernel, const Cost& cost) const {
  return {launch_s_ + bound(cost) / fraction(op, kernel, cost), TimeKind::Modelled};
}

Duration NodeTimes::time(const Plan& plan, const Step& step) const {
  if (step.entry == nullptr) return {0, TimeKind::Modelled};
  const auto& node = plan.graph.node(step.node);
  return time(*node.op, step.entry->name, cost_of(plan.graph, node));
}

Duration NodeTimes::time(const Plan& plan) const {
  Duration total = {0, TimeKind::Modelled};
  for (const auto& step : plan.steps) total.seconds += time(plan, step).seconds;
  return total;
}

}  // namespace triptych::machines
