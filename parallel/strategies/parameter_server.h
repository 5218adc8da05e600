// Central strategies: rank 0 has the parameters and updates them, the others ask for them and send
// gradients back, added in the order of the ranks. Its traffic grows with their number, the
// bottleneck that rings avoid.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "parallel/strategies/rank_graph.h"

namespace triptych::parallel {

struct ParameterServerOptions {
  int world_size = 2;
  int rank = 0;
  /// False: the server is a worker, too, and sends all parameters at once ("ps-sync"). True: it
  /// only stores and updates, and each worker fetches parameters just before they are read, and
  /// again behind the loss, so that it never has all of them ("central").
  bool central = false;
  std::size_t bucket_bytes =
      4U << 20;  ///< of gradients, and of parameters that are fetched together
};

/// A rank's graph: `training` was built for a worker's share of the batch. The bits of ps-sync are
/// those of data parallelism with rank-ordered sums.
RankGraph parameter_server(const TrainingGraph& training, const ParameterServerOptions& options);

}  // namespace triptych::parallel
