// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/utilisation/scale_sim.h"

#include <fmt/core.h>

#include <numeric>
#include <ranges>

#include "systolic/twin/twin.h"

namespace triptych {
namespace {

/// Length of the stalls that adjoin one another from cycle 0 on.
std::int64_t first_stall(const std::vector<mmu::StallInterval>& stalls) {
  std::uint64_t end = 0;
  for (const auto& stall : stalls) {
    if (stall.begin != end) break;
    end = stall.end;
  }
  return static_cast<std::int64_t>(end);
}

/// The same back from the program's end.
std::int64_t last_stall(const std::vector<mmu::StallInterval>& stalls, std::uint64_t cycles) {
  std::uint64_t begin = cycles;
  for (const auto& stall : std::views::reverse(stalls)) {
    if (stall.end != begin) break;
    begin = stall.begin;
  }
  return static_cast<std::int64_t>(cycles - begin);
}

ScaleSimLine sum(const std::vector<ScaleSimLine>& lines) {
  ScaleSimLine all;
  for (const auto& line : lines) {
    all.scale_sim += line.scale_sim;
    all.overlapped += line.overlapped;
    all.padding += line.padding;
    all.first_load += line.first_load;
    all.waits += line.waits;
    all.last_store += line.last_store;
    all.cycles += line.cycles;
  }
  return all;
}

void print(const ScaleSimLine& line, const std::string& shape, const std::string& name) {
  fmt::print("{:>10} {:>10} {:>8} {:>8} {:>8} {:>10} {:>10}  {:<22} {}\n", line.scale_sim,
             -line.overlapped, line.padding, line.first_load, line.waits, line.last_store,
             line.cycles, shape, name);
}

}  // namespace

std::int64_t scale_sim_cycles(const Product& product, const mmu::MachineConfig& machine) {
  return static_cast<std::int64_t>(product.tiles(machine) *
                                   (product.streamed() + 2 * machine.rows + machine.columns - 2)) -
         1;
}

ScaleSimLine compare_with_scale_sim(const NodeProgram& node, const mmu::MachineConfig& machine) {
  const auto report = mmu::estimate(node.program, machine, {.record_times = true});
  const auto& c = report.counters;
  const auto streamed =
      static_cast<std::int64_t>(node.product.tiles(machine) * node.product.streamed());
  ScaleSimLine line = {.scale_sim = scale_sim_cycles(node.product, machine),
                       .padding = static_cast<std::int64_t>(c.issue_cycles) - streamed,
                       .first_load = first_stall(report.stalls),
                       .last_store = last_stall(report.stalls, c.cycles),
                       .cycles = static_cast<std::int64_t>(c.cycles)};
  line.overlapped = line.scale_sim - streamed;
  line.waits =
      static_cast<std::int64_t>(c.cycles - c.issue_cycles) - line.first_load - line.last_store;
  return line;
}

void print_scale_sim(const std::vector<NodeProgram>& nodes, const mmu::MachineConfig& machine) {
  fmt::print("\n{} x {} ({}), DRAM {}\n", machine.rows, machine.columns, machine.name,
             machine.dram.preset);
  fmt::print("{:>10} {:>10} {:>8} {:>8} {:>8} {:>10} {:>10}  {:<22} {}\n", "SCALE-Sim", "overlap",
             "padding", "load", "waits", "store", "cycles", "positions x k x columns", "node");
  std::vector<ScaleSimLine> lines;
  for (const auto& node : nodes) {
    if (node.product.macs() == 0) continue;  // no matrix product that SCALE-Sim has
    lines.push_back(compare_with_scale_sim(node, machine));
    const auto& p = node.product;
    print(lines.back(), fmt::format("{} x {} x {}", p.streamed(), p.chain(), p.columns), node.name);
  }
  print(sum(lines), "", "all");
}

}  // namespace triptych
