// Asynchronous training: rank 0, the server, has the model. The others, the workers, contribute to
// it each at its own pace, and get it back as it is then. Nobody waits for the slowest, except
// through a bound (stale synchronous parallel, Ho et al., 2013). The result depends only on the
// order of arrival of the contributions: it is recorded, and can be replayed.
//   ps-async         a worker contributes the gradients of each step, and the server updates with
//                    them at once: parameters change between a worker's reading and its update
//   local-sgd-async  a worker trains on its own for some steps and contributes by how much its
//                    states changed since it received them. The server adds its share to them
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "parallel/comm/communicator.h"
#include "parallel/strategies/rank_graph.h"

namespace triptych::parallel {

/// The graph of a rank under ps-async: a worker's has the gradients as outputs, the server's as
/// inputs. `training` was built for a worker's share of the batch.
RankGraph asynchronous_gradients(const TrainingGraph& training, int rank);
/// Under local-sgd-async: every rank has the whole step, which the server does not run.
RankGraph asynchronous_averages(const TrainingGraph& training, int rank);

/// A stretch of training: workers begin it with the same states, and all end it together.
struct Stretch {
  std::int64_t steps = 0;   ///< of each worker
  std::int64_t period = 1;  ///< steps of a worker between its contributions
  /// A worker continues while the slowest has finished all but this many of its contributions.
  std::int64_t bound = 0;
  std::size_t contributed = 0;  ///< elements of a contribution
  std::size_t returned = 0;     ///< elements of the server's reply
};

struct Server {
  /// Takes the contribution of a worker that has finished so many steps of the stretch before it.
  std::function<void(std::int64_t, std::span<const float>)> apply;
  std::function<void(std::span<float>)> read;  ///< the server's reply
  /// The mean loss of a step over the workers, in the order of the steps.
  std::function<void(std::int64_t, float)> on_loss;
  /// True: end the stretch as soon as all workers can end together.
  std::function<bool()> interrupted;
  /// Contributions count in this order of ranks, not in the order of arrival, then freely.
  std::span<const int> replay = {};
};

struct StretchRecord {
  std::int64_t steps = 0;  ///< of each worker: fewer than asked for when it was interrupted
  std::vector<int> order;  ///< the workers, as their contributions arrived
  double staleness = 0;  ///< mean number of others' contributions between reading and contributing
  std::int64_t most_staleness = 0;
};

/// Rank 0's part. Throws InvalidArgument when a replay does not fit the stretch.
StretchRecord serve(Communicator& communicator, const Stretch& stretch, const Server& server);

struct Worker {
  /// Step number of the stretch, from 0. Returns its loss.
  std::function<float(std::int64_t)> step;
  std::function<void(std::span<float>)> contribute;  ///< fills the contribution
  std::function<void(std::span<const float>)> take;  ///< the server's reply
};

/// The others' part.
void work(Communicator& communicator, const Stretch& stretch, const Worker& worker);

}  // namespace triptych::parallel
