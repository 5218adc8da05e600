// The collective nodes of one rank's graph, run through its communicator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/runtime/collectives.h"
#include "parallel/comm/communicator.h"

namespace triptych::parallel {

/// The algorithm that adds in an order of AllReduce: "rank-ordered", "shard-tree" or "ring". Throws
/// InvalidArgument listing the names.
Algorithm algorithm_of_order(std::string_view order);

/// The communicator, which must outlive the runner, is that of the only mesh axis, "dp".
class RankCollectives : public CollectiveRunner {
 public:
  explicit RankCollectives(Communicator& communicator) : communicator_(communicator) {}

  KernelTable kernels() const override;
  Communicator& communicator() const { return communicator_; }

 private:
  Communicator& communicator_;
};

}  // namespace triptych::parallel
