// Facts that processes compare before the first step, and the rows of a batch that a rank needs.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/rank_consistency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/error.h"
#include "experiments/training/rank.h"
#include "experiments/training/trainer.h"
#include "parallel/comm/thread_group.h"

namespace triptych::training {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

/// A field of the run's configuration is compared unless it says where something lies.
TEST(Agreement, holds_every_field_of_a_runs_configuration_but_paths) {
  RunConfig config;
  config.init = "weights";
  const auto facts = facts_of(config, {});
  int fields = 0;
  const auto all = nlohmann::json::parse(to_json(config)).flatten();
  for (const auto& [pointer, value] : all.items()) {
    auto name = pointer.substr(1);
    std::ranges::replace(name, '/', '.');
    const std::vector<std::string> own = {"data.source", "data.images",    "data.masks",
                                          "data.list",   "data.cache_mib", "init"};
    EXPECT_EQ(facts.contains(name), !std::ranges::count(own, name)) << name;
    ++fields;
  }
  EXPECT_GT(fields, 35);
}

/// The facts that a change to the defaults changes.
std::vector<std::string> changed_by(Contract contract, const auto& change) {
  ExecutionConfig machine;
  machine.contract = contract;
  const auto before = facts_of({}, machine);
  change(machine);
  std::vector<std::string> names;
  for (const auto& [name, value] : facts_of({}, machine))
    if (!before.contains(name) || before.at(name) != value) names.push_back(name);
  return names;
}

TEST(Agreement, lets_machines_differ_where_the_bits_are_the_same_everywhere) {
  const auto other = [](ExecutionConfig& m) {
    m.backend = "systolic";
    m.simulate = mmu::Simulation::Rtl;
    m.winograd = false;
    m.threads = 7;
    m.parallel.timeout_s = 1;
  };
  EXPECT_THAT(changed_by(Contract::Bf16Exact, other), ::testing::IsEmpty());
  EXPECT_THAT(changed_by(Contract::F32, other),
              ::testing::ElementsAre("backend", "simulate", "winograd"));
  const auto order = [](ExecutionConfig& m) { m.parallel.order = ReductionOrder::Ring; };
  EXPECT_THAT(changed_by(Contract::Bf16Exact, order), ::testing::ElementsAre("parallel.order"));
}

/// Error of each rank of a group that comes with its facts. Empty: none.
std::vector<std::string> complaints(const std::vector<Facts>& facts) {
  const auto ranks = static_cast<int>(facts.size());
  parallel::ThreadGroup group(ranks, parallel::Seconds(30));
  std::vector<std::string> said(facts.size());
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        parallel::Communicator communicator(group.transport(rank));
        const auto place = static_cast<std::size_t>(rank);
        try {
          require_rank_consistency(communicator, facts[place]);
        } catch (const InvalidArgument& error) {
          said[place] = error.what();
        }
      });
    }
  }
  return said;
}

TEST(Agreement, names_each_fact_that_differs_with_both_values_on_every_rank) {
  const Facts facts = {{"batch", "4"}, {"seed", "0"}};
  EXPECT_THAT(complaints({facts, facts, facts}), Each(""));
  const Facts other = {{"batch", "8"}, {"seed", "0"}, {"extra", "\"much longer than the others\""}};
  EXPECT_THAT(complaints({facts, facts, other}),
              Each(AllOf(HasSubstr("rank 2"), HasSubstr("batch: 4 on rank 0, 8 there"),
                         HasSubstr("extra: nothing on rank 0"), Not(HasSubstr("seed")))));
}

TEST(Agreement, digests_names_pixels_labels_and_their_order) {
  TrainingData data;
  data.train.samples.resize(2);
  data.train.samples[0] = {"a", "", 1, 1, 2, {0.5F, 1.0F}, {0, 1}};
  data.train.samples[1] = {"b", "", 1, 1, 2, {0.5F, 1.0F}, {0, 1}};
  const auto digest = digest_of(data);
  EXPECT_EQ(digest_of(data), digest);
  const auto changed = [&](const auto& change) {
    auto other = data;
    change(other);
    return digest_of(other) != digest;
  };
  EXPECT_TRUE(changed([](auto& d) { d.train.samples[0].labels[0] = 1; }));
  EXPECT_TRUE(changed([](auto& d) { d.train.samples[1].image[0] = 0.25F; }));
  EXPECT_TRUE(changed([](auto& d) { std::swap(d.train.samples[0], d.train.samples[1]); }));
  EXPECT_TRUE(changed([](auto& d) {
    d.validation.samples.push_back(std::move(d.train.samples.back()));
    d.train.samples.pop_back();
  }));
}

/// Calls use(rank) for every rank of two, at the same time.
void on_two_ranks(const std::string& strategy, const auto& use) {
  ExecutionConfig machine{.threads = 1};
  machine.parallel.ranks = 2;
  machine.parallel.strategy = parallel::strategy_from_string(strategy);
  const DeviceSet first(machine), second(machine);
  TrainerConfig config{.model = model_preset("unet-s")};
  config.model.base = 2;
  config.model.depth = 1;
  config.model.size = 16;
  config.options.batch = 4;
  parallel::ThreadGroup group(2, parallel::Seconds(30));
  Rank one(first, config, group.transport(0), nullptr);
  Rank two(second, config, group.transport(1), nullptr);
  use(one, two);
}

TEST(Rows, of_a_rank_are_its_share_under_data_parallel_and_all_under_tensor_parallel) {
  on_two_ranks("dp", [](Rank& one, Rank& two) {
    EXPECT_EQ(one.rows().first, 0);
    EXPECT_EQ(one.rows().count, 2);
    EXPECT_EQ(two.rows().first, 2);
    EXPECT_EQ(two.rows().count, 2);
    EXPECT_EQ(union_of(one.rows(), two.rows()).count, 4);
  });
  on_two_ranks("tp", [](Rank& one, Rank& two) {
    EXPECT_EQ(one.rows().count, 4);
    EXPECT_EQ(two.rows().first, 0);
  });
}

TEST(Rows, that_do_not_hold_what_a_rank_needs_are_refused) {
  on_two_ranks("dp", [](Rank&, Rank& two) {
    const auto tensor = [](DType dtype, std::int64_t rows, std::int64_t side) {
      return Tensor(TensorSpec{dtype, {rows, 1, side, side}});
    };
    const auto good = tensor(DType::F32, 2, 16);
    EXPECT_NO_THROW(two.set_inputs(good, good, 0.1F, 2));
    EXPECT_NO_THROW(two.set_inputs(tensor(DType::F32, 4, 16), tensor(DType::F32, 4, 16), 0.1F));
    EXPECT_THROW(two.set_inputs(good, good, 0.1F, 0), InvalidArgument) << "the other rank's";
    EXPECT_THROW(two.set_inputs(good, tensor(DType::I64, 2, 16), 0.1F, 2), InvalidArgument);
    EXPECT_THROW(two.set_inputs(good, tensor(DType::F32, 4, 8), 0.1F), InvalidArgument);
    EXPECT_THROW(two.set_inputs(good, scalar_tensor(1.0F), 0.1F, 2), InvalidArgument);
  });
}

}  // namespace
}  // namespace triptych::training
