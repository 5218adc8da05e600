// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/ops/collectives.h"
#include "parallel/strategies/communication_cost.h"
#include "tests/unit/parallel/rank_training.h"

namespace triptych::parallel {
namespace {

using testing::ElementsAre;

std::vector<Bucket> gradients(const std::vector<std::size_t>& bytes) {
  std::vector<Bucket> list;
  for (std::size_t i = 0; i < bytes.size(); ++i) list.push_back({{std::to_string(i)}, bytes[i]});
  return list;
}

std::vector<std::vector<std::string>> names(const std::vector<Bucket>& buckets) {
  std::vector<std::vector<std::string>> list;
  for (const auto& bucket : buckets) list.push_back(bucket.gradients);
  return list;
}

TEST(Buckets, are_full_but_for_the_one_that_comes_last) {
  const DataParallelOptions options = {.bucket_bytes = 10, .last_bucket_bytes = 4};
  EXPECT_THAT(names(make_buckets(gradients({4, 5, 6, 3, 2}), options)),
              ElementsAre(ElementsAre("0", "1"), ElementsAre("2", "3"), ElementsAre("4")));
  EXPECT_THAT(names(make_buckets(gradients({3, 99, 3}), options)),
              ElementsAre(ElementsAre("0"), ElementsAre("1"), ElementsAre("2")));
  EXPECT_TRUE(make_buckets({}, options).empty());
}

TrainingGraph training_graph(std::int64_t batch) {
  return build_training_graph(small_model(), {.batch = batch, .seed = 3});
}

/// Trains a few steps with that many ranks, which must agree. Returns the losses.
std::vector<float> train(int ranks, const std::string& order) {
  const auto outcomes = train_ranks("dp", ranks, order);
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.losses, outcomes[0].losses);
    for (const auto& [name, state] : outcome.states) {
      if (name.ends_with("running_mean") || name.ends_with("running_var")) continue;
      EXPECT_TRUE(std::ranges::equal(state.bytes(), outcomes[0].states.at(name).bytes())) << name;
    }
  }
  return outcomes[0].losses;
}

TEST(DataParallel, trains_as_one_rank_does_and_keeps_all_ranks_the_same) {
  const auto alone = train(1, "rank-ordered");
  for (const char* order : {"rank-ordered", "shard-tree", "ring"}) {
    const auto two = train(2, order);
    ASSERT_EQ(two.size(), alone.size());
    // Batch normalisation sees half of the batch, so the losses are near, not equal.
    for (std::size_t i = 0; i < two.size(); ++i)
      EXPECT_NEAR(two[i], alone[i], 0.05) << order << ", step " << i;
    EXPECT_LT(two.back(), two.front());
  }
}

TEST(DataParallel, with_two_ranks_has_the_same_bits_in_every_order) {
  const auto ordered = train(2, "rank-ordered");
  EXPECT_EQ(train(2, "shard-tree"), ordered);
  EXPECT_EQ(train(2, "ring"), ordered);
  EXPECT_EQ(train(4, "shard-tree"), train(4, "shard-tree"));
}

TEST(DataParallel, over_shards_has_the_same_bits_on_any_number_of_ranks) {
  const auto alone = train_ranks("dp", 1, "shard-tree", {.shards = 4});
  for (const int ranks : {2, 4}) {
    const auto many = train_ranks("dp", ranks, "shard-tree", {.shards = 4});
    for (const auto& rank : many) {
      EXPECT_EQ(rank.losses, alone[0].losses) << ranks << " ranks";
      for (const auto& [name, state] : rank.states) {
        EXPECT_TRUE(std::ranges::equal(state.bytes(), alone[0].states.at(name).bytes())) << name;
      }
    }
  }
  EXPECT_NE(train_ranks("dp", 1, "shard-tree", {.shards = 2})[0].losses, alone[0].losses);
  EXPECT_THROW(train_ranks("dp", 2, "ring", {.shards = 4}), InvalidArgument);
  EXPECT_THROW(train_ranks("dp", 4, "shard-tree", {.shards = 2}), InvalidArgument);
  EXPECT_THROW(train_ranks("zero1", 2, "shard-tree", {.shards = 4}), InvalidArgument);
}

TEST(DataParallel, averages_every_gradient_and_the_loss) {
  const auto graph = data_parallel(training_graph(2), {.world_size = 2}).graph;
  std::size_t averaged = 0;
  for (const auto& node : graph.nodes()) {
    const auto* all_reduce = op_cast<AllReduce>(*node.op);
    if (all_reduce == nullptr) continue;
    EXPECT_EQ(all_reduce->scale, 0.5F);
    averaged += node.inputs.size();
  }
  EXPECT_EQ(averaged, training_graph(2).parameters.size() + 1) << "all gradients and the loss";
}

TEST(DataParallel, says_what_it_will_send) {
  const auto graph = data_parallel(training_graph(2), {.world_size = 2}).graph;
  std::int64_t parameters = 0;
  for (const auto& name : training_graph(2).parameters)
    parameters += graph.spec(graph.find(name)).shape.elements();
  const auto cost = communication_cost(graph, 2);
  EXPECT_EQ(cost.collectives, 2);
  // Half of it in each of two phases, or one element more where the halves are unequal.
  EXPECT_NEAR(static_cast<double>(cost.bytes_sent), static_cast<double>(4 * (parameters + 1)), 8);
}

TEST(DataParallel, is_refused_where_nobody_runs_collectives) {
  const auto device = open_device("cpu", {.threads = 1});
  auto training = data_parallel(training_graph(2), {.world_size = 2});
  EXPECT_THAT([&] { make_plan(std::move(training.graph), {device.get()}); },
              testing::ThrowsMessage<UnsupportedError>(
                  testing::HasSubstr("it needs several ranks, and this run has one")));
}

}  // namespace
}  // namespace triptych::parallel
