// The collective nodes of one rank's graph, run through its communicator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/collectives.h"
#include "core/runtime/device.h"
#include "parallel/comm/simulated_time.h"

namespace triptych::parallel {

/// The algorithm that adds in an order of AllReduce: "rank-ordered", "shard-tree" or "ring". Throws
/// InvalidArgument listing the names.
Algorithm algorithm_of_order(std::string_view order);

/// The communicator, which must outlive the runner, is that of the only mesh axis, "dp".
class RankCollectives : public CollectiveRunner {
 public:
  /// With `time` the rank's clock is simulated.
  explicit RankCollectives(Communicator& communicator, SimulatedTime* time = nullptr);

  KernelTable kernels() const override;
  Communicator& communicator() const { return communicator_; }

  /// Tells the simulated clock what `device` has computed since the last call.
  void count_computation(Device& device);
  /// What the device's clock counts now is no computation.
  void skip(Device& device);

 private:
  Communicator& communicator_;
  SimulatedTime* time_;
  double counted_s_ = 0;  ///< of the device's clock
};

}  // namespace triptych::parallel
