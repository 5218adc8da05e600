// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/reference_kernels.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <limits>
#include <list>
#include <memory>
#include <span>

#include "core/base/median.h"
#include "core/graph/passes/passes.h"
#include "core/nn/training_graph.h"
#include "core/ops/softmax.h"
#include "core/runtime/executor.h"

namespace triptych::measure {
namespace {

using training::DeviceSet;

constexpr int kLaunchSteps = 64, kLaunchRuns = 200, kProfiles = 9, kQuickProfiles = 3;
/// Steps of sizes and intensities within which samples become one point, per factor of two.
constexpr double kSteps = 4;
/// No kernel is faster than direct counting by more than Winograd's F(4x4, 3x3), 36/16.
constexpr double kMostFraction = 4;

/// Base, depth and size of the reference models, and the batch. Together they span from the layers
/// of unet-s to those of unet-m, at other channels and sizes than theirs. The first
/// kQuickReferences are the smallest.
struct Reference {
  std::int64_t base, depth, size, batch;
  OptimizerKind optimizer;
};
constexpr Reference kReferences[] = {
    {8, 2, 96, 2, OptimizerKind::Sgd},    {48, 3, 64, 1, OptimizerKind::Adam},
    {24, 2, 160, 1, OptimizerKind::Adam}, {80, 3, 64, 1, OptimizerKind::Adam},
    {48, 1, 128, 3, OptimizerKind::Adam}, {40, 3, 64, 4, OptimizerKind::Adam}};
constexpr std::size_t kQuickReferences = 2;

ModelConfig model_of(const Reference& reference) {
  auto model = model_preset("unet-s");
  model.base = reference.base;
  model.depth = reference.depth;
  model.size = reference.size;
  return model;
}

Graph graph_of(const Reference& reference, bool train) {
  const auto model = model_of(reference);
  if (!train) {
    auto graph = build_inference_graph(model, reference.batch, model.size, model.size);
    return optimize(std::move(graph), {.inference = true});
  }
  const TrainingOptions options = {.batch = reference.batch,
                                   .optimizer = {.kind = reference.optimizer}};
  return optimize(build_training_graph(model, options).graph, {});
}

/// A plan of a reference model with its machine and memory, all inputs zero.
struct Run {
  DeviceSet machine;
  StateStore states;
  Executor executor;

  Run(const training::ExecutionConfig& config, const Reference& reference, bool train)
      : machine(config),
        states(machine.device()),
        executor(make_plan(graph_of(reference, train), machine.devices(), machine.plan_options()),
                 states) {
    const auto& graph = executor.plan().graph;
    for (const auto id : graph.values_of(ValueKind::Input)) {
      executor.set_input(graph.value(id).name, Tensor(graph.spec(id)));
    }
    executor.run();
  }
};

/// Runs a plan over and over in a thread of its own.
class Neighbour {
 public:
  explicit Neighbour(Executor& executor)
      : runs_(std::async(std::launch::async, [this, &executor] {
          while (!done_) executor.run();
        })) {}
  ~Neighbour() { done_ = true; }  // and runs_ waits for the last run
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

  /// Rethrows the exception of a run.
  void stop() {
    done_ = true;
    runs_.get();
  }

 private:
  std::atomic<bool> done_ = false;
  std::future<void> runs_;
};

/// The medians of the first run's nodes while the others run concurrently.
void sample(std::vector<std::unique_ptr<Run>>& runs, const machines::NodeTimes& times,
            double launch_s, int profiles, std::vector<KernelSample>& samples) {
  std::vector<std::vector<double>> seconds;
  std::list<Neighbour> others;
  for (std::size_t i = 1; i < runs.size(); ++i) others.emplace_back(runs[i]->executor);
  for (int p = 0; p < profiles; ++p) {
    const auto profile = runs[0]->executor.run_profiled();
    seconds.resize(profile.size());
    for (std::size_t i = 0; i < profile.size(); ++i) {
      seconds[i].push_back(profile[i].time.seconds);
    }
  }
  for (auto& other : others) other.stop();
  const auto& plan = runs[0]->executor.plan();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& step = plan.steps[i];
    if (step.entry == nullptr || step.device != 0) continue;
    const auto& node = plan.graph.node(step.node);
    const auto cost = machines::cost_of(plan.graph, node);
    if (cost.bytes == 0) continue;
    const double bound_s = times.bound(cost);
    const double own = median_of(seconds[i]) - launch_s;
    samples.push_back({fmt::format("{}/{}", node.op->name(), step.entry->name), bound_s,
                       cost.flops / cost.bytes, std::max(own, bound_s / kMostFraction)});
  }
}

}  // namespace

LaunchCost measure_launch(const DeviceSet& machine) {
  Graph graph;
  auto value = graph.add_input("x", {DType::F32, Shape{1, 1}});
  for (int i = 0; i < kLaunchSteps; ++i) value = graph.add_node(make_op(Softmax{}), {{value}})[0];
  graph.mark_output("y", value);
  StateStore states(machine.device());
  Executor executor(make_plan(std::move(graph), machine.devices(), machine.plan_options()), states);
  executor.run();
  std::vector<double> run, profiled;
  for (int i = 0; i < kLaunchRuns; ++i) {
    const double start = machine.device().elapsed().seconds;
    executor.run();
    run.push_back((machine.device().elapsed().seconds - start) / kLaunchSteps);
    for (const auto& step : executor.run_profiled()) profiled.push_back(step.time.seconds);
  }
  return {.in_run = median_of(std::move(run)), .profiled = median_of(std::move(profiled))};
}

std::vector<KernelSample> measure_kernels(const training::ExecutionConfig& config,
                                          const machines::NodeTimes& times, int busy, bool quick) {
  const double launch_s = measure_launch(DeviceSet(config)).profiled;
  std::vector<KernelSample> samples;
  std::span<const Reference> references = kReferences;
  if (quick) references = references.first(kQuickReferences);
  for (const auto& reference : references) {
    for (const bool train : {true, false}) {
      std::vector<std::unique_ptr<Run>> runs;
      runs.reserve(static_cast<std::size_t>(busy));
      for (int r = 0; r < busy; ++r) {
        runs.push_back(std::make_unique<Run>(config, reference, train));
      }
      sample(runs, times, launch_s, quick ? kQuickProfiles : kProfiles, samples);
    }
  }
  return samples;
}

std::map<std::string, std::vector<machines::Efficiency>> points_of(
    const std::vector<KernelSample>& samples) {
  const auto step = [](double value) {
    return value > 0 ? std::lround(kSteps * std::log2(value)) : std::numeric_limits<long>::min();
  };
  /// Sums over the samples of one point.
  struct Sums {
    double bounds = 0, intensities = 0, seconds = 0;
    int count = 0;
  };
  std::map<std::string, std::map<std::pair<long, long>, Sums>> sums;
  for (const auto& sample : samples) {
    if (sample.bound_s <= 0) continue;
    auto& point = sums[sample.kernel][{step(sample.bound_s), step(sample.flops_per_byte)}];
    point.bounds += sample.bound_s;
    point.intensities += sample.flops_per_byte;
    point.seconds += sample.seconds;
    ++point.count;
  }
  std::map<std::string, std::vector<machines::Efficiency>> points;
  for (const auto& [kernel, list] : sums) {
    for (const auto& [where, point] : list) {
      points[kernel].push_back({point.bounds / point.count, point.intensities / point.count,
                                point.bounds / point.seconds});
    }
  }
  return points;
}

}  // namespace triptych::measure
