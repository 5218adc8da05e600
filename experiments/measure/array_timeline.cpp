// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/array_timeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/runtime/trace.h"

namespace triptych::measure {
namespace {

/// Seconds of the timeline.
constexpr double kCycle = 1e-6;

struct Placed {
  std::uint64_t begin = 0, end = 0;  ///< cycles
};

/// When each step of the profile begins and ends.
class Placement {
 public:
  Placement(const Plan& plan, double clock_mhz)
      : plan_(plan),
        clock_hz_(clock_mhz * 1e6),
        device_free_(plan.devices.size()),
        node_end_(plan.graph.nodes().size()) {}

  /// In the order of the plan. `node`: of the array, otherwise of its host.
  Placed add(const StepProfile& step, const ArrayNode* node) {
    std::uint64_t begin = 0;
    for (const ValueId input : plan_.graph.node(step.node).inputs) {
      const auto& value = plan_.graph.value(input);
      if (value.kind == ValueKind::Activation)
        begin = std::max(begin, node_end_[value.producer.index()]);
    }
    std::uint64_t cycles = 0;
    if (!step.kernel.empty()) {
      begin = std::max(begin, device_free_[step.device]);
      cycles = node != nullptr ? node->cycles() : cycles_of(step.time.seconds);
      device_free_[step.device] = begin + cycles;
    }
    node_end_[step.node.index()] = begin + cycles;
    return {begin, begin + cycles};
  }

 private:
  std::uint64_t cycles_of(double seconds) const {
    return static_cast<std::uint64_t>(std::ceil(seconds * clock_hz_));
  }

  const Plan& plan_;
  double clock_hz_;
  std::vector<std::uint64_t> device_free_;
  std::vector<std::uint64_t> node_end_;
};

/// The lanes of one unit: as many as its instructions need lest they overlap in one.
class UnitLanes {
 public:
  UnitLanes(std::size_t device, std::string_view name) : device_(device), name_(name) { widen(); }

  /// In ascending order of `begin`.
  void add(std::string_view event, std::uint64_t begin, std::uint64_t end) {
    std::size_t lane = 0;
    while (lane < free_.size() && free_[lane] > begin) ++lane;
    if (lane == free_.size()) widen();
    free_[lane] = end;
    lanes_[lane].events.push_back({std::string(event), static_cast<double>(begin) * kCycle,
                                   static_cast<double>(end - begin) * kCycle});
  }
  void move_to(std::vector<TraceLane>& lanes) {
    std::ranges::move(lanes_, std::back_inserter(lanes));
  }

 private:
  void widen() {
    const std::size_t number = lanes_.size() + 1;
    lanes_.push_back({.device = device_,
                      .name = number == 1 ? name_ : fmt::format("{} {}", name_, number),
                      .events = {}});
    free_.push_back(0);
  }

  std::size_t device_;
  std::string name_;
  std::vector<TraceLane> lanes_;
  std::vector<std::uint64_t> free_;  ///< per lane, the cycle after its last event
};

/// Lanes of the units, of "array" and of "stalls".
class ArrayLanes {
 public:
  explicit ArrayLanes(std::size_t device) {
    for (int u = 0; u < mmu::kUnits; ++u)
      lanes_.emplace_back(device, mmu::to_string(static_cast<mmu::Unit>(u)));
    lanes_.emplace_back(device, "array");
    lanes_.emplace_back(device, "stalls");
  }

  void add(const ArrayNode& node, std::uint64_t begin) {
    for (std::size_t i = 0; i < node.program.size(); ++i) {
      if (halts(node.program[i])) continue;
      const auto& times = node.report.times[i];
      lanes_[static_cast<std::size_t>(unit_of(node.program[i]))].add(
          mmu::find_opcode(node.program[i].opcode())->mnemonic, begin + times.start,
          begin + times.end);
    }
    for (const auto& [first, last] : issuing(node))
      lanes_[mmu::kUnits].add("issue", begin + first, begin + last);
    for (const auto& stall : node.report.stalls)
      lanes_[mmu::kUnits + 1].add(mmu::to_string(stall.cause), begin + stall.begin,
                                  begin + stall.end);
  }

  std::vector<TraceLane> take() {
    std::vector<TraceLane> all;
    for (auto& lanes : lanes_) lanes.move_to(all);
    return all;
  }

 private:
  std::vector<UnitLanes> lanes_;
};

std::string axis_of(const mmu::MachineConfig& machine) {
  return fmt::format(
      "1 microsecond is 1 cycle of {} ({} MHz). A node of the host takes the time that was "
      "measured "
      "(time_us), in cycles of that clock, and begins when its producers have ended.",
      machine.name, machine.clock_mhz);
}

}  // namespace

std::string array_timeline(const Plan& plan, const std::vector<StepProfile>& profile,
                           const std::vector<ArrayNode>& nodes, const ArrayNode* chosen,
                           const mmu::MachineConfig& machine) {
  if (nodes.empty()) return to_chrome_trace(plan, profile);
  TracedRun run{.name = {}, .plan = &plan, .profile = {}, .lanes = {}, .spans = {}, .start_s = 0};
  Placement placement(plan, machine.clock_mhz);
  ArrayLanes lanes(profile[nodes.front().step].device);
  auto node = nodes.begin();
  for (std::size_t i = 0; i < profile.size(); ++i) {
    const ArrayNode* own = node != nodes.end() && node->step == i ? &*node++ : nullptr;
    if (chosen != nullptr && chosen != own) continue;
    const Placed placed = placement.add(profile[i], own);
    if (own != nullptr) lanes.add(*own, placed.begin);
    run.profile.push_back(profile[i]);
    run.spans.push_back({static_cast<double>(placed.begin) * kCycle,
                         static_cast<double>(placed.end - placed.begin) * kCycle});
  }
  run.lanes = lanes.take();
  return to_chrome_trace({std::move(run)}, axis_of(machine));
}

}  // namespace triptych::measure
