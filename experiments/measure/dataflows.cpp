// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/dataflows.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "core/base/console.h"
#include "experiments/machines/array_machine.h"
#include "experiments/measure/array_trace.h"
#include "experiments/page/text_table.h"

namespace triptych::measure {
namespace {

std::uint64_t dram_bytes(const mmu::Counters& counters) {
  return std::accumulate(counters.dram_bytes.begin(), counters.dram_bytes.end(), std::uint64_t{0});
}

/// The nodes of the plan for a machine whose planner prefers `dataflow`.
std::vector<ArrayNode> nodes_of(training::ExecutionConfig config, mmu::MachineConfig machine,
                                mmu::Dataflows dataflow, const PlanMaker& make_plan) {
  machine.dataflows = dataflow;
  config.machine = mmu::to_json(machine);
  config.simulate = {};
  config.tiling.clear();
  const training::DeviceSet devices(config);
  return array_nodes(make_plan(devices), machine);
}

}  // namespace

mmu::Dataflows dataflows_of(const mmu::Program& program) {
  bool weights = false, outputs = false;
  for (const auto& instruction : program) {
    if (instruction.opcode() != mmu::Opcode::Matmul) continue;
    const bool stays = mmu::decode<mmu::Matmul>(instruction).output_stationary;
    (stays ? outputs : weights) = true;
  }
  if (weights && outputs) return mmu::Dataflows::Both;
  return outputs ? mmu::Dataflows::OutputStationary : mmu::Dataflows::WeightStationary;
}

std::vector<DataflowCounts> compare_dataflows(const training::ExecutionConfig& config,
                                              const PlanMaker& make_plan) {
  std::vector<DataflowCounts> counts;
  if (config.backend != "systolic") return counts;
  const auto machine = machines::array_of(config);
  if (machine.dataflows != mmu::Dataflows::Both) return counts;
  using enum mmu::Dataflows;
  const auto weights = nodes_of(config, machine, WeightStationary, make_plan);
  const auto outputs = nodes_of(config, machine, OutputStationary, make_plan);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    counts.push_back({weights[i].name, WeightStationary, weights[i].report.counters});
    if (dataflows_of(outputs[i].program) != WeightStationary)
      counts.push_back({outputs[i].name, OutputStationary, outputs[i].report.counters});
  }
  return counts;
}

page::Json dataflows_json(const std::vector<DataflowCounts>& counts, const std::string& node) {
  page::Json list = page::Json::array();
  for (const auto& entry : counts) {
    if (entry.node != node) continue;
    page::Json counters = page::Json::object();
    for (const auto& [name, value] : mmu::named_counts(entry.counters)) counters[name] = value;
    list.push_back({{"dataflow", mmu::to_string(entry.dataflow)},
                    {"counters", std::move(counters)},
                    {"dram_bytes", dram_bytes(entry.counters)}});
  }
  return list;
}

void print_dataflows(const std::vector<DataflowCounts>& counts) {
  if (counts.empty()) return;
  page::TextTable table({"node", "dataflow", "cycles", "buffer reads", "accumulator accesses",
                         "weight reads", "DRAM bytes"});
  for (const auto& [node, dataflow, counted] : counts)
    table.add({node, std::string(mmu::to_string(dataflow)), fmt::format("{}", counted.cycles),
               fmt::format("{}", counted.buffer_reads),
               fmt::format("{}", counted.accumulator_reads + counted.accumulator_writes),
               fmt::format("{}", counted.weight_reads), fmt::format("{}", dram_bytes(counted))});
  print_text("\nboth dataflows (simulated):\n");
  table.print();
}

}  // namespace triptych::measure
