// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/trace.h"

#include <nlohmann/json.hpp>

namespace triptych {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicroseconds = 1e6;

Json process_name(std::size_t device, const std::string& name) {
  return {{"name", "process_name"}, {"ph", "M"}, {"pid", device}, {"args", {{"name", name}}}};
}

Json specs_of(const Graph& graph, Values values) {
  Json list = Json::array();
  for (const auto value : values) list.push_back(to_string(graph.spec(value)));
  return list;
}

Json event(const Graph& graph, const StepProfile& step) {
  const auto& node = graph.node(step.node);
  return {{"name", node.name},
          {"cat", node.op->name()},
          {"ph", "X"},
          {"pid", step.device},
          {"tid", 0},
          {"ts", step.start.seconds * kMicroseconds},
          {"dur", step.time.seconds * kMicroseconds},
          {"args",
           {{"op", to_string(*node.op)},
            {"kernel", step.kernel},
            {"inputs", specs_of(graph, node.inputs)},
            {"outputs", specs_of(graph, node.outputs)},
            {"time_kind", to_string(step.time.kind)}}}};
}

/// Thread 0 of a device shows its steps.
void add_lane(Json& events, const TraceLane& lane, std::size_t thread) {
  events.push_back({{"name", "thread_name"},
                    {"ph", "M"},
                    {"pid", lane.device},
                    {"tid", thread},
                    {"args", {{"name", lane.name}}}});
  for (const auto& event : lane.events) {
    events.push_back({{"name", event.name},
                      {"cat", lane.name},
                      {"ph", "X"},
                      {"pid", lane.device},
                      {"tid", thread},
                      {"ts", event.start * kMicroseconds},
                      {"dur", event.time * kMicroseconds}});
  }
}

}  // namespace

std::string to_chrome_trace(const Plan& plan, const std::vector<StepProfile>& profile,
                            const std::vector<TraceLane>& lanes) {
  Json events = Json::array();
  for (std::size_t d = 0; d < plan.devices.size(); ++d) {
    events.push_back(process_name(d, plan.devices[d]->info().name));
  }
  for (const auto& step : profile) events.push_back(event(plan.graph, step));
  for (std::size_t i = 0; i < lanes.size(); ++i) add_lane(events, lanes[i], i + 1);
  return Json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}}.dump(1);
}

}  // namespace triptych
