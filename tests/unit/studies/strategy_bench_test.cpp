// Modelled strategies: elements of the collectives, and the links between the ranks.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/strategy_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "core/base/error.h"

namespace triptych::studies {
namespace {

using Kind = parallel::Strategy::Kind;
using testing::Each;
using testing::ElementsAre;

/// One rank alone, and two ranks with the strategy.
std::vector<StrategyRow> rows_of(const parallel::Strategy& strategy, int ranks,
                                 const std::string& interconnect = "ring") {
  StrategyWork work;
  work.model = model_preset("unet-s");
  work.model.base = 2;
  work.model.depth = 1;
  work.model.size = 16;
  work.training.batch = ranks;
  work.strategies = {strategy};
  work.ranks = {ranks};
  ModelledCluster cluster;
  cluster.figures = machines::find_figures("rtx2070super");
  cluster.interconnect = interconnect;
  cluster.link = {1e-6, 1e9};
  cluster.overlap = false;
  return model_strategies(work, cluster, std::array{EpochModel{}}).front();
}

std::int64_t parameters(const StrategyRow& replicated) { return replicated.bytes_sent / 4; }

TEST(StrategyBench, data_parallel_ranks_sum_gradients_and_stages_pass_activations) {
  const auto replicated = rows_of({}, 2), layers = rows_of({.kind = Kind::Pipeline}, 2);
  EXPECT_THAT(replicated[0].elements_summed, ElementsAre(0));
  const auto all = parameters(replicated[1]);  // and the loss, of a ring of two
  EXPECT_GT(all, 100);
  EXPECT_THAT(replicated[1].elements_summed, ElementsAre(all, all));
  EXPECT_THAT(replicated[1].elements_passed, Each(0));
  EXPECT_THAT(layers[1].elements_summed, ElementsAre(1, 1)) << "the loss";
  EXPECT_THAT(layers[1].elements_passed, Each(testing::Gt(0)));
}

TEST(StrategyBench, a_server_is_slower_behind_a_switch_than_with_links_of_a_ring) {
  const parallel::Strategy server = {.kind = Kind::Server};
  const double ring = rows_of(server, 4)[1].modelled_communication_s;
  const double switched = rows_of(server, 4, "switch")[1].modelled_communication_s;
  EXPECT_GT(switched, 1.5 * ring);
  EXPECT_THROW(rows_of(server, 4, "torus:3x2"), InvalidArgument);
}

}  // namespace
}  // namespace triptych::studies
