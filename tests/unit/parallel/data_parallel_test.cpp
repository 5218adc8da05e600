// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "backends/all_backends.h"
#include "core/ops/all_reduce.h"
#include "core/runtime/executor.h"
#include "parallel/comm/thread_group.h"
#include "parallel/strategies/communication_cost.h"
#include "parallel/strategies/rank_collectives.h"

namespace triptych::parallel {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kBatch = 4;
constexpr int kSteps = 3;

ModelConfig small_model() {
  auto config = model_preset("unet-s");
  config.base = 2;
  config.depth = 1;
  config.size = 16;
  return config;
}

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

Tensor random_tensor(const TensorSpec& spec, unsigned seed, bool binary) {
  std::mt19937 random(seed);
  Tensor tensor(spec);
  for (float& value : tensor.as<float>()) {
    const float number = static_cast<float>(random() >> 8) * 0x1p-24F;
    value = binary ? std::round(number) : number - 0.5F;
  }
  return tensor;
}

/// Rows [rank, rank + 1) * n of dimension 0.
Tensor share(const Tensor& whole, TensorSpec spec, int rank) {
  Tensor part(std::move(spec));
  const auto size = part.bytes().size();
  std::ranges::copy(whole.bytes().subspan(static_cast<std::size_t>(rank) * size, size),
                    part.bytes().begin());
  return part;
}

struct Outcome {
  std::vector<float> losses;
  std::vector<Tensor> parameters;
};

/// Trains a few steps with that many ranks; all ranks must agree.
Outcome train(int ranks, const std::string& order) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  run_ranks(ranks, {}, [&](Communicator& communicator) {
    const auto device = open_device("cpu", {.threads = 1});
    RankCollectives collectives(communicator);
    auto training = data_parallel(training_graph(kBatch / ranks),
                                  {.world_size = ranks, .order = order, .bucket_bytes = 2000});
    PlanOptions options;
    options.placement.contract = Contract::Bf16Exact;
    options.placement.collectives = &collectives;
    StateStore states(*device);
    Executor executor(make_plan(std::move(training.graph), {device.get()}, options), states);
    const auto& graph = executor.plan().graph;
    auto& outcome = outcomes[static_cast<std::size_t>(communicator.rank())];
    for (unsigned step = 0; step < kSteps; ++step) {
      for (const bool target : {false, true}) {
        const char* name = target ? "target" : "x";
        const auto& spec = graph.spec(graph.find(name));
        auto whole = spec;
        auto dims = spec.shape.dims();
        dims[0] = kBatch;
        whole.shape = Shape(dims);
        executor.set_input(name, share(random_tensor(whole, 2 * step + target, target), spec,
                                       communicator.rank()));
      }
      executor.set_input("learning_rate", scalar_tensor(0.01F));
      executor.run();
      outcome.losses.push_back(executor.output("loss").as<float>()[0]);
    }
    for (const auto& name : training.parameters) outcome.parameters.push_back(states.read(name));
  });
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.losses, outcomes[0].losses);
    for (std::size_t i = 0; i < outcome.parameters.size(); ++i)
      EXPECT_TRUE(
          std::ranges::equal(outcome.parameters[i].bytes(), outcomes[0].parameters[i].bytes()));
  }
  return std::move(outcomes[0]);
}

TEST(DataParallel, trains_as_one_rank_does_and_keeps_all_ranks_the_same) {
  const auto alone = train(1, "rank-ordered");
  for (const char* order : {"rank-ordered", "shard-tree", "ring"}) {
    const auto two = train(2, order);
    ASSERT_EQ(two.losses.size(), alone.losses.size());
    // Batch normalisation sees half of the batch, so the losses are near, not equal.
    for (std::size_t i = 0; i < two.losses.size(); ++i)
      EXPECT_NEAR(two.losses[i], alone.losses[i], 0.05) << order << ", step " << i;
    EXPECT_LT(two.losses.back(), two.losses.front());
  }
}

TEST(DataParallel, with_two_ranks_has_the_same_bits_in_every_order) {
  const auto ordered = train(2, "rank-ordered");
  EXPECT_EQ(train(2, "shard-tree").losses, ordered.losses);
  EXPECT_EQ(train(2, "ring").losses, ordered.losses);
  EXPECT_EQ(train(4, "shard-tree").losses, train(4, "shard-tree").losses);
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
  // Half of it twice, or one element more where the halves are unequal.
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
