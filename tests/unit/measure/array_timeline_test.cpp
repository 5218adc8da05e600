// The timeline of an array: no slice is lost in Perfetto, and nothing runs before its operands.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/array_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/measure/model_plan.h"

namespace triptych::measure {
namespace {

using page::Json;

/// A training step of a tiny U-Net, with half of the nodes on the host.
class ArrayTimeline : public testing::Test {
 protected:
  ArrayTimeline() {
    PlanRequest request = {.model = {.base = 2, .depth = 1, .size = 16}};
    auto plan = plan_model(request, machine_).plan;
    nodes_ = array_nodes(plan, array_.machine());
    states_ = std::make_unique<StateStore>(machine_.device());
    executor_ = std::make_unique<Executor>(std::move(plan), *states_);
    fill_inputs(*executor_);
    ArrayWatcher watcher(nodes_);
    array_.watch(&watcher);
    profile_ = executor_->run_profiled();
    array_.watch(nullptr);
  }

  Json draw(const ArrayNode* chosen = nullptr) const {
    return Json::parse(
        array_timeline(executor_->plan(), profile_, nodes_, chosen, array_.machine()));
  }
  static std::vector<Json> slices(const Json& timeline) {
    std::vector<Json> list;
    for (const auto& event : timeline["traceEvents"])
      if (event["ph"] == "X") list.push_back(event);
    return list;
  }
  static bool is_instruction(const Json& slice) {
    return std::ranges::find(mmu::opcodes(), slice["name"].get<std::string>(),
                             &mmu::OpcodeInfo::mnemonic) != mmu::opcodes().end();
  }
  static std::size_t instructions(const ArrayNode& node) {
    return static_cast<std::size_t>(
        std::ranges::count_if(node.program, [](const auto& one) { return !halts(one); }));
  }

  training::DeviceSet machine_{
      {.backend = "systolic", .threads = 1, .contract = Contract::Bf16Exact, .machine = "mmu4"}};
  mmu::Watched& array_ = dynamic_cast<mmu::Watched&>(machine_.device());
  std::vector<ArrayNode> nodes_;
  std::unique_ptr<StateStore> states_;
  std::unique_ptr<Executor> executor_;
  std::vector<StepProfile> profile_;
};

TEST_F(ArrayTimeline, has_every_instruction_and_no_two_slices_that_overlap_in_a_lane) {
  std::size_t drawn = 0, issued = 0;
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> lanes;
  for (const auto& slice : slices(draw())) {
    const double begin = slice["ts"], time = slice["dur"];
    EXPECT_EQ(begin, std::floor(begin)) << "cycles are whole";
    EXPECT_EQ(time, std::floor(time));
    lanes[{slice["pid"], slice["tid"]}].emplace_back(begin, -time);
    drawn += is_instruction(slice) ? 1 : 0;
  }
  for (const auto& node : nodes_) issued += instructions(node);
  EXPECT_EQ(drawn, issued);
  for (auto& [lane, list] : lanes) {
    std::ranges::sort(list);  // the longer of two that begin together first
    std::vector<double> open;
    for (const auto& [begin, time] : list) {
      while (!open.empty() && open.back() <= begin) open.pop_back();
      EXPECT_TRUE(open.empty() || begin - time <= open.back()) << lane.second << " at " << begin;
      open.push_back(begin - time);
    }
  }
}

TEST_F(ArrayTimeline, shows_a_node_after_those_that_it_reads) {
  const auto& graph = executor_->plan().graph;
  std::map<std::string, std::pair<double, double>> spans;
  std::size_t measured = 0;
  for (const auto& slice : slices(draw())) {
    if (slice["tid"] != 0) continue;
    const double begin = slice["ts"], time = slice["dur"];
    spans[slice["name"]] = {begin, begin + time};
    measured += slice["args"]["time_kind"] == "measured" && time > 0 ? 1 : 0;
  }
  ASSERT_EQ(spans.size(), profile_.size());
  EXPECT_GT(measured, 0U);
  for (const auto& node : graph.nodes())
    for (const ValueId input : node.inputs) {
      if (graph.value(input).kind != ValueKind::Activation) continue;
      const auto& producer = graph.node(graph.value(input).producer).name;
      EXPECT_LE(spans.at(producer).second, spans.at(node.name).first)
          << producer << " before " << node.name;
    }
  for (const auto& node : nodes_)
    EXPECT_EQ(spans.at(node.name).second - spans.at(node.name).first, node.cycles());
}

TEST_F(ArrayTimeline, shows_the_chosen_node_alone_from_cycle_0_on) {
  const ArrayNode& chosen = nodes_.at(1);
  const Json timeline = draw(&chosen);
  EXPECT_THAT(timeline["otherData"]["axis"].get<std::string>(),
              testing::HasSubstr("1 microsecond is 1 cycle of mmu4 (700 MHz)"));
  std::size_t drawn = 0;
  for (const auto& slice : slices(timeline)) {
    if (slice["tid"] == 0) {
      EXPECT_EQ(slice["name"], chosen.name);
      EXPECT_EQ(slice["ts"], 0.0);
    }
    drawn += is_instruction(slice) ? 1 : 0;
  }
  EXPECT_EQ(drawn, instructions(chosen));
}

}  // namespace
}  // namespace triptych::measure
