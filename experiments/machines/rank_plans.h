// A training step's plan on every rank, made but never run, and its estimated time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "experiments/machines/node_time.h"
#include "experiments/training/device_set.h"
#include "experiments/training/rank.h"
#include "parallel/cluster/step_price.h"
#include "parallel/comm/thread_group.h"

namespace triptych::machines {

class RankPlans {
 public:
  /// All ranks' plans on the devices of `machine`, which must outlive them, with the strategy of
  /// its configuration. In a pipeline, `config.node_seconds` balances the cut. Empty: its work.
  /// Throws InvalidArgument for a batch that cannot be shared.
  RankPlans(const training::DeviceSet& machine, const training::TrainerConfig& config,
            const training::ParallelConfig& parallel);

  int ranks() const { return static_cast<int>(plans_.size()); }
  const Plan& plan(int rank) const { return plans_[static_cast<std::size_t>(rank)]; }
  /// Bytes on a rank's device, states included.
  double memory_bytes(int rank) const;
  /// Sent per step by the rank that sends most.
  std::int64_t bytes_sent() const;
  const parallel::Mesh& mesh() const { return mesh_; }

  /// Time of a step with the node times of `times`. Mesh and overlap of `cluster` are set to the
  /// plans'. With `alone`, the node times while the other ranks wait, each rank's nodes take a
  /// mixture, weighted by the part of its work during which others also work.
  parallel::StepPrice price(const NodeTimes& times, parallel::Cluster cluster,
                            const NodeTimes* alone = nullptr) const;

 private:
  parallel::StepPrice price_mixture(const NodeTimes& times, const parallel::Cluster& cluster,
                                    const NodeTimes* alone,
                                    const std::vector<double>& shared) const;

  parallel::Mesh mesh_;
  bool overlap_ = false;
  std::unique_ptr<parallel::ThreadGroup> group_;
  std::vector<std::unique_ptr<parallel::Communicator>> communicators_;
  std::vector<std::unique_ptr<parallel::RankCollectives>> collectives_;
  std::vector<Plan> plans_;  ///< last: their kernels use the others
};

/// The part of each rank's computation during which another computes, too.
std::vector<double> shared_parts(const std::vector<parallel::RankTimeline>& lines);

/// Modelled seconds of each node of a training step with that batch on one machine, by name: a
/// model of training::measure_nodes.
std::map<std::string, double> model_nodes(const training::DeviceSet& machine,
                                          const training::TrainerConfig& config, std::int64_t batch,
                                          const NodeTimes& times);

}  // namespace triptych::machines
