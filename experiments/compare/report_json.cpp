// SPDX-License-Identifier: Apache-2.0
#include "experiments/compare/report_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/list_text.h"
#include "experiments/compare/machine_json.h"

namespace triptych::compare {
namespace {

Json experiment_json(const Comparison& comparison) {
  const auto& run = comparison.experiment.run;
  const auto ran = std::ranges::find_if(
      comparison.columns, [](const Column& column) { return column.result.has_value(); });
  const auto train = ran->result->train_images, validation = ran->result->validation_images;
  return {{"model", Json::parse(training::to_json(run.model))},
          {"model_name", run.model.name},
          {"data", run.data.source},
          {"images", {{"train", train}, {"validation", validation}}},
          {"class_names", run.data.class_names.empty() ? std::vector<std::string>()
                                                       : split_list(run.data.class_names)},
          {"seed", run.training.seed},
          {"epochs", run.epochs},
          {"batch", run.training.batch},
          {"contract", to_string(comparison.contract)},
          {"loss", name_of(run.training.loss)},
          {"optimizer", name_of(run.training.optimizer.kind)},
          {"learning_rate", run.learning_rate},
          {"commands", Json::array({comparison.command})}};
}

Json absent_json(const Column& column) {
  const auto& config = column.request.config;
  return {{"name", column.request.label},
          {"backend", config.backend},
          {"simulate", config.simulate ? name_of(*config.simulate) : ""},
          {"contract", to_string(config.contract)},
          {"available", false},
          {"reason", column.absence.reason},
          {"remedy", column.absence.remedy}};
}

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value));
}

Json difference_json(const std::optional<Difference>& difference) {
  if (!difference) return nullptr;
  const auto& d = *difference;
  Json json = {{"machines", {d.first, d.second}}, {"step", nullptr}, {"node", nullptr}};
  if (d.step >= 0) json["step"] = d.step + 1;
  if (d.node.empty()) {
    json["why"] = d.why;
    return json;
  }
  json["node"] = d.node;
  json.update({{"output", d.output},
               {"element", d.element},
               {"values", {number(d.values[0]), number(d.values[1])}},
               {"different_elements", d.different_elements},
               {"of", d.of},
               {"why", d.why}});
  return json;
}

Json verdict_json(const Comparison& comparison) {
  const auto verdict = comparison.verdict();
  return {{"identical", verdict.identical()},
          {"losses", verdict.losses},
          {"weights", verdict.weights},
          {"masks", verdict.masks},
          {"machines", verdict.machines},
          {"different", verdict.different},
          {"first_difference", difference_json(comparison.difference)}};
}

Json recorded_json(const std::vector<RecordedSession>& sessions) {
  Json list = Json::array();
  for (const auto& session : sessions) {
    Json results = Json::array();
    for (const auto& figure : session.figures) {
      results.push_back(
          {{"name", figure.name},
           {"value", figure_json(figure.value, figure.unit, TimeKind::Recorded, session.file)}});
    }
    list.push_back({{"machine", session.machine},
                    {"date", session.date},
                    {"commit", session.commit},
                    {"file", session.file},
                    {"results", std::move(results)}});
  }
  return list;
}

Json energy_table_json() {
  Json list = Json::array();
  for (const auto& event : machines::energy_table())
    list.push_back({{"event", event.name}, {"joule", event.joule}, {"source", event.source}});
  return list;
}

/// Notes that a reader needs and no number says.
Json notes_json(const Comparison& comparison) {
  Json notes = Json::array();
  if (!comparison.busy.empty()) notes.push_back(comparison.busy);
  for (const auto& column : comparison.columns) {
    const auto& request = column.request;
    if (!column.result) {
      notes.push_back(to_string(request, column.absence));
    } else if (request.stands_in()) {
      notes.push_back(fmt::format(
          "{} runs another machine's kernels on this processor: it is checked for bits, and none "
          "of its times is shown or compared",
          request.label));
    } else if (column.result->anatomy.host_seconds > 0) {
      notes.push_back(fmt::format(
          "times of {}: the array's cycles are simulated; nodes that it has no kernel for run on "
          "its host, whose time is modelled from operations and bytes, and added",
          request.label));
    }
    if (column.result) {
      const auto clock = target_clock_note(request);
      if (!clock.empty()) notes.push_back(fmt::format("{}: {}", request.label, clock));
    }
    if (column.result && column.result->reuse && column.result->reuse->covers < 0.995) {
      notes.push_back(fmt::format("operand reuse of {} is known for {:.0f} % of the multiply-adds",
                                  request.label, 100 * column.result->reuse->covers));
    }
  }
  if (!comparison.no_difference.empty()) {
    notes.push_back(fmt::format("the first node that differs could not be found: {}",
                                comparison.no_difference));
  }
  if (comparison.recorded.empty())
    notes.push_back(
        "the repository holds no recorded session of a real GPU; "
        "experiments/studies/rivals/gpu_session.sh "
        "records one where there is a GPU");
  return notes;
}

}  // namespace

Agreement Comparison::verdict() const {
  Agreement verdict;
  const MachineResult* first = nullptr;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].result) continue;
    const auto& result = *columns[i].result;
    verdict.machines.push_back(result.request.label);
    if (first == nullptr) first = &result;
    const bool losses = result.losses == first->losses;
    const bool weights = result.weights_sha256 == first->weights_sha256;
    const bool masks = result.masks_sha256 == first->masks_sha256;
    if (!(losses && weights && masks)) {
      if (verdict.different.empty()) verdict.differs = i;
      verdict.different.push_back(result.request.label);
    }
    verdict.losses = verdict.losses && losses;
    verdict.weights = verdict.weights && weights;
    verdict.masks = verdict.masks && masks;
  }
  return verdict;
}

const MachineResult* Comparison::baseline() const {
  for (const auto& column : columns) {
    if (column.result && !column.request.stands_in()) return &*column.result;
  }
  return nullptr;
}

std::optional<double> speedup_of(const Comparison& comparison, const MachineResult& result) {
  const auto* baseline = comparison.baseline();
  if (baseline == nullptr || result.request.stands_in() || result.epoch.seconds <= 0)
    return std::nullopt;
  return baseline->epoch.seconds / result.epoch.seconds;
}

Json to_json(const Comparison& comparison) {
  Json machines = Json::array();
  const MachineResult* first = nullptr;
  for (const auto& column : comparison.columns) {
    if (!column.result) {
      machines.push_back(absent_json(column));
      continue;
    }
    if (first == nullptr) first = &*column.result;
    auto machine = machine_json(*column.result, *first);
    machine["speedup"] = nullptr;
    if (const auto speedup = speedup_of(comparison, *column.result)) {
      machine["speedup"] = {
          {"value", *speedup},
          {"kinds",
           {to_string(comparison.baseline()->epoch.kind), to_string(column.result->epoch.kind)}},
          {"of", "epoch"}};
    }
    machines.push_back(std::move(machine));
  }
  return {
      {"experiment", experiment_json(comparison)}, {"machines", std::move(machines)},
      {"verdict", verdict_json(comparison)},       {"recorded", recorded_json(comparison.recorded)},
      {"energy_table", energy_table_json()},       {"notes", notes_json(comparison)}};
}

}  // namespace triptych::compare
