// The price of collectives that students wrote as messages.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/chunk_schedule.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "parallel/collectives/algorithms.h"
#include "parallel/collectives/price.h"
#include "parallel/collectives/symbolic.h"

namespace triptych::labs {
namespace {

using page::Json;

constexpr parallel::Link kLink = {.alpha_s = 1e-6, .bytes_per_s = 1e9};

/// Reduce-scatter, then all-gather.
std::vector<ChunkStep> ring(int ranks) {
  std::vector<ChunkStep> steps;
  for (const bool adds : {true, false}) {
    for (int s = 0; s < ranks - 1; ++s) {
      auto& step = steps.emplace_back();
      for (int r = 0; r < ranks; ++r) {
        step.push_back({.from = r,
                        .to = (r + 1) % ranks,
                        .chunk = (r + (adds ? 0 : 1) - s + ranks) % ranks,
                        .adds = adds});
      }
    }
  }
  return steps;
}

/// A grader's request for the price of these steps.
Json request_for(const std::vector<ChunkStep>& steps, int ranks, std::int64_t elements) {
  Json list = Json::array();
  for (const auto& step : steps) {
    list.push_back(Json::array());
    for (const auto& each : step)
      list.back().push_back(Json::array({each.from, each.to, each.chunk, each.adds}));
  }
  return {{"steps", list},
          {"world_size", ranks},
          {"elements", elements},
          {"wires", "ring"},
          {"link", Json::array({kLink.alpha_s, kLink.bytes_per_s})},
          {"late_s", 0}};
}

TEST(ChunkSchedule, schedules_of_a_ring_are_right_and_cost_as_much_as_the_programs_ring) {
  for (const int ranks : {2, 3, 7}) {
    const std::int64_t elements = 1000 * ranks;
    parallel::Terms terms;
    const auto sums =
        parallel::run_symbolically(to_schedules(ring(ranks), ranks, elements), elements, terms);
    std::vector<parallel::Schedule> ours;
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(sums[static_cast<std::size_t>(rank)], sums.front());
      ours.push_back(
          parallel::make_schedule(parallel::Collective::AllReduce, parallel::Algorithm::Ring,
                                  {.world_size = ranks, .rank = rank, .elements = elements}));
    }
    const auto wires = parallel::Interconnect::ring(ranks, kLink);
    EXPECT_DOUBLE_EQ(chunk_schedule_seconds(request_for(ring(ranks), ranks, elements)),
                     parallel::price(ours, 4, wires).seconds);
  }
}

TEST(ChunkSchedule, a_late_rank_delays_a_ring) {
  auto request = request_for(ring(4), 4, 4000);
  const auto before = chunk_schedule_seconds(request);
  request["late_s"] = 2;
  EXPECT_GT(chunk_schedule_seconds(request), 2);
  EXPECT_LE(chunk_schedule_seconds(request), 2 + before + 1e-9);
}

TEST(ChunkSchedule, steps_send_the_content_from_before_the_step) {
  const std::vector<ChunkStep> steps = {
      {{.from = 0, .to = 1, .chunk = 0}, {.from = 1, .to = 0, .chunk = 0}}};
  parallel::Terms terms;
  EXPECT_EQ(parallel::run_symbolically(to_schedules(steps, 2, 2), 2, terms).size(), 2U);
}

TEST(ChunkSchedule, ranks_and_chunks_that_do_not_exist_are_refused) {
  for (const ChunkMessage message :
       {ChunkMessage{.from = 0, .to = 2}, {.from = -1, .to = 1}, {.from = 0, .to = 1, .chunk = 2}})
    EXPECT_THROW(chunk_schedule_seconds(request_for({{message}}, 2, 2)), InvalidArgument);
  EXPECT_THROW(chunk_schedule_seconds(request_for({}, 0, 2)), InvalidArgument);
}

}  // namespace
}  // namespace triptych::labs
