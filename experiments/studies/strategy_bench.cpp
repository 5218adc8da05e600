// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/strategy_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "core/base/error.h"
#include "core/base/mapped.h"
#include "core/ops/collectives.h"
#include "experiments/measure/model_plan.h"
#include "experiments/training/trainer.h"

namespace triptych::studies {
namespace {

using Clock = std::chrono::steady_clock;
using machines::NodeTimes;
using machines::RankPlans;

/// Every strategy on every number of ranks, one rank alone first.
struct Variant {
  parallel::Strategy strategy;
  int ranks = 1;
};

std::vector<Variant> variants_of(const StrategyWork& work) {
  std::vector<Variant> variants = {{{}, 1}};
  for (const auto ranks : work.ranks) {
    if (ranks == 1) continue;
    for (const auto& strategy : work.strategies)
      variants.push_back({strategy, static_cast<int>(ranks)});
  }
  return variants;
}

training::ParallelConfig parallel_of(const Variant& variant) {
  training::ParallelConfig parallel;
  parallel.ranks = variant.ranks;
  parallel.strategy = variant.strategy;
  return parallel;
}

training::ExecutionConfig machine_of(const StrategyWork& work, const Variant& variant) {
  auto config = work.machine;
  config.parallel = parallel_of(variant);
  const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  const int all = config.threads > 0 ? config.threads : std::max(1, processors);
  config.threads = std::max(1, all / variant.ranks);
  return config;
}

/// Adds the elements of a rank's collectives to the row.
void add_elements(StrategyRow& row, const Graph& graph) {
  std::int64_t summed = 0, passed = 0;
  for (const auto& node : graph.nodes()) {
    if (!node.op->collective()) continue;
    const auto name = node.op->name();
    auto& sum = name == AllReduce::kName || name == ReduceScatter::kName ? summed : passed;
    for (const auto input : node.inputs) sum += graph.spec(input).shape.elements();
  }
  row.elements_summed.push_back(summed);
  row.elements_passed.push_back(passed);
}

StrategyRow describe(const Variant& variant, const RankPlans& plans) {
  StrategyRow row;
  row.strategy = variant.strategy;
  row.ranks = variant.ranks;
  if (variant.ranks > 1) {
    row.micro_batches = variant.strategy.micro_batches;
    row.bytes_sent = plans.bytes_sent();
  }
  for (int rank = 0; rank < plans.ranks(); ++rank) {
    row.memory_bytes.push_back(plans.memory_bytes(rank));
    add_elements(row, plans.plan(rank).graph);
  }
  return row;
}

/// The plans of a variant. If `times` exists, it determines the cut of pipelines.
RankPlans plan(const StrategyWork& work, const Variant& variant, const training::DeviceSet& machine,
               const training::ParallelConfig& parallel, const NodeTimes* times) {
  training::TrainerConfig config = {work.model, work.training};
  const auto& strategy = parallel.strategy;
  const bool cut = variant.ranks > 1 && strategy.kind == parallel::Strategy::Kind::Pipeline;
  if (cut && times != nullptr) {
    const auto rows = work.training.batch / strategy.micro_batches;
    config.node_seconds = model_nodes(machine, config, std::max<std::int64_t>(1, rows), *times);
  }
  return {machine, config, parallel};
}

/// One strategy in training.
struct StrategyRun {
  Variant variant;
  training::DeviceSet machine;
  training::Trainer trainer;
  std::vector<double> epochs;
  double communication_s = 0;

  StrategyRun(const StrategyWork& work, const Variant& own)
      : variant(own),
        machine(machine_of(work, own)),
        trainer(machine, {work.model, work.training}) {}

  void train(const Tensor& x, const Tensor& target, int steps, bool counts) {
    const auto before = trainer.communication_time().seconds;
    const auto start = Clock::now();
    for (int step = 0; step < steps; ++step) trainer.step(x, target, 1e-3F);
    if (!counts) return;
    epochs.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    communication_s += trainer.communication_time().seconds - before;
  }
};

/// An input of the whole batch, as one rank alone has it.
Tensor input_of(const StrategyRun& single, const char* name) {
  const auto& graph = single.trainer.plan().graph;
  return measure::noise_of(graph, graph.find(name));
}

/// Throws unless the figures were measured on a machine like this one, ranks included.
void require_calibration(const machines::MachineFigures& figures) {
  if (!figures.efficiencies.empty() && figures.links.contains("rank")) return;
  throw InvalidArgument(fmt::format(
      "{} has no measured kernels and link \"rank\"; give a file that triptych calibrate wrote on "
      "this machine",
      figures.name));
}

parallel::Cluster threads_cluster(const machines::MachineFigures& figures, int ranks) {
  const auto& [alpha, beta, add] = figures.links.at("rank");
  return {.interconnect = parallel::Interconnect::switched(ranks, {alpha.value / 2, beta.value}),
          .add_bytes_per_s = add ? add->value : 0,
          .copy_bytes_per_s = figures.memory_bytes_per_s() / ranks};
}

/// Adds the prediction of a calibration for the variant.
void predict(StrategyRow& row, const StrategyWork& work, const StrategyRun& run,
             const machines::MachineFigures& figures) {
  machines::Assumptions assumptions;
  assumptions.format = machines::format_of(work.machine.contract);
  assumptions.ranks = run.variant.ranks;
  const NodeTimes times(figures, assumptions);
  const auto plans = plan(work, run.variant, run.machine, run.machine.config().parallel, &times);
  double step_s = times.time(plans.plan(0)).seconds;
  if (run.variant.ranks > 1) {
    assumptions.busy = 1;
    const NodeTimes alone(figures, assumptions);
    const auto price = plans.price(times, threads_cluster(figures, run.variant.ranks), &alone);
    step_s = price.seconds;
    row.modelled_communication_s = work.steps * (price.ranks[0].total_s - price.ranks[0].compute_s);
  }
  row.modelled = Duration{step_s * work.steps, TimeKind::Modelled};
}

}  // namespace

std::string StrategyRow::name() const { return ranks == 1 ? "single" : to_string(strategy); }

Duration StrategyRow::time() const {
  if (epoch.samples > 0) return {epoch.median, TimeKind::Measured};
  return modelled.value_or(Duration{0, TimeKind::Modelled});
}

double speedup_percent(const StrategyRow& single, const StrategyRow& row) {
  return 100 * (single.time().seconds / row.time().seconds - 1);
}

std::vector<StrategyRow> measure_strategies(const StrategyWork& work, int epochs,
                                            const machines::MachineFigures* calibration) {
  if (calibration != nullptr) require_calibration(*calibration);
  auto runs = mapped<std::unique_ptr<StrategyRun>>(variants_of(work), [&](const auto& variant) {
    return std::make_unique<StrategyRun>(work, variant);
  });
  const auto x = input_of(*runs[0], "x"), target = input_of(*runs[0], "target");
  for (auto& run : runs) run->train(x, target, 1, false);
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (auto& run : runs) run->train(x, target, work.steps, true);
  std::vector<StrategyRow> rows;
  for (const auto& run : runs) {
    auto& row =
        rows.emplace_back(describe(run->variant, plan(work, run->variant, run->machine,
                                                      run->machine.config().parallel, nullptr)));
    row.threads = run->machine.threads();
    row.epoch = measure::statistics_of(run->epochs);
    row.communication_s = run->communication_s / epochs;
    if (calibration != nullptr) predict(row, work, *run, *calibration);
  }
  return rows;
}

std::vector<std::vector<StrategyRow>> model_strategies(const StrategyWork& work,
                                                       const ModelledCluster& cluster,
                                                       std::span<const EpochModel> epochs) {
  const training::DeviceSet planner(work.machine);
  const NodeTimes times(cluster.figures, cluster.assumptions);
  std::vector<std::vector<StrategyRow>> tables(epochs.size());
  double single_s = 0;
  for (const auto& variant : variants_of(work)) {
    auto parallel = parallel_of(variant);
    parallel.overlap = cluster.overlap;
    const auto plans = plan(work, variant, planner, parallel, &times);
    const auto row = describe(variant, plans);
    double step_s = times.time(plans.plan(0)).seconds, communication_s = 0;
    if (variant.ranks == 1) {
      single_s = step_s;
    } else {
      const auto price =
          plans.price(times, {.interconnect = parallel::make_interconnect(
                                  cluster.interconnect, variant.ranks, cluster.link)});
      step_s = price.seconds;
      communication_s = price.ranks[0].total_s - price.ranks[0].compute_s;
    }
    for (std::size_t i = 0; i < epochs.size(); ++i) {
      auto epoch = epochs[i];
      if (epoch.epoch_s == 0) epoch.epoch_s = single_s * work.steps;
      auto& own = tables[i].emplace_back(row);
      own.modelled_communication_s = communication_s * (epoch.epoch_s - epoch.fixed_s) / single_s;
      own.modelled =
          Duration{epoch_seconds(epoch, step_s / single_s, row.micro_batches), TimeKind::Modelled};
    }
  }
  return tables;
}

}  // namespace triptych::studies
