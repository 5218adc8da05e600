// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/rank_plans.h"

#include <algorithm>

#include "core/graph/passes/passes.h"
#include "parallel/strategies/communication_cost.h"
#include "parallel/strategies/pipeline.h"

namespace triptych::machines {
namespace {

/// After this many, the assumed concurrency of the ranks is the actual one.
constexpr int kRounds = 3;

}  // namespace

using parallel::Communicator;
using training::DeviceSet;
using training::TrainerConfig;

RankPlans::RankPlans(const DeviceSet& machine, const TrainerConfig& config,
                     const training::ParallelConfig& parallel) {
  validate(parallel.strategy);
  mesh_ = parallel.strategy.mesh;
  overlap_ = parallel.overlap && parallel.ranks > 1;
  if (parallel.ranks > 1) {
    group_ = std::make_unique<parallel::ThreadGroup>(parallel.ranks,
                                                     parallel::Seconds(parallel.timeout_s));
  }
  auto undrawn = config;
  undrawn.options.draw = false;
  for (int rank = 0; rank < parallel.ranks; ++rank) {
    auto options = machine.plan_options();
    if (group_) {
      communicators_.push_back(std::make_unique<Communicator>(group_->transport(rank)));
      collectives_.push_back(std::make_unique<parallel::RankCollectives>(
          *communicators_.back(), mesh_,
          overlap_ ? parallel::Overlap::Lane : parallel::Overlap::None));
      options.placement.collectives = collectives_.back().get();
    }
    auto own = parallel::make_rank_graph(parallel.strategy,
                                         training::strategy_request(undrawn, parallel, rank));
    auto graph = optimize(std::move(own.graph), {.memory_limit = config.memory_limit_mib << 20});
    plans_.push_back(make_plan(std::move(graph), machine.devices(), options));
  }
}

double RankPlans::memory_bytes(int rank) const {
  return static_cast<double>(plan(rank).total_bytes(0));
}

std::int64_t RankPlans::bytes_sent() const {
  std::int64_t most = 0;
  for (const auto& plan : plans_) {
    most = std::max(most, parallel::communication_cost(plan.graph, ranks(), mesh_).bytes_sent);
  }
  return most;
}

std::vector<double> shared_parts(const std::vector<parallel::RankTimeline>& lines) {
  std::vector<double> parts;
  for (const auto& own : lines) {
    double all = 0, shared = 0;
    for (const auto& [start, end] : own.computations) {
      all += end - start;
      // With one other, and nearly with more: its computations do not overlap one another.
      double beside = 0;
      for (const auto& other : lines) {
        if (&other == &own) continue;
        double together = 0;
        for (const auto& [from, to] : other.computations)
          together += std::max(0.0, std::min(end, to) - std::max(start, from));
        beside = std::max(beside, together);
      }
      shared += beside;
    }
    parts.push_back(all > 0 ? shared / all : 0);
  }
  return parts;
}

parallel::StepPrice RankPlans::price_mixture(const NodeTimes& times,
                                             const parallel::Cluster& cluster,
                                             const NodeTimes* alone,
                                             const std::vector<double>& shared) const {
  std::vector<parallel::RankPlan> ranks;
  for (std::size_t r = 0; r < plans_.size(); ++r) {
    const auto& plan = plans_[r];
    auto& rank = ranks.emplace_back(parallel::RankPlan{.graph = &plan.graph, .steps = {}});
    for (const auto& step : plan.steps) {
      const bool collective = plan.graph.node(step.node).op->collective();
      double seconds = collective ? 0 : times.time(plan, step).seconds;
      if (alone != nullptr && !collective) {
        seconds = shared[r] * seconds + (1 - shared[r]) * alone->time(plan, step).seconds;
      }
      rank.steps.push_back(
          {.node = step.node, .seconds = seconds, .collectives_needed = step.collectives_needed});
    }
  }
  return price_step(ranks, cluster);
}

parallel::StepPrice RankPlans::price(const NodeTimes& times, parallel::Cluster cluster,
                                     const NodeTimes* alone) const {
  cluster.mesh = mesh_;
  cluster.overlap = overlap_;
  std::vector<double> shared(plans_.size(), 1);
  auto price = price_mixture(times, cluster, alone, shared);
  for (int round = 0; round < kRounds && alone != nullptr; ++round) {
    shared = shared_parts(price.lines);
    price = price_mixture(times, cluster, alone, shared);
  }
  return price;
}

std::map<std::string, double> model_nodes(const DeviceSet& machine, const TrainerConfig& config,
                                          std::int64_t batch, const NodeTimes& times) {
  auto options = config.options;
  options.batch = batch;
  options.draw = false;
  auto graph = optimize(build_training_graph(config.model, options).graph, {});
  const auto plan = make_plan(std::move(graph), machine.devices(), machine.plan_options());
  std::map<std::string, double> seconds;
  for (const auto& step : plan.steps) {
    parallel::add_node_seconds(seconds, plan.graph.node(step.node), times.time(plan, step).seconds);
  }
  return seconds;
}

}  // namespace triptych::machines
