// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/array_use.h"

#include <fmt/core.h>

#include <cmath>
#include <map>

#include "core/base/console.h"
#include "experiments/machines/array_machine.h"
#include "experiments/measure/energy_json.h"
#include "experiments/page/json.h"
#include "experiments/page/text_table.h"

namespace triptych::measure {
namespace {

constexpr std::string_view kArrayPrefix = "mmu_";
constexpr std::string_view kStallPrefix = "mmu_stall_";
constexpr std::string_view kStallSuffix = "_cycles";

ArrayUse use_of(const std::string& node, const std::map<std::string, double>& counters) {
  const double cycles = counters.at("mmu_cycles");
  const double pe_cycles = counters.at("mmu_pe_cycles");
  const double padding = counters.at("mmu_padding_cycles") / cycles;
  const double issue = counters.at("mmu_issue_cycles") / cycles;
  const double used = counters.at("mmu_macs") / pe_cycles;
  const double runs = counters.at("runs");
  ArrayUse use = {.node = node,
                  .cycles = cycles / runs,
                  .useful = counters.at("mmu_useful_macs") / pe_cycles,
                  .shares = {},
                  .counters = {}};
  use.shares = {{"used", used}, {"edges", issue - padding - used}, {"padding", padding}};
  for (const auto& [name, value] : counters) {
    if (name.starts_with(kArrayPrefix))  // no latency depends on data: each run counts the same
      use.counters[name.substr(kArrayPrefix.size())] = std::llround(value / runs);
    if (!name.starts_with(kStallPrefix)) continue;
    const auto length = name.size() - kStallPrefix.size() - kStallSuffix.size();
    use.shares.emplace_back(name.substr(kStallPrefix.size(), length), value / cycles);
  }
  return use;
}

void print_shares(const std::vector<ArrayUse>& uses) {
  std::vector<std::string> header = {"node", "cycles", "useful %"};
  for (const auto& [name, share] : uses.front().shares) header.push_back(name + " %");
  page::TextTable text(header);
  ArrayUse all = {.node = "all", .shares = uses.front().shares, .counters = {}};
  for (auto& [name, sum] : all.shares) sum = 0;
  const auto add = [&](const ArrayUse& use, double over) {
    std::vector<std::string> row = {use.node, fmt::format("{:.0f}", use.cycles),
                                    fmt::format("{:.1f}", 100 * use.useful / over)};
    for (const auto& [name, share] : use.shares)
      row.push_back(fmt::format("{:.1f}", 100 * share / over));
    text.add(std::move(row));
  };
  for (const auto& use : uses) {
    all.cycles += use.cycles;
    all.useful += use.cycles * use.useful;
    for (std::size_t i = 0; i < all.shares.size(); ++i)
      all.shares[i].second += use.cycles * use.shares[i].second;
    add(use, 1);
  }
  add(all, all.cycles);
  print_text(
      "\nwhere the array's cycles go (simulated; shares of PE-cycles: used, edges, padding and the "
      "waits\nmake 100; useful, a part of used, leaves out padded channels):\n");
  text.print();
}

/// The parts of all nodes' energy together.
void print_energy(const std::vector<ArrayUse>& uses, const machines::EnergyTable& table) {
  auto all = uses.front().energy;
  for (auto& part : all) part.events = 0;
  for (const auto& use : uses)
    for (std::size_t i = 0; i < all.size(); ++i) all[i].events += use.energy[i].events;
  const double total = machines::total_joule(all);
  page::TextTable text({"part", "events", "energy of one", "energy", "share %"});
  for (const auto& part : all)
    text.add({part.name, page::format_count(part.events), page::format_joule(part.event.joule),
              page::format_joule(part.joule()), fmt::format("{:.1f}", 100 * part.joule() / total)});
  text.add({"all", "", "", page::format_joule(total), "100.0"});
  print_text("\nenergy of the array and its memory in one run (modelled, table {}):\n",
             table.name());
  text.print();
}

}  // namespace

page::Json host_json(const std::optional<training::HostShare>& share) {
  if (!share) return {};
  return {{"device", share->device},           {"nodes", share->nodes},
          {"operations", share->operations},   {"bytes", share->bytes},
          {"vector_lanes", share->lanes},      {"clock_mhz", share->clock_mhz},
          {"bytes_per_s", share->bytes_per_s}, {"time", page::time_json(share->time)}};
}

void print_host(const DeviceSet& machine, const Plan& plan) {
  if (const auto share = machine.host_share(plan)) {
    print_text("{} per run\n", training::to_string(*share));
  }
}

std::vector<ArrayUse> array_use(const Plan& plan, const training::ExecutionConfig& config,
                                const machines::EnergyTable& table) {
  std::vector<ArrayUse> uses;
  for (const auto& step : plan.steps) {
    if (!step.kernel) continue;
    const auto counters = step.kernel->counters();
    const auto cycles = counters.find("mmu_cycles");
    if (cycles == counters.end() || cycles->second == 0) continue;
    auto& use = uses.emplace_back(use_of(plan.graph.node(step.node).name, counters));
    const auto counts = mmu::counters_from([&](const std::string& name) {
      const auto found = use.counters.find(name);
      return found == use.counters.end() ? 0 : static_cast<std::uint64_t>(found->second);
    });
    use.energy = machines::array_energy(counts, machines::array_of(config), table);
  }
  return uses;
}

page::Json to_json(const ArrayUse& use, const machines::EnergyTable& table) {
  page::Json shares = page::Json::object();
  for (const auto& [name, share] : use.shares) shares[name] = share;
  return {{"node", use.node},         {"cycles", use.cycles},
          {"useful", use.useful},     {"shares", std::move(shares)},
          {"counters", use.counters}, {"energy", energy_json(use.energy, table, "total")}};
}

void print_array_use(const std::vector<ArrayUse>& uses, const machines::EnergyTable& table) {
  if (uses.empty()) return;
  print_shares(uses);
  print_energy(uses, table);
}

}  // namespace triptych::measure
