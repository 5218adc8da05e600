// The training step of a share of the batch. All shares together equal the step of the whole batch.
// A loss is a function of sums over the batch. A plain mean over equal shares is the average of the
// means of the shares. For other losses the shares add up the sums themselves:
//   counted means  a share's mean times its denominator, over the mean denominator of the shares
//   other sums     each share reads the sum over all shares in the place of its own (Dice)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/training_graph.h"
#include "core/ops/collectives.h"

namespace triptych::parallel {

struct Share {
  std::int64_t rows = 1;
  int shares = 1;  ///< that add up their sums. 1: the share is a batch of its own
  int number = 0;  ///< of the share in the whole batch. Random draws depend on it
};

struct ShareStep {
  TrainingGraph training;
  /// Reasons for differences from the step of the whole batch, each a clause.
  std::vector<std::string> inexact = {};
};

/// The step of a share. Where the loss needs it, `share_means` names means over all shares, which
/// the caller provides (pipeline, mean_over_ranks). A loss that is a plain mean keeps its graph.
ShareStep step_of_share(const TrainingStep& step, const Share& share);

/// `node` as an operator of the share `later` shares of the same size further on.
OpPtr drawn_later(const TrainingGraph& training, const Node& node, int later);

struct RankMeanOptions {
  std::vector<std::string> axes = {"dp"};  ///< of the mesh, the innermost first
  int ranks = 1;                           ///< along all axes
  ReductionOrder order = ReductionOrder::RankOrdered;
};

/// Replaces `share_means` by means over the ranks. The numerator is exact where the sums are whole
/// numbers below 2^24, so that equal counts give weights of exactly 1.
TrainingGraph mean_over_ranks(TrainingGraph training, const RankMeanOptions& options);

}  // namespace triptych::parallel
