// SPDX-License-Identifier: Apache-2.0
#include "experiments/compare/report_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/list_text.h"
#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"

namespace triptych::compare {
namespace {

using training::DeviceSet;
using training::TrainingRun;

bool same_bits(const Tensor& a, const Tensor& b) {
  const auto x = a.bytes(), y = b.bytes();
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0);
}

/// One machine in training.
class Side {
 public:
  Side(const MachineRequest& request, const Experiment& experiment)
      : machine_(request.config),
        run_(machine_, experiment.run, run_folder(experiment, request), experiment.load),
        batch_(run_.config().training.batch) {}

  /// One step of the run. Returns the loss.
  float train(std::int64_t step) {
    const auto images = run_.batcher().draw(step * batch_, batch_);
    return run_.trainer().step(images.x, images.y, run_.learning_rate(step));
  }

  TensorMap states() {
    TensorMap states;
    for (const auto& [name, source] : run_.trainer().state_sources())
      states.emplace(name, source.read());
    return states;
  }

  /// One step from `states` on. Every value of it can then be read by its name.
  std::unique_ptr<Executor> run_kept(std::int64_t step, const TensorMap& states) {
    const auto& config = run_.config();
    auto graph = optimize(build_training_graph(config.model, config.training).graph,
                          {.memory_limit = config.memory_limit_mib << 20});
    auto options = machine_.plan_options();
    options.keep_values = true;
    kept_states_ = std::make_unique<StateStore>(machine_.device());
    auto executor = std::make_unique<Executor>(
        make_plan(std::move(graph), machine_.devices(), options), *kept_states_);
    for (const auto& [name, tensor] : states) kept_states_->write(name, tensor);
    const auto images = run_.batcher().draw(step * batch_, batch_);
    executor->set_input("x", images.x);
    executor->set_input("target", images.y);
    executor->set_input("learning_rate", scalar_tensor(run_.learning_rate(step)));
    executor->run();
    return executor;
  }

 private:
  DeviceSet machine_;
  TrainingRun run_;
  std::int64_t batch_;
  std::unique_ptr<StateStore> kept_states_;
};

double value_at(const Tensor& tensor, std::size_t index) {
  return visit_dtype(tensor.dtype(), [&](auto tag) {
    return double{static_cast<float>(tensor.as<decltype(tag)>()[index])};
  });
}

/// Which elements of a value differ in some bit.
void compare_elements(const Tensor& a, const Tensor& b, Difference& difference) {
  const auto size = dtype_size(a.dtype());
  const auto *x = a.bytes().data(), *y = b.bytes().data();
  difference.of = a.elements();
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (std::memcmp(x + at * size, y + at * size, size) == 0) continue;
    if (difference.different_elements++ > 0) continue;
    difference.element = i;
    difference.values[0] = value_at(a, at);
    difference.values[1] = value_at(b, at);
  }
}

/// The first value, in order of the first plan, that both have and that differs.
void compare_values(const Executor& first, const Executor& second, Difference& difference) {
  const auto& graph = first.plan().graph;
  for (const auto& step : first.plan().steps) {
    const auto& node = graph.node(step.node);
    for (std::size_t output = 0; output < node.outputs.size(); ++output) {
      const auto& name = graph.value(node.outputs[output]).name;
      if (!second.plan().graph.contains(name)) continue;
      const Tensor a = first.output(name), b = second.output(name);
      if (a.spec() != b.spec() || same_bits(a, b)) continue;
      difference.node = node.name;
      difference.output = output;
      compare_elements(a, b, difference);
      return;
    }
  }
}

bool same_states(const TensorMap& a, const TensorMap& b) {
  return std::ranges::all_of(a, [&](const auto& state) {
    const auto other = b.find(state.first);
    return other != b.end() && same_bits(state.second, other->second);
  });
}

/// A second run goes to folders of its own.
Experiment apart(Experiment experiment) {
  experiment.folder /= "difference";
  return experiment;
}

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

Json energy_table_json(const machines::EnergyTable& table) {
  Json list = Json::array();
  for (const auto& event : table.events())
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

std::string promise_of(const MachineRequest& first, const MachineRequest& second) {
  const auto a = first.config.contract, b = second.config.contract;
  if (a != b) {
    return fmt::format("contracts differ: {} computes in {}, {} in {}", first.label, to_string(a),
                       second.label, to_string(b));
  }
  if (a == Contract::Bf16Exact || a == Contract::Int8) {
    return fmt::format("{} promises the same bits on every machine: this is a fault", to_string(a));
  }
  return fmt::format(
      "{} lets each machine add in an order of its own; bf16-exact promises the same bits",
      to_string(a));
}

Difference find_difference(const MachineRequest& first, const MachineRequest& second,
                           const Experiment& experiment, std::int64_t steps,
                           const std::atomic<bool>& interrupted) {
  Difference difference = {
      .first = first.label, .second = second.label, .node = {}, .why = promise_of(first, second)};
  const auto own = apart(experiment);
  Side a(first, own), b(second, own);
  TensorMap before = a.states();
  for (std::int64_t step = 0; step < steps && !interrupted; ++step) {
    const float loss_a = a.train(step), loss_b = b.train(step);
    auto after = a.states();
    const bool same = std::bit_cast<std::uint32_t>(loss_a) == std::bit_cast<std::uint32_t>(loss_b);
    if (same && same_states(after, b.states())) {
      before = std::move(after);
      continue;
    }
    difference.step = step;
    const auto kept_a = a.run_kept(step, before), kept_b = b.run_kept(step, before);
    compare_values(*kept_a, *kept_b, difference);
    return difference;
  }
  return difference;
}

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
    auto machine = machine_json(*column.result, *first, comparison.energy);
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
  return {{"experiment", experiment_json(comparison)},
          {"machines", std::move(machines)},
          {"verdict", verdict_json(comparison)},
          {"recorded", recorded_json(comparison.recorded)},
          {"energy_table", energy_table_json(comparison.energy)},
          {"notes", notes_json(comparison)}};
}

}  // namespace triptych::compare
