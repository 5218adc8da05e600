// Tensor parallelism (Shoeybi et al., "Megatron-LM", 2019): every rank computes the whole batch
// with a part of each layer.
//   convolutions   each rank computes a part of the output channels from all input channels.
//                  Channelwise operators after it (batch normalisation, ReLU, pooling) stay apart
//   matrix products in pairs: the first makes a part of the columns, the second multiplies that
//                  part with its rows, and the sum over the ranks is whole again
// Operands that the next operator needs whole are gathered, and parts of a sum are added up.
// Which of that an operator can do is its own to say (Op::shardings). Here stands when it is done.
// An output is computed from whole operands as on one rank. Gradients of inputs, and second
// products of a pair, are sums over the ranks' parts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/nn/training_graph.h"
#include "core/ops/collectives.h"
#include "parallel/strategies/state_home.h"

namespace triptych::parallel {

struct TensorParallelOptions {
  int parts = 1;                                       ///< ranks of the axis "tp"
  int place = 0;                                       ///< of this rank on it
  ReductionOrder order = ReductionOrder::RankOrdered;  ///< of additions (AllReduce)
};

struct TensorParallelGraph {
  TrainingGraph training;
  std::map<std::string, StateHome> homes;  ///< of the states that are cut
  /// Operators that gather cut operands because they have no rule (Op::shardings), sorted.
  std::vector<std::string> without_rule;
};

/// A rank's graph. Every rank computes the whole of a value that does not divide by the number of
/// parts.
TensorParallelGraph tensor_parallel(const TrainingGraph& training,
                                    const TensorParallelOptions& options);

}  // namespace triptych::parallel
