// The rules that make verdicts of numbers, on both sides of each of their limits.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "experiments/studies/server_schedule.h"
#include "parallel/collectives/symbolic.h"

namespace triptych::studies {
namespace {

using enum ClaimVerdict;
using testing::HasSubstr;

TEST(Rules, bandwidth_explains_all_some_or_no_kinds_of_work) {
  const Shares moved = {.speedup = 100, .by_bandwidth = 50, .by_arithmetic = 1};
  const Shares computed = {.speedup = 100, .by_bandwidth = 3, .by_arithmetic = 40};
  EXPECT_DOUBLE_EQ(moved.bandwidth_share(), 1);
  EXPECT_NEAR((Shares{.speedup = 100, .by_arithmetic = 10}).bandwidth_share(), 0.5, 1e-12);
  EXPECT_EQ((Shares{.speedup = 0.5, .by_bandwidth = 2}).bandwidth_share(), 0) << "no speedup";
  EXPECT_EQ(judge_bandwidth(std::vector{moved, moved}), HoldsHere);
  EXPECT_EQ(judge_bandwidth(std::vector{moved, computed}), HoldsUnderConditions);
  EXPECT_EQ(judge_bandwidth(std::vector{computed}), Wrong);
}

TEST(Rules, sram_is_about_ten_times_on_the_machine_it_is_said_of_and_on_newer_ones) {
  EXPECT_EQ(judge_sram(10, std::vector{9.0, 8.0}), HoldsHere);
  EXPECT_EQ(judge_sram(10, std::vector{9.0, 6.4}), OutOfDate);
  EXPECT_EQ(judge_sram(5, std::vector{10.0}), Wrong);
  EXPECT_EQ(judge_sram(14, std::vector{10.0}), Wrong);
}

TEST(Rules, small_tasks_lose_when_copies_undo_a_gain) {
  const TaskSpeedup undone = {.compute = 2, .with_transfers = 0.5};
  const TaskSpeedup gain = {.compute = 3, .with_transfers = 2};
  const TaskSpeedup slow = {.compute = 0.9, .with_transfers = 0.5};
  EXPECT_EQ(judge_transfers(std::vector{undone, gain}), HoldsHere);
  EXPECT_EQ(judge_transfers(std::vector{undone, undone}), HoldsUnderConditions);
  EXPECT_EQ(judge_transfers(std::vector{gain, gain}), Wrong);
  EXPECT_EQ(judge_transfers(std::vector{slow, gain}), Wrong) << "copies are not to blame";
}

TEST(Rules, growth_counts_from_first_to_last_and_may_saturate) {
  EXPECT_EQ(judge_growth(std::vector{1.0, 2.0, 4.0}), HoldsHere);
  EXPECT_EQ(judge_growth(std::vector{1.0, 3.9, 4.0}), HoldsUnderConditions);
  EXPECT_EQ(judge_growth(std::vector{1.0, 1.2, 1.3}), HoldsUnderConditions);
  EXPECT_EQ(judge_growth(std::vector{1.0, 1.05}), Wrong);
  EXPECT_EQ(judge_growth(std::vector{2.0, 1.0}), Wrong);
}

TEST(Rules, reuse_is_fewer_reads_than_the_others_best) {
  EXPECT_EQ(judge_reuse(0.1, 0.2), HoldsHere);
  EXPECT_EQ(judge_reuse(0.15, 0.2), HoldsUnderConditions);
  EXPECT_EQ(judge_reuse(0.2, 0.2), Wrong);
}

TEST(Rules, utilisation_is_a_matter_of_size_only_if_shapes_of_equal_work_agree) {
  EXPECT_EQ(judge_utilisation(0.1, 0.9, std::vector{0.8, 0.9}), HoldsHere);
  EXPECT_EQ(judge_utilisation(0.1, 0.9, std::vector{0.1, 0.9}), HoldsUnderConditions);
  EXPECT_EQ(judge_utilisation(0.1, 0.5, std::vector{0.8, 0.9}), HoldsUnderConditions);
  EXPECT_EQ(judge_utilisation(0.8, 0.9, std::vector{0.8, 0.9}), Wrong);
}

TEST(Rules, matrix_units_are_compared_with_ordinary_ones_and_with_arrays) {
  EXPECT_EQ(judge_matrix_units(1.5, 0.1), HoldsHere);
  EXPECT_EQ(judge_matrix_units(15, 3), OutOfDate);
  EXPECT_EQ(judge_matrix_units(15, 0.9), HoldsUnderConditions);
}

TEST(Rules, parallelism_of_a_cpu_is_minimal_below_two) {
  EXPECT_EQ(judge_cpu_parallelism(1.5), HoldsHere);
  EXPECT_EQ(judge_cpu_parallelism(5), HoldsUnderConditions);
  EXPECT_EQ(judge_cpu_parallelism(10), Wrong);
}

TEST(Rules, attention_moves_less_and_as_its_formulas_say) {
  const Counted flash = {100, 105}, materialised = {1000, 950};
  EXPECT_EQ(judge_attention(flash, materialised), HoldsHere);
  EXPECT_EQ(judge_attention({100, 150}, materialised), HoldsUnderConditions);
  EXPECT_EQ(judge_attention(flash, {1000, 2000}), HoldsUnderConditions);
  EXPECT_EQ(judge_attention({1000, 1000}, {1000, 1000}), Wrong);
}

TEST(Rules, a_servers_link_grows_with_its_workers_and_a_rings_is_bounded) {
  const auto judge = [](double server, double ring) {
    return judge_ring(std::vector<LinkBytes>{{2, 10, 10}, {16, server, ring}}, 10);
  };
  EXPECT_EQ(judge(150, 19), HoldsHere);
  EXPECT_EQ(judge(150, 21), HoldsUnderConditions) << "beyond twice the buffer";
  EXPECT_EQ(judge(100, 19), HoldsUnderConditions) << "not in proportion";
  EXPECT_EQ(judge(15, 19), Wrong);
}

TEST(Rules, averaging_must_be_faster_and_something_else) {
  EXPECT_EQ(judge_averaging({2, 1, 0.1, 1e-6}), HoldsUnderConditions);
  EXPECT_EQ(judge_averaging({2, 1, 0.1, 0.1}), HoldsHere);
  EXPECT_EQ(judge_averaging({1, 2, 0.1, 0.1}), Wrong);
  EXPECT_EQ(judge_averaging({2, 1, 1e-6, 1e-6}), Wrong);
}

TEST(Rules, model_parallel_gradients_are_summed_or_not) {
  EXPECT_EQ(judge_model_parallel_gradients(1, 1000), Wrong);
  EXPECT_EQ(judge_model_parallel_gradients(100, 1000), HoldsUnderConditions);
  EXPECT_EQ(judge_model_parallel_gradients(1000, 1000), HoldsHere);
}

TEST(Rules, table_2_follows_from_data_sheets_or_from_a_fit) {
  const TwoRanks table = {0.305, 0.045}, far = {0.97, 0.17};
  EXPECT_EQ(judge_strategies(table, {0.3, 0.05}, far), HoldsHere);
  EXPECT_EQ(judge_strategies(table, far, {0.305, 0.045}), HoldsUnderConditions);
  EXPECT_EQ(judge_strategies(table, far, far), Wrong);
  EXPECT_EQ(judge_strategies(table, {0.3, 0.17}, {0.97, 0.045}), Wrong) << "one row is not two";
}

TEST(ServerSchedule, gives_every_rank_the_sum_in_the_order_of_the_ranks) {
  const auto schedules = server_schedules(4, 3);
  parallel::Terms terms;
  for (const auto& rank : parallel::run_symbolically(schedules, 3, terms)) {
    for (const auto term : rank) EXPECT_EQ(terms.text(term), "(((0+1)+2)+3)");
  }
}

TEST(Claims, are_found_by_their_ids) {
  const std::vector<std::string> ids = {"ring", "bandwidth"};
  const auto found = find_claims(ids);
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0]->id, "bandwidth") << "in the order of the page";
  EXPECT_EQ(find_claims({}).size(), claims().size());
  const std::vector<std::string> wrong = {"luck"};
  EXPECT_THAT([&] { find_claims(wrong); },
              testing::ThrowsMessage<InvalidArgument>(
                  testing::AllOf(HasSubstr("\"luck\""), HasSubstr("flash-attention"))));
}

}  // namespace
}  // namespace triptych::studies
