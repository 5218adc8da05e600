// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/chunk_schedule.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "parallel/collectives/algorithms.h"
#include "parallel/collectives/price.h"
#include "parallel/collectives/symbolic.h"

namespace triptych::labs {
namespace {

constexpr const char* kRing = R"(# reduce-scatter, then all-gather
steps N - 1
send (r - s) % N to (r + 1) % N add
steps N - 1
send (r + 1 - s) % N to (r + 1) % N replace
)";
constexpr parallel::Link kLink = {.alpha_s = 1e-6, .bytes_per_s = 1e9};

TEST(ChunkSchedule, a_ring_ends_with_the_sum_everywhere) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    const auto steps = read_chunk_schedule(kRing, ranks);
    EXPECT_EQ(first_wrong_sum(steps, ranks), "");
    std::vector<std::vector<float>> buffers;
    for (int rank = 0; rank < ranks; ++rank)
      buffers.emplace_back(11, static_cast<float>(1 << rank));
    for (const auto& buffer : run_on(steps, buffers))
      EXPECT_EQ(buffer, std::vector<float>(11, static_cast<float>((1 << ranks) - 1)));
  }
}

TEST(ChunkSchedule, its_schedules_are_right_and_priced_as_the_programs_ring) {
  for (const int ranks : {2, 3, 7}) {
    const std::int64_t elements = 1000 * ranks;
    const auto schedules = to_schedules(read_chunk_schedule(kRing, ranks), ranks, elements);
    parallel::Terms terms;
    const auto sums = parallel::run_symbolically(schedules, elements, terms);
    std::vector<parallel::Schedule> ours;
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(sums[static_cast<std::size_t>(rank)], sums.front());
      ours.push_back(
          parallel::make_schedule(parallel::Collective::AllReduce, parallel::Algorithm::Ring,
                                  {.world_size = ranks, .rank = rank, .elements = elements}));
    }
    const auto wires = parallel::Interconnect::ring(ranks, kLink);
    EXPECT_DOUBLE_EQ(parallel::price(schedules, 4, wires).seconds,
                     parallel::price(ours, 4, wires).seconds);
  }
}

TEST(ChunkSchedule, what_a_step_sends_is_what_was_there_before_it) {
  const auto steps = read_chunk_schedule("steps 1\nsend 0 to 1 - r replace\n", 2);
  const auto after = run_on(steps, {{1, 2}, {3, 4}});
  EXPECT_EQ(after[0], (std::vector<float>{3, 2}));
  EXPECT_EQ(after[1], (std::vector<float>{1, 4}));
  parallel::Terms terms;
  EXPECT_EQ(parallel::run_symbolically(to_schedules(steps, 2, 2), 2, terms).size(), 2U);
}

TEST(ChunkSchedule, bytes_are_counted_by_link) {
  const auto steps = read_chunk_schedule("steps 1\nsend all to 0 add if r > 0\n", 3);
  const auto bytes = bytes_by_link(steps, 3, 10);
  EXPECT_EQ(bytes[1][0], 40);
  EXPECT_EQ(bytes[2][0], 40);
  EXPECT_EQ(bytes[0][1], 0);
}

TEST(ChunkSchedule, a_sum_that_is_wrong_is_told_in_words) {
  EXPECT_EQ(first_wrong_sum(read_chunk_schedule("steps 2\nsend 0 to 1 add if r == 0\n", 2), 2),
            "with 2 ranks, after the last step, chunk 0 of rank 0 holds contributions of rank 0, "
            "and should hold that of each rank once");
  EXPECT_EQ(first_wrong_sum(read_chunk_schedule("steps 1\nsend 1 to 0 replace if r == 1\n"
                                                "send 0 to 0 add if r == 1\nsteps 1\n",
                                                2),
                            2),
            "with 2 ranks, after the last step, chunk 1 of rank 0 holds contributions of rank 1, "
            "and should hold that of each rank once; that of rank 0 was there until step 1 of all "
            "2 replaced it");
}

std::string refusal(const std::string& text) {
  try {
    read_chunk_schedule(text, 4);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ChunkSchedule, what_is_none_is_refused_with_its_line) {
  EXPECT_EQ(refusal("# nothing\n"), "the schedule has no \"steps\" line");
  EXPECT_EQ(refusal("send 0 to 1 add"), "line 1: stands before the first \"steps\" line");
  EXPECT_EQ(refusal("steps 1\n\nsend 4 to 1 add"),
            "line 3: \"4\" is 4, and chunks are 0 to 3 (N = 4, r = 0, s = 0)");
  EXPECT_EQ(refusal("steps 1\nsend 0 to r add"),
            "line 2: a rank sends to itself (N = 4, r = 0, s = 0)");
  EXPECT_EQ(refusal("steps N / 8\n"),
            "line 1: \"N / 8\" is 0.5 for N = 4; a phase has 0 to 1000 steps");
  EXPECT_NE(refusal("steps 1\nsend 0 to 1").find("says not what the receiver does"),
            std::string::npos);
  EXPECT_EQ(refusal("// a ring\nsteps 1\n"),
            "line 1: \"// a ring\" begins with neither \"steps\" nor \"send\"; a comment begins "
            "with #");
  EXPECT_EQ(refusal("steps 1\nsend 0 to 1 add if r = 0\n"),
            "line 2: in \"r = 0\", at character 3: an operator or the end was expected; \"is equal "
            "to\" is == (N = 4, r = 0, s = 0)");
  EXPECT_NE(refusal("steps 1\nsend 0 add").find("says not to whom"), std::string::npos);
  EXPECT_NE(refusal(std::string(500, '\n')).find("more than 200 lines"), std::string::npos);
}

}  // namespace
}  // namespace triptych::labs
