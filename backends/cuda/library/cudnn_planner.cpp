// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/library/cudnn_planner.h"

#include <fmt/core.h>

#include <map>
#include <optional>

#include "core/base/error.h"

namespace triptych::cuda::cudnn {
namespace {

/// Engines that need more are skipped: the plan's scratch would outgrow their benefit.
constexpr std::int64_t kMostWorkspaceBytes = std::int64_t{1} << 28;

Descriptor engine_of(const Descriptor& configuration) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  return engine;
}

EngineNotes notes_of(const Descriptor& engine) {
  const auto numerical = engine.get_list<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
  const auto behaviour = engine.get_list<cudnnBackendBehaviorNote_t>(
      CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
  return {{numerical.begin(), numerical.end()}, {behaviour.begin(), behaviour.end()}};
}

/// The plan of an engine's configuration, or why there is none.
struct Attempt {
  std::optional<Descriptor> plan;
  std::string reason;
};

Attempt try_plan(const Descriptor& configuration, const Descriptor& device) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  try {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    plan.finalize("building a plan");
  } catch (const Error& error) {
    return {std::nullopt, error.what()};
  }
  if (plan.get_int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) > kMostWorkspaceBytes) {
    return {std::nullopt, fmt::format("wants more than {} MiB", kMostWorkspaceBytes >> 20)};
  }
  return {std::move(plan), ""};
}

Descriptor described(const std::string& description) {
  Descriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, description);
  device.finalize("reading the description of a GPU");
  return device;
}

Descriptor described(cudnnHandle_t handle) {
  Descriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set(CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, handle);
  device.finalize("describing the GPU");
  return device;
}

}  // namespace

std::string refusal(const EngineNotes& notes, Contract contract) {
  const auto has = [&](cudnnBackendNumericalNote_t note) { return notes.numerical.contains(note); };
  if (contract != Contract::F32 && contract != Contract::Bf16) {
    return fmt::format("no engine states the order of its sums, as {} asks", to_string(contract));
  }
  if (contract == Contract::F32 && has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) {
    return "tensor cores round float32 operands to TF32";
  }
  if (has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return "rounds its operands further";
  if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return "sums in less than float32";
  if (has(CUDNN_NUMERICAL_NOTE_FFT)) return "computes by FFT";
  for (const auto note :
       {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13}) {
    if (has(note)) return "computes by Winograd's transform";
  }
  if (has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return "gives other bits in each run";
  if (notes.behaviour.contains(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION)) {
    return "is compiled when it is first used";
  }
  return "";
}

Planner::Planner(cudnnHandle_t handle, TextCache* cache)
    : device_(described(handle)), cache_(cache) {}

Planner::Planner(const std::string& description, TextCache* cache)
    : device_(described(description)), cache_(cache) {}

std::string Planner::description() const {
  return device_.get_text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
}

ConvPlan Planner::plan(const ConvProblem& problem, Contract contract) {
  if (cache_ == nullptr) return search(problem, contract);
  const auto key = fmt::format("cuDNN plan | {} | {} | {} | {}", calls().version(), description(),
                               to_string(contract), to_string(problem));
  if (const auto kept = cache_->find(key)) {
    try {
      return load(*kept);
    } catch (const Error&) {
      // Damaged, or of a cuDNN that differs in more than its version says: it is searched again.
    }
  }
  auto found = search(problem, contract);
  cache_->insert(key, found.json);
  return found;
}

ConvPlan Planner::load(const std::string& json) const {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device_);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, json);
  plan.finalize("loading a plan");
  return {.json = json,
          .workspace_bytes = plan.get_int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE),
          .kept = true};
}

std::vector<Descriptor> Planner::configurations(const OperationGraph& graph,
                                                cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device_);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  heuristic.finalize("asking the heuristic");
  std::int64_t count = 0;
  check(calls().get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
        "counting engines");
  std::vector<Descriptor> list;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    list.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(list.back().get());
  }
  if (count > 0) {
    check(calls().get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data()),
          "listing engines");
  }
  // It may promise more than it gives.
  list.erase(list.begin() + count, list.end());
  return list;
}

ConvPlan Planner::search(const ConvProblem& problem, Contract contract) {
  const auto graph = make_graph(problem);
  std::map<std::string, int> refusals;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const auto& configuration : configurations(graph, mode)) {
      const auto engine = engine_of(configuration);
      auto reason = refusal(notes_of(engine), contract);
      if (reason.empty()) {
        const auto attempt = try_plan(configuration, device_);
        if (attempt.plan) {
          return {
              .json = attempt.plan->get_text(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION),
              .engine = engine.get_int(CUDNN_ATTR_ENGINE_GLOBAL_INDEX),
              .workspace_bytes = attempt.plan->get_int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)};
        }
        reason = attempt.reason;
      }
      ++refusals[reason];
    }
  }
  std::string message = "cuDNN has no engine for " + to_string(problem);
  for (const auto& [reason, count] : refusals) {
    message += fmt::format("; {} of its engines: {}", count, reason);
  }
  throw UnsupportedError(message);
}

}  // namespace triptych::cuda::cudnn
