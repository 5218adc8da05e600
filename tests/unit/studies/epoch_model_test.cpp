// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/epoch_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "experiments/machines/links.h"
#include "experiments/machines/rank_plans.h"

namespace triptych::studies {
namespace {

using namespace machines;  // of plans and their prices

using testing::HasSubstr;

TEST(EpochModel, only_what_is_not_fixed_scales) {
  EXPECT_DOUBLE_EQ(epoch_seconds({.epoch_s = 10}, 0.5, 1), 5);
  EXPECT_DOUBLE_EQ(epoch_seconds({.epoch_s = 10, .fixed_s = 4}, 0.5, 1), 7);
  const EpochModel worse = {.epoch_s = 10, .fixed_s = 4, .micro_batch_efficiency = 0.5};
  EXPECT_DOUBLE_EQ(epoch_seconds(worse, 0.5, 1), 7) << "no micro-batches";
  EXPECT_DOUBLE_EQ(epoch_seconds(worse, 0.5, 2), 10);
  EXPECT_THROW(epoch_seconds({.epoch_s = 10, .fixed_s = 11}, 1, 1), InvalidArgument);
  EXPECT_THROW(epoch_seconds({.epoch_s = 10, .micro_batch_efficiency = 0}, 1, 1), InvalidArgument);
}

TEST(EpochModel, the_fit_gives_the_surveys_numbers_from_ideal_ratios) {
  EXPECT_NEAR(epoch_seconds(kSurveyFit, 1, 1), kSurveySingle, 1e-12);
  EXPECT_NEAR(epoch_seconds(kSurveyFit, 0.5, 1), kSurveyData, 0.05);
  EXPECT_NEAR(epoch_seconds(kSurveyFit, 1 / 1.167, 2), kSurveyModel, 0.1);
}

TEST(Links, are_named_by_their_standard_or_their_machine) {
  const auto h100 = find_figures("h100");
  EXPECT_NEAR(link_of("pcie3x8", h100).beta.value, 7.88e9, 0.01e9);
  EXPECT_NEAR(link_of("pcie5x16", h100).beta.value, 63.0e9, 0.1e9);
  EXPECT_DOUBLE_EQ(link_of("rank", h100).beta.value, 450e9);
  for (const char* wrong : {"pcie6x8", "pcie3x0", "pcie3x17", "pcie3x8x", "wire", ""}) {
    try {
      link_of(wrong, h100);
      ADD_FAILURE() << wrong;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr("or one of: host, rank"));
    }
  }
}

TEST(Survey, has_seconds_of_one_machine_and_of_two_ways_to_share_a_step) {
  using Kind = parallel::Strategy::Kind;
  EXPECT_EQ(survey_seconds({}, 1), kSurveySingle);
  EXPECT_EQ(survey_seconds({}, 2), kSurveyData);
  EXPECT_EQ(survey_seconds({.kind = Kind::Pipeline, .micro_batches = 4}, 2), kSurveyModel);
  EXPECT_EQ(survey_seconds({.kind = Kind::Sharded, .shard_stage = 2}, 2), std::nullopt);
  EXPECT_EQ(survey_seconds({}, 4), std::nullopt);
}

/// A small U-Net's step on as many ranks.
RankPlans plans_of(const training::DeviceSet& machine, const std::string& strategy, int ranks,
                   bool overlap = false) {
  training::TrainerConfig config;
  config.model = model_preset("unet-s");
  config.model.base = 32;  // gradients in several buckets
  config.options.batch = 4;
  training::ParallelConfig parallel;
  parallel.ranks = ranks;
  parallel.strategy = parallel::strategy_from_string(strategy);
  parallel.overlap = overlap;
  return {machine, config, parallel};
}

TEST(RankPlans, price_the_steps_of_all_ranks) {
  const training::DeviceSet machine({.threads = 1});
  const NodeTimes times(find_figures("rtx2070super"), {});
  const auto single = plans_of(machine, "dp", 1);
  const double one = times.time(single.plan(0)).seconds;
  EXPECT_EQ(single.bytes_sent(), 0);
  const parallel::Cluster cluster = {.interconnect = parallel::Interconnect::ring(2, {1e-6, 1e12})};
  const auto data = plans_of(machine, "dp", 2);
  EXPECT_EQ(data.ranks(), 2);
  EXPECT_GT(data.bytes_sent(), 0);
  EXPECT_GT(data.memory_bytes(1), 0);
  const auto price = data.price(times, cluster);
  EXPECT_LT(price.seconds, one);
  EXPECT_GT(price.seconds, one / 2) << "half of the work, and the launches";
  EXPECT_NEAR(price.seconds, times.time(data.plan(0)).seconds, 1e-4) << "the link is very fast";
  const auto beside =
      plans_of(machine, "dp", 2, true)
          .price(times, {.interconnect = parallel::Interconnect::ring(2, {1e-6, 1e9})});
  const auto after =
      data.price(times, {.interconnect = parallel::Interconnect::ring(2, {1e-6, 1e9})});
  EXPECT_LT(beside.seconds, after.seconds);
}

TEST(RankPlans, cut_a_pipeline_by_the_seconds_that_they_are_given) {
  const training::DeviceSet machine({.threads = 1});
  const NodeTimes times(find_figures("rtx2070super"), {});
  training::TrainerConfig config = {model_preset("unet-s"), {.batch = 4}};
  config.model.base = 32;
  const auto seconds = model_nodes(machine, config, 4, times);
  EXPECT_GT(seconds.size(), 100U);
  const auto split = plans_of(machine, "layers", 2);
  const auto price =
      split.price(times, {.interconnect = parallel::Interconnect::ring(2, {0, 1e15})});
  double all = 0;
  for (const auto& [name, s] : seconds) all += s;
  EXPECT_LT(price.seconds, 1.1 * all);
  EXPECT_GT(price.seconds, 0.6 * all) << "the stages of one micro-batch follow one another";
}

TEST(RankPlans, know_which_part_of_its_work_a_rank_shares) {
  std::vector<parallel::RankTimeline> lines(3);
  lines[0].computations = {{0, 2}, {4, 6}};
  lines[1].computations = {{1, 3}, {5, 6}};
  lines[2].computations = {{9, 10}};
  EXPECT_THAT(shared_parts(lines), testing::ElementsAre(0.5, 2.0 / 3, 0));
}

TEST(RankPlans, nodes_take_less_while_the_other_rank_waits) {
  const training::DeviceSet machine({.threads = 1});
  const NodeTimes busy(find_figures("rtx2070super"), {});
  Assumptions faster;
  faster.product_fraction *= 2;
  faster.other_fraction *= 2;
  faster.launch_s /= 2;
  const NodeTimes alone(find_figures("rtx2070super"), faster);
  const parallel::Cluster cluster = {.interconnect = parallel::Interconnect::ring(2, {0, 1e15})};
  const auto split = plans_of(machine, "layers", 2);
  const double slow = split.price(busy, cluster).seconds;
  EXPECT_NEAR(split.price(busy, cluster, &alone).seconds, slow / 2, 0.1 * slow)
      << "stages of one micro-batch are hardly ever at work together";
  const auto data = plans_of(machine, "dp", 2);
  const double together = data.price(busy, cluster).seconds;
  EXPECT_NEAR(data.price(busy, cluster, &alone).seconds, together, 0.05 * together)
      << "replicas always are";
}

}  // namespace
}  // namespace triptych::studies
