// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/trace.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace triptych {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicroseconds = 1e6;

/// ts and dur of an event with begin and end in whole nanoseconds.
void put_span(Json& event, double start_s, double time_s) {
  const double begin = std::round(start_s * 1e9), end = std::round((start_s + time_s) * 1e9);
  event["ts"] = begin / 1e3;
  event["dur"] = (end - begin) / 1e3;
}

Json process_name(std::size_t device, const std::string& name) {
  return {{"name", "process_name"}, {"ph", "M"}, {"pid", device}, {"args", {{"name", name}}}};
}

Json specs_of(const Graph& graph, Values values) {
  Json list = Json::array();
  for (const auto value : values) list.push_back(to_string(graph.spec(value)));
  return list;
}

Json event(const TracedRun& run, std::size_t number, std::size_t first_process) {
  const StepProfile& step = run.profile[number];
  const TraceSpan span =
      run.spans.empty() ? TraceSpan{step.start.seconds, step.time.seconds} : run.spans[number];
  const auto& graph = run.plan->graph;
  const auto& node = graph.node(step.node);
  Json event = {{"name", node.name},
                {"cat", node.op->name()},
                {"ph", "X"},
                {"pid", first_process + step.device},
                {"tid", 0}};
  put_span(event, run.start_s + span.start, span.time);
  event["args"] = {{"op", to_string(*node.op)},
                   {"kernel", step.kernel},
                   {"inputs", specs_of(graph, node.inputs)},
                   {"outputs", specs_of(graph, node.outputs)},
                   {"time_us", step.time.seconds * kMicroseconds},
                   {"time_kind", to_string(step.time.kind)}};
  return event;
}

Json thread_name(std::size_t process, std::size_t thread, const std::string& name) {
  return {{"name", "thread_name"},
          {"ph", "M"},
          {"pid", process},
          {"tid", thread},
          {"args", {{"name", name}}}};
}

/// Thread 0 of a device shows its steps.
void add_lane(Json& events, const TracedRun& run, const TraceLane& lane, std::size_t process,
              std::size_t thread) {
  events.push_back(thread_name(process, thread, lane.name));
  for (const auto& event : lane.events) {
    events.push_back(
        {{"name", event.name}, {"cat", lane.name}, {"ph", "X"}, {"pid", process}, {"tid", thread}});
    put_span(events.back(), run.start_s + event.start, event.time);
  }
}

void add_run(Json& events, const TracedRun& run, std::size_t first_process) {
  for (std::size_t d = 0; d < run.plan->devices.size(); ++d) {
    const auto& device = run.plan->devices[d]->info().name;
    events.push_back(
        process_name(first_process + d, run.name.empty() ? device : run.name + ": " + device));
    if (!run.name.empty()) events.push_back(thread_name(first_process + d, 0, "computation"));
  }
  for (std::size_t i = 0; i < run.profile.size(); ++i)
    events.push_back(event(run, i, first_process));
  for (std::size_t i = 0; i < run.lanes.size(); ++i)
    add_lane(events, run, run.lanes[i], first_process + run.lanes[i].device, i + 1);
}

}  // namespace

std::string to_chrome_trace(const std::vector<TracedRun>& runs, std::string_view axis) {
  Json events = Json::array();
  std::size_t first_process = 0;
  for (const auto& run : runs) {
    add_run(events, run, first_process);
    first_process += run.plan->devices.size();
  }
  return Json{{"displayTimeUnit", "ns"},
              {"otherData", {{"axis", axis}}},
              {"traceEvents", std::move(events)}}
      .dump(1);
}

std::string to_chrome_trace(const Plan& plan, const std::vector<StepProfile>& profile,
                            const std::vector<TraceLane>& lanes) {
  return to_chrome_trace(
      {{.name = {}, .plan = &plan, .profile = profile, .lanes = lanes, .spans = {}}});
}

}  // namespace triptych
