// SPDX-License-Identifier: Apache-2.0
#include "experiments/cli/simulated.h"

#include <fmt/format.h>

#include <map>

namespace triptych::cli {
namespace {

constexpr std::string_view kStallPrefix = "mmu_stall_";
constexpr std::string_view kStallSuffix = "_cycles";

ArrayUse use_of(const std::string& node, const std::map<std::string, double>& counters) {
  const double cycles = counters.at("mmu_cycles");
  const double pe_cycles = counters.at("mmu_pe_cycles");
  const double padding = counters.at("mmu_padding_cycles") / cycles;
  const double issue = counters.at("mmu_issue_cycles") / cycles;
  const double used = counters.at("mmu_macs") / pe_cycles;
  ArrayUse use = {.node = node, .cycles = cycles / counters.at("runs"), .shares = {}};
  use.shares = {{"used", used}, {"edges", issue - padding - used}, {"padding", padding}};
  for (const auto& [name, value] : counters) {
    if (!name.starts_with(kStallPrefix)) continue;
    const auto length = name.size() - kStallPrefix.size() - kStallSuffix.size();
    use.shares.emplace_back(name.substr(kStallPrefix.size(), length), value / cycles);
  }
  return use;
}

}  // namespace

Json to_json(const std::optional<training::HostShare>& share) {
  if (!share) return {};
  return {{"device", share->device},       {"nodes", share->nodes},
          {"elements", share->elements},   {"vector_lanes", share->lanes},
          {"clock_mhz", share->clock_mhz}, {"time", time_json(share->time)}};
}

void print_host(const Machine& machine, const Plan& plan, std::FILE* out) {
  if (const auto share = machine.host_share(plan)) {
    fmt::print(out, "{} per run\n", training::to_string(*share));
  }
}

std::vector<ArrayUse> array_use(const Plan& plan) {
  std::vector<ArrayUse> uses;
  for (const auto& step : plan.steps) {
    if (!step.kernel) continue;
    const auto counters = step.kernel->counters();
    const auto cycles = counters.find("mmu_cycles");
    if (cycles == counters.end() || cycles->second == 0) continue;
    uses.push_back(use_of(plan.graph.node(step.node).name, counters));
  }
  return uses;
}

Json to_json(const ArrayUse& use) {
  Json shares = Json::object();
  for (const auto& [name, share] : use.shares) shares[name] = share;
  return {{"node", use.node}, {"cycles", use.cycles}, {"shares", std::move(shares)}};
}

void print_array_use(const std::vector<ArrayUse>& uses) {
  if (uses.empty()) return;
  std::vector<std::string> header = {"node", "cycles"};
  for (const auto& [name, share] : uses.front().shares) header.push_back(name + " %");
  Table table(header);
  std::vector<double> sums(uses.front().shares.size());
  double cycles = 0;
  const auto add = [&](const std::string& node, double all, const auto& share_of) {
    std::vector<std::string> row = {node, fmt::format("{:.0f}", all)};
    for (std::size_t i = 0; i < sums.size(); ++i) {
      row.push_back(fmt::format("{:.1f}", 100 * share_of(i)));
    }
    table.add(row);
  };
  for (const auto& use : uses) {
    cycles += use.cycles;
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += use.cycles * use.shares[i].second;
    add(use.node, use.cycles, [&](std::size_t i) { return use.shares[i].second; });
  }
  add("all", cycles, [&](std::size_t i) { return sums[i] / cycles; });
  fmt::print("\nwhere the array's cycles go (simulated; shares of PE-cycles):\n");
  table.print();
}

}  // namespace triptych::cli
