// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/kernel_costs.h"

#include <fmt/format.h>

#include <filesystem>
#include <tuple>
#include <utility>

#include "core/base/console.h"
#include "core/runtime/counter_fields.h"
#include "experiments/app/kernel_counters.h"
#include "experiments/page/text_table.h"

namespace triptych::app {
namespace {

using kernels::BranchCounters;
using kernels::Gpu;
using kernels::KernelCosts;
using kernels::SiteCosts;

constexpr double kBytesOfSector = 32;
constexpr MemoryAccess kAllAccesses[] = {MemoryAccess::Load, MemoryAccess::Store,
                                         MemoryAccess::Atomic};

std::map<std::pair<std::string, unsigned>, BranchCounters> branches_by_line(
    const KernelCosts& costs) {
  std::map<std::pair<std::string, unsigned>, BranchCounters> lines;
  for (const auto& [site, at] : costs.branches) {
    auto& sum = lines[{site.file, site.line}];
    sum.warps += at.warps;
    sum.divergent += at.divergent;
  }
  return lines;
}

SiteCosts total_of(const KernelCosts& costs, MemorySpace space, MemoryAccess access) {
  SiteCosts sum;
  for (const auto& [site, at] : costs.sites) {
    if (site.space == space && site.access == access) sum += at;
  }
  return sum;
}

/// Adds the fields of these accesses.
void add_site(page::Json& json, const SiteCosts& at, MemorySpace space, MemoryAccess access) {
  if (space == MemorySpace::Global) {
    json["l2_sectors"] = at.l2_sectors;
    json["memory_sectors"] = at.memory_sectors;
  }
  if (access == MemoryAccess::Atomic) json["contention"] = at.contention;
}

page::Json constant_json(const KernelCounters& counters) {
  page::Json json;
  visit_accesses(counters.total(MemorySpace::Constant, MemoryAccess::Load), MemorySpace::Constant,
                 [&](const char* name, auto count) { json[name] = count; });
  return {{"load", std::move(json)}};
}

page::Json arithmetic_json(const KernelCosts& costs) {
  page::Json list = page::Json::array();
  for (const auto& [kind, at] : costs.arithmetic) {
    list.push_back({{"instruction", to_string(kind)}, {"warps", at.warps}, {"lanes", at.lanes}});
  }
  return list;
}

double memory_bytes(const KernelCosts& costs) {
  return kBytesOfSector * static_cast<double>(costs.total().memory_sectors);
}

page::Json bounds_json(const Gpu& gpu, const KernelCounters& counters, const KernelCosts& costs) {
  page::Json units = page::Json::array();
  for (const auto& each : bounds_of(gpu, counters, costs)) {
    units.push_back({{"unit", each.unit},
                     {"work", each.work},
                     {"work_unit", each.work_unit},
                     {"time", page::time_json({each.seconds, TimeKind::Modelled})}});
  }
  return {{"gpu", gpu.name},
          {"operations", costs.operations()},
          {"memory_bytes", memory_bytes(costs)},
          {"units", std::move(units)},
          {"kind", "modelled"}};
}

std::string per(double a, double b) { return b == 0 ? "-" : fmt::format("{:.2f}", a / b); }

std::string cell(std::uint64_t count) { return count == 0 ? "-" : fmt::format("{}", count); }

/// Passes per request of the constant cache, then lanes per request on one address.
std::pair<std::string, std::string> serial_cells(const KernelCounters& counters,
                                                 const KernelCosts& costs) {
  const auto constant = counters.total(MemorySpace::Constant, MemoryAccess::Load);
  auto atomics = counters.total(MemorySpace::Global, MemoryAccess::Atomic);
  atomics += counters.total(MemorySpace::Shared, MemoryAccess::Atomic);
  return {
      per(static_cast<double>(constant.wavefronts), static_cast<double>(constant.requests)),
      per(static_cast<double>(costs.total().contention), static_cast<double>(atomics.requests))};
}

void print_bounds(const Gpu& gpu, const KernelCounterTable& kernels, const CostTable& costs) {
  page::TextTable table({"kernel", "unit", "work", "least time"});
  for (const auto& [name, counters] : kernels) {
    for (const auto& each : bounds_of(gpu, counters, costs.at(name))) {
      table.add({name, std::string(each.unit),
                 each.work_unit == "bytes"
                     ? page::format_bytes(each.work)
                     : fmt::format("{} {}", page::format_count(each.work), each.work_unit),
                 each.seconds < 1e-6 ? fmt::format("{:.3g} ns", 1e9 * each.seconds)
                                     : page::format_seconds(each.seconds)});
    }
  }
  print_text(
      "\nleast time of each unit of {} (modelled from these counts and its published figures, "
      "without latencies):\n",
      gpu.name);
  table.print();
}

}  // namespace

void add_costs(page::Json& kernel, const Gpu& gpu, const KernelCounters& counters,
               const KernelCosts& costs) {
  for (const auto space : {MemorySpace::Global, MemorySpace::Shared}) {
    for (const auto access : kAllAccesses) {
      auto& json = kernel[std::string(to_string(space))][std::string(to_string(access))];
      add_site(json, total_of(costs, space, access), space, access);
    }
  }
  kernel["constant"] = constant_json(counters);
  kernel["arithmetic"] = arithmetic_json(costs);
  kernel["bounds"] = bounds_json(gpu, counters, costs);
  if (!kernel.contains("lines")) return;
  std::map<std::tuple<std::string, unsigned, std::string_view, std::string_view>, SiteCosts> lines;
  for (const auto& [site, at] : costs.sites) {
    lines[{site.file, site.line, to_string(site.space), to_string(site.access)}] += at;
  }
  for (auto& line : kernel["lines"]) {
    const auto space = line["space"].get<std::string>(), access = line["access"].get<std::string>();
    const auto found =
        lines.find({line["file"].get<std::string>(), line["line"].get<unsigned>(), space, access});
    if (found == lines.end()) continue;
    const auto is_global = space == to_string(MemorySpace::Global);
    add_site(line, found->second, is_global ? MemorySpace::Global : MemorySpace::Shared,
             access == to_string(MemoryAccess::Atomic) ? MemoryAccess::Atomic : MemoryAccess::Load);
  }
  kernel["branches"] = page::Json::array();
  for (const auto& [line, at] : branches_by_line(costs)) {
    kernel["branches"].push_back(divergence_json(line.first, line.second, at.warps, at.divergent));
  }
}

void print_costs(const Gpu& gpu, const KernelCounterTable& kernels, const CostTable& costs) {
  page::TextTable table({"kernel", "sectors requested", "from or to L2", "from or to memory",
                         "constant passes / request", "lanes on one address / atomic request",
                         "floating-point operations", "operations / byte of memory"});
  for (const auto& [name, counters] : kernels) {
    const auto& of = costs.at(name);
    const auto sum = of.total();
    std::uint64_t sectors = 0;
    for (const auto access : kAllAccesses) {
      sectors += counters.total(MemorySpace::Global, access).sectors;
    }
    const auto [passes, lanes] = serial_cells(counters, of);
    table.add({name, cell(sectors), cell(sum.l2_sectors), cell(sum.memory_sectors), passes, lanes,
               of.arithmetic.empty() ? "-" : page::format_count(of.operations()),
               of.arithmetic.empty() ? "-" : per(of.operations(), memory_bytes(of))});
  }
  print_text("\ncosts on {} (traffic behind the L1 and the L2 is modelled):\n", gpu.name);
  table.print();
  print_bounds(gpu, kernels, costs);
}

void print_branches(const std::string& problem, const CostTable& costs) {
  for (const auto& [name, of] : costs) {
    page::TextTable table({"line", "warps", "of them divergent", "divergent %", "source"});
    bool any = false;
    for (const auto& [line, at] : branches_by_line(of)) {
      if (at.divergent == 0) continue;
      any = true;
      const auto file = std::filesystem::path(line.first).filename().string();
      table.add({fmt::format("{}:{}", file, line.second), fmt::format("{}", at.warps),
                 fmt::format("{}", at.divergent),
                 per(100 * static_cast<double>(at.divergent), static_cast<double>(at.warps)),
                 line_of_source(line.first, line.second)});
    }
    if (!any) continue;
    print_text("\n{}, {}, branches at which its lanes part:\n", problem, name);
    table.print();
  }
}

}  // namespace triptych::app
