// SPDX-License-Identifier: Apache-2.0
#include "parallel/cluster/step_price.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/ops/collectives.h"
#include "parallel/strategies/communication_cost.h"

namespace triptych::parallel {
namespace {

/// All ranks' clocks, and one rank after another's story told to them.
class Pricer {
 public:
  Pricer(int world_size, const Cluster& cluster)
      : cluster_(cluster),
        world_size_(world_size),
        time_(cluster.interconnect, cluster.add_bytes_per_s) {}

  StepPrice run(std::span<const RankPlan> ranks) {
    StepPrice price;
    for (rank_ = 0; rank_ < world_size_; ++rank_) {
      sent_ = 0;
      marked_ = 0;
      const auto& plan = ranks[static_cast<std::size_t>(rank_)];
      for (const auto& step : plan.steps) tell(*plan.graph, step);
      price.bytes_sent.push_back(sent_);
    }
    time_.advance();
    price.ranks = time_.ranks();
    price.lines = time_.timelines();
    for (const auto& rank : price.ranks) price.seconds = std::max(price.seconds, rank.total_s);
    return price;
  }

 private:
  void tell(const Graph& graph, const RankStep& step) {
    const auto& node = graph.node(step.node);
    const auto needed = std::min(step.collectives_needed, marked_);
    if (needed > 0) time_.wait(rank_, needed);
    if (!node.op->collective()) {
      if (step.seconds > 0) time_.compute(rank_, step.seconds);
      return;
    }
    copy(graph, node.inputs);
    exchange(graph, node);
    if (cluster_.overlap) {
      time_.mark(rank_, node.name);
      ++marked_;
    } else {
      copy(graph, node.outputs);
    }
  }

  /// Every byte is read here and written there.
  void copy(const Graph& graph, Values values) {
    if (cluster_.copy_bytes_per_s == 0) return;
    double bytes = 0;
    for (const auto value : values) bytes += static_cast<double>(graph.spec(value).bytes());
    time_.compute(rank_, 2 * bytes / cluster_.copy_bytes_per_s);
  }

  void exchange(const Graph& graph, const Node& node) {
    const auto call = collective_of(graph, node);
    const auto members = members_of(call.axis);
    const auto own = std::ranges::find(members, rank_) - members.begin();
    Schedule schedule;
    if (call.peer >= 0) {
      const auto kind = call.sends ? ScheduleStep::Kind::Send : ScheduleStep::Kind::Receive;
      schedule.steps.push_back(
          {.kind = kind, .peer = call.peer, .place = {Memory::Data, {0, call.elements}}});
    } else {
      schedule = make_schedule(call.collective, call.algorithm,
                               {.world_size = static_cast<int>(members.size()),
                                .rank = static_cast<int>(own),
                                .elements = call.elements});
    }
    for (const auto& step : schedule.steps) {
      if (step.kind == ScheduleStep::Kind::Send)
        sent_ += 4.0 * static_cast<double>(step.place.range.size());
    }
    time_.observer(rank_)->on_steps(schedule, members, sizeof(float));
  }

  /// The ranks of this one's line along an axis.
  std::vector<int> members_of(const std::string& axis) const {
    if (!cluster_.mesh.empty()) return cluster_.mesh.line(axis, rank_);
    std::vector<int> all(static_cast<std::size_t>(world_size_));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  const Cluster& cluster_;
  int world_size_;
  SimulatedTime time_;
  int rank_ = 0;
  double sent_ = 0;
  std::size_t marked_ = 0;  ///< collectives of this rank
};

}  // namespace

StepPrice price_step(std::span<const RankPlan> ranks, const Cluster& cluster) {
  const int world_size = cluster.interconnect.world_size();
  if (std::ssize(ranks) != world_size) {
    throw InvalidArgument(fmt::format("{} ranks on an interconnect of {}; give it as many",
                                      ranks.size(), world_size));
  }
  return Pricer(world_size, cluster).run(ranks);
}

}  // namespace triptych::parallel
