// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/trace.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/ops/unary.h"
#include "tests/unit/runtime/reference_device.h"

namespace triptych {
namespace {

using namespace testing_device;

TEST(Trace, is_json_with_a_process_per_device_and_an_event_per_step) {
  ReferenceDevice toy("toy:0", reference_kernels({"Neg"}));
  ReferenceDevice cpu("cpu", reference_kernels({"Relu"}));
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2, 2}});
  const auto y = graph.add_node(make_op(Unary(UnaryKind::Neg)), std::vector{x}, "a \"b\"\n")[0];
  graph.add_node(make_op(Unary(UnaryKind::Relu)), std::vector{y}, "act");
  StateStore states(toy);
  Executor executor(make_plan(std::move(graph), {&toy, &cpu}), states);
  const auto profile = executor.run_profiled();
  const auto trace = nlohmann::json::parse(to_chrome_trace(executor.plan(), profile));

  const auto& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["ph"], "M");
  EXPECT_EQ(events[0]["args"]["name"], "toy:0");
  EXPECT_EQ(events[1]["args"]["name"], "cpu");
  EXPECT_EQ(events[2]["name"], "a \"b\"\n");
  const auto& last = events[3];
  EXPECT_EQ(last["ph"], "X");
  EXPECT_EQ(last["name"], "act");
  EXPECT_EQ(last["pid"], 1);
  EXPECT_EQ(last["ts"], 0.0);
  EXPECT_EQ(last["dur"], 1e6);
  EXPECT_EQ(last["args"]["kernel"], "reference");
  EXPECT_EQ(last["args"]["inputs"], nlohmann::json::array({"f32[2, 2]"}));
  EXPECT_EQ(last["args"]["time_kind"], "simulated");
}

TEST(Trace, shows_lanes_as_threads_of_their_device) {
  const std::vector<TraceLane> lanes = {{0, "load", {}}, {1, "store", {{"bias", 2, 0.5}}}};
  const auto events = nlohmann::json::parse(to_chrome_trace(Plan{}, {}, lanes))["traceEvents"];
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["name"], "thread_name");
  EXPECT_EQ(events[0]["args"]["name"], "load");
  EXPECT_EQ(events[0]["tid"], 1);
  EXPECT_EQ(events[2]["name"], "bias");
  EXPECT_EQ(events[2]["pid"], 1);
  EXPECT_EQ(events[2]["tid"], 2);
  EXPECT_EQ(events[2]["ts"], 2e6);
  EXPECT_EQ(events[2]["dur"], 5e5);
}

TEST(Trace, of_no_steps_is_valid) {
  Plan plan;
  EXPECT_TRUE(nlohmann::json::parse(to_chrome_trace(plan, {}))["traceEvents"].empty());
}

}  // namespace
}  // namespace triptych
