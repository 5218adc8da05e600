// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/array_trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "core/base/error.h"
#include "core/base/nearest_name.h"
#include "experiments/measure/dataflows.h"
#include "experiments/page/json.h"
#include "systolic/twin/twin.h"

namespace triptych::measure {
namespace {

/// Their union. Sorts.
std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> result;
  for (const auto& interval : intervals) {
    if (result.empty() || interval.first > result.back().second) {
      result.push_back(interval);
    } else {
      result.back().second = std::max(result.back().second, interval.second);
    }
  }
  return result;
}

std::vector<Interval> busy(const ArrayNode& node, mmu::Unit unit) {
  std::vector<Interval> intervals;
  for (std::size_t i = 0; i < node.program.size(); ++i) {
    if (halts(node.program[i]) || unit_of(node.program[i]) != unit) continue;
    intervals.emplace_back(node.report.times[i].start, node.report.times[i].end);
  }
  return merged(std::move(intervals));
}

std::vector<Interval> stalls(const ArrayNode& node, mmu::Stall cause) {
  std::vector<Interval> intervals;
  for (const auto& stall : node.report.stalls) {
    if (stall.cause == cause) intervals.emplace_back(stall.begin, stall.end);
  }
  return merged(std::move(intervals));
}

}  // namespace

std::vector<ArrayNode> array_nodes(const Plan& plan, const mmu::MachineConfig& machine) {
  std::vector<ArrayNode> nodes;
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto* owner = dynamic_cast<const mmu::ProgramOwner*>(plan.steps[i].kernel.get());
    if (owner == nullptr) continue;
    auto program = owner->program();
    auto report = mmu::estimate(program, machine, {.record_times = true});
    nodes.push_back({.name = plan.graph.node(plan.steps[i].node).name,
                     .step = i,
                     .program = std::move(program),
                     .tiling = owner->tiling(),
                     .report = std::move(report),
                     .begin = begin});
    begin += nodes.back().cycles();
  }
  return nodes;
}

const ArrayNode& find_node(const std::vector<ArrayNode>& nodes, const Plan& plan,
                           const std::string& name) {
  std::vector<std::string> names;
  for (const auto& node : nodes) {
    if (node.name == name) return node;
    names.push_back(node.name);
  }
  for (const auto& step : plan.steps) {
    if (plan.graph.node(step.node).name != name) continue;
    throw InvalidArgument(fmt::format("the node \"{}\" does not run on the array, these do: {}",
                                      name, fmt::join(names, ", ")));
  }
  const auto meant = nearest_name(name, names);
  throw InvalidArgument(
      fmt::format("no node \"{}\"{}", name,
                  meant.empty() ? fmt::format("; on the array run {}", fmt::join(names, ", "))
                                : fmt::format("; did you mean \"{}\"?", meant)));
}

void ArrayWatcher::want_waves(const ArrayNode& node, std::string path, std::string name,
                              CycleWindow window) {
  looked_at_ = static_cast<std::size_t>(&node - nodes_.data());
  looks_.waves = std::move(path);
  looks_.waves_name = std::move(name);
  looks_.waves_begin = window.begin;
  looks_.waves_end = window.end;
}

void ArrayWatcher::want_pes(const ArrayNode& node, const PeRecorder& recorder) {
  looked_at_ = static_cast<std::size_t>(&node - nodes_.data());
  looks_.pes = &recorder.watcher();
}

mmu::RunOptions ArrayWatcher::starts(const mmu::Program&) {
  mmu::RunOptions options = next_ == looked_at_ ? looks_ : mmu::RunOptions{};
  options.record_times = true;
  return options;
}

void ArrayWatcher::ended(const mmu::Program&, const mmu::RunReport& report) {
  auto& node = nodes_.at(next_++);
  // The causes of single cycles are the twin's. They are right as far as the counters agree.
  if (report.counters.stall_cycles != node.report.counters.stall_cycles) {
    throw std::runtime_error("[mmu] the machine's stalls are not those that the twin foresees");
  }
  node.report.counters = report.counters;
  node.report.times = report.times;
}

PeRecorder::PeRecorder(CycleWindow window)
    : window_(window), watcher_([this](const mmu::PeStep& step) {
        if (step.cycle < window_.begin || step.cycle >= window_.end) return;
        if (steps_.size() == kMostSteps)
          throw InvalidArgument(
              fmt::format("the option per-pe: more than {} multiply-adds; give fewer cycles (the "
                          "option cycles)",
                          kMostSteps));
        steps_.push_back(step);
      }) {}

page::Json PeRecorder::json(const ArrayNode& node, const mmu::MachineConfig& machine) {
  std::ranges::sort(steps_, {}, [](const mmu::PeStep& step) {
    return std::tuple(step.cycle, step.row, step.column);
  });
  page::Json steps = page::Json::array();
  for (const auto& step : steps_)
    steps.push_back({{"cycle", step.cycle},
                     {"row", step.row},
                     {"column", step.column},
                     {"activation", step.activation},
                     {"weight", step.weight},
                     {"sum_in", step.sum_in},
                     {"sum_out", step.sum_out},
                     {"slot", step.slot},
                     {"instruction", step.instruction}});
  return {{"machine", machine.name},
          {"rows", machine.rows},
          {"columns", machine.columns},
          {"pe", mmu::to_string(machine.pe)},
          {"node", node.name},
          {"cycles", node.cycles()},
          {"window", {window_.begin, std::min(window_.end, node.cycles() + 1)}},
          {"steps", std::move(steps)}};
}

mmu::Unit unit_of(const mmu::Instruction& instruction) {
  return mmu::find_opcode(instruction.opcode())->unit;
}

bool halts(const mmu::Instruction& instruction) {
  return instruction.opcode() == mmu::Opcode::Halt;
}

std::string to_text(const ArrayNode& node) {
  std::string text = fmt::format("# {}: {} instructions, {} cycles\n#  start       end  unit\n",
                                 node.name, node.program.size(), node.cycles());
  for (std::size_t i = 0; i < node.program.size(); ++i) {
    const auto& times = node.report.times[i];
    const auto& instruction = node.program[i];
    text += fmt::format("{:>8}  {:>8}  {:<8}  {}\n", times.start, times.end,
                        halts(instruction) ? "dispatch" : mmu::to_string(unit_of(instruction)),
                        mmu::disassemble(instruction));
  }
  return text;
}

std::string programs_text(const std::vector<ArrayNode>& nodes, const ArrayNode* chosen) {
  std::string text;
  for (const auto& node : nodes) {
    if (chosen == nullptr || chosen == &node) text += to_text(node);
  }
  return text;
}

std::vector<Interval> issuing(const ArrayNode& node) {
  std::vector<Interval> intervals;
  std::uint64_t from = 0;
  for (const auto& stall : node.report.stalls) {
    if (stall.begin > from) intervals.emplace_back(from, stall.begin);
    from = stall.end;
  }
  if (node.cycles() > from) intervals.emplace_back(from, node.cycles());
  return intervals;
}

page::Json to_json(const ArrayNode& node) {
  page::Json units = page::Json::object();
  for (int u = 0; u < mmu::kUnits; ++u) {
    const auto unit = static_cast<mmu::Unit>(u);
    units[std::string(mmu::to_string(unit))] = busy(node, unit);
  }
  page::Json counters = page::Json::object();
  for (const auto& [name, value] : mmu::named_counts(node.report.counters)) counters[name] = value;
  page::Json causes = page::Json::object();
  for (int s = 0; s < mmu::kStalls; ++s) {
    const auto cause = static_cast<mmu::Stall>(s);
    causes[std::string(mmu::to_string(cause))] = stalls(node, cause);
  }
  return {{"node", node.name},
          {"begin", node.begin},
          {"cycles", node.cycles()},
          {"counters", std::move(counters)},
          {"instructions", node.program.size()},
          {"tiling", node.tiling},
          {"dataflow", mmu::to_string(dataflows_of(node.program))},
          {"busy", std::move(units)},
          {"issue", issuing(node)},
          {"stalls", std::move(causes)}};
}

}  // namespace triptych::measure
