// SPDX-License-Identifier: Apache-2.0
#include "parallel/collectives/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "parallel/collectives/algorithms.h"
#include "parallel/collectives/symbolic.h"

namespace triptych::parallel {
namespace {

std::vector<Schedule> all_ranks(Collective collective, Algorithm algorithm, CollectiveShape shape) {
  std::vector<Schedule> schedules;
  for (shape.rank = 0; shape.rank < shape.world_size; ++shape.rank)
    schedules.push_back(make_schedule(collective, algorithm, shape));
  return schedules;
}

/// Sums of ranks [begin, end) as a balanced tree. Those beyond `paired` belong to one within.
TermId balanced(int begin, int end, int paired, int world_size, Terms& terms) {
  if (end - begin == 1) {
    const TermId own = terms.contribution(begin);
    return begin + paired < world_size ? terms.sum(own, terms.contribution(begin + paired)) : own;
  }
  const int middle = (begin + end) / 2;
  return terms.sum(balanced(begin, middle, paired, world_size, terms),
                   balanced(middle, end, paired, world_size, terms));
}

/// Halves of powers of two: (0+1)+(2+3). The rest joins as the tree grows.
TermId binomial(int begin, int end, Terms& terms) {
  if (end - begin == 1) return terms.contribution(begin);
  const int half = static_cast<int>(std::bit_ceil(static_cast<unsigned>(end - begin)) / 2);
  return terms.sum(binomial(begin, begin + half, terms), binomial(begin + half, end, terms));
}

TermId chain(int first, int world_size, Terms& terms) {
  TermId sum = terms.contribution(first);
  for (int i = 1; i < world_size; ++i)
    sum = terms.sum(sum, terms.contribution((first + i) % world_size));
  return sum;
}

/// The order that algorithms.h promises for an element of `chunk`.
TermId promised(Algorithm algorithm, int chunk, int n, Terms& terms) {
  const int paired = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  switch (algorithm) {
    case Algorithm::Ring:
      return chain((chunk + 1) % n, n, terms);
    case Algorithm::Direct:
      return chain(0, n, terms);
    case Algorithm::HalvingDoubling:
      return balanced(0, paired, paired, n, terms);
    case Algorithm::Library:
    case Algorithm::Tree:
      return binomial(0, n, terms);
  }
  return -1;
}

/// The chunk of its segment that each element belongs to.
std::vector<int> chunks(const CollectiveShape& shape) {
  std::vector<int> list;
  const auto longest = shape.segment_elements * shape.world_size;
  for (std::int64_t begin = 0; begin < shape.elements; begin += longest) {
    const Range piece = {begin, std::min(begin + longest, shape.elements)};
    for (int c = 0; c < shape.world_size; ++c)
      list.insert(list.end(), static_cast<std::size_t>(part_of(piece, c, shape.world_size).size()),
                  c);
  }
  return list;
}

std::vector<std::int64_t> element_counts(int n) {
  return {0, 1, 2, 3, n - 1, n, n + 1, 2 * n + 1, 64, 97, 1000};
}

TEST(Schedule, parts_cover_a_range_and_differ_by_one_element_at_most) {
  EXPECT_EQ(part_of({10, 20}, 0, 3), (Range{10, 14}));
  EXPECT_EQ(part_of({10, 20}, 1, 3), (Range{14, 17}));
  EXPECT_EQ(part_of({10, 20}, 2, 3), (Range{17, 20}));
  EXPECT_EQ(part_of({5, 5}, 1, 3).size(), 0);
}

class EveryWorld : public testing::TestWithParam<int> {};

TEST_P(EveryWorld, all_reduce_adds_every_contribution_once_in_the_promised_order) {
  const int n = GetParam();
  for (const auto algorithm : algorithms_of(Collective::AllReduce)) {
    for (const auto elements : element_counts(n)) {
      for (const std::int64_t segment : {1, 7, 32768}) {
        const CollectiveShape shape = {
            .world_size = n, .elements = elements, .segment_elements = segment};
        Terms terms;
        const auto owners = chunks(shape);
        const auto schedules = all_ranks(Collective::AllReduce, algorithm, shape);
        for (const auto& result : run_symbolically(schedules, elements, terms)) {
          for (std::size_t i = 0; i < result.size(); ++i) {
            const TermId expected = promised(algorithm, owners[i], n, terms);
            ASSERT_EQ(result[i], expected)
                << to_string(algorithm) << " of " << elements << " in segments of " << segment
                << ", element " << i << ": " << terms.text(result[i]) << " for "
                << terms.text(expected);
          }
        }
      }
    }
  }
}

TEST_P(EveryWorld, reduce_scatter_leaves_each_rank_the_sum_of_its_chunk) {
  const int n = GetParam();
  for (const auto algorithm : algorithms_of(Collective::ReduceScatter)) {
    for (const auto elements : element_counts(n)) {
      const CollectiveShape shape = {.world_size = n, .elements = elements};
      Terms terms;
      const auto results =
          run_symbolically(all_ranks(Collective::ReduceScatter, algorithm, shape), elements, terms);
      for (int rank = 0; rank < n; ++rank) {
        const Range own = part_of({0, elements}, rank, n);
        const int first = algorithm == Algorithm::Ring ? (rank + 1) % n : 0;
        for (auto i = own.begin; i < own.end; ++i)
          ASSERT_EQ(results[static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)],
                    chain(first, n, terms))
              << to_string(algorithm) << " of " << elements << ", rank " << rank;
      }
    }
  }
}

TEST_P(EveryWorld, all_gather_gives_everybody_every_chunk) {
  const int n = GetParam();
  for (const auto algorithm : algorithms_of(Collective::AllGather)) {
    for (const auto elements : element_counts(n)) {
      const CollectiveShape shape = {.world_size = n, .elements = elements};
      Terms terms;
      const auto results =
          run_symbolically(all_ranks(Collective::AllGather, algorithm, shape), elements, terms);
      for (const auto& result : results) {
        for (int owner = 0; owner < n; ++owner) {
          const Range chunk = part_of({0, elements}, owner, n);
          for (auto i = chunk.begin; i < chunk.end; ++i)
            ASSERT_EQ(result[static_cast<std::size_t>(i)], terms.contribution(owner));
        }
      }
    }
  }
}

TEST_P(EveryWorld, broadcast_gives_everybody_what_the_root_has) {
  const int n = GetParam();
  for (int root = 0; root < n; ++root) {
    const CollectiveShape shape = {
        .world_size = n, .elements = 10, .root = root, .segment_elements = 1};
    Terms terms;
    const auto results =
        run_symbolically(all_ranks(Collective::Broadcast, Algorithm::Tree, shape), 10, terms);
    for (const auto& result : results) EXPECT_THAT(result, testing::Each(terms.contribution(root)));
  }
}

INSTANTIATE_TEST_SUITE_P(Schedule, EveryWorld, testing::Range(1, 18));

TEST(Schedule, a_ring_moves_each_element_2_n_minus_1_times_over_n) {
  for (const int n : {2, 5, 8}) {
    const auto schedule =
        make_schedule(Collective::AllReduce, Algorithm::Ring, {.world_size = n, .elements = 80});
    std::int64_t sent = 0;
    for (const auto& step : schedule.steps)
      if (step.kind == ScheduleStep::Kind::Send) sent += step.place.range.size();
    EXPECT_EQ(sent, 2 * (n - 1) * 80 / n);
  }
}

std::string failure(const std::vector<Schedule>& schedules) {
  Terms terms;
  try {
    run_symbolically(schedules, 4, terms);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Symbolic, a_schedule_that_cannot_end_is_refused) {
  using Kind = ScheduleStep::Kind;
  const BufferRange half = {Memory::Data, {0, 2}}, whole = {Memory::Data, {0, 4}};
  const Schedule receives = {{{.kind = Kind::Receive, .peer = 1, .place = half}}};
  const Schedule sends = {{{.kind = Kind::Send, .peer = 0, .place = whole}}};
  const Schedule overwrites = {
      {{.kind = Kind::Send, .peer = 0, .place = whole},
       {.kind = Kind::Copy, .place = half, .source = {Memory::Data, {2, 4}}}}};
  const Schedule unset = {{{.kind = Kind::Add, .place = half, .source = {Memory::Scratch, {0, 2}}}},
                          2};
  EXPECT_EQ(failure({receives, {}}), "rank 0 at step 0 of 1: waits for ever");
  EXPECT_EQ(failure({receives, sends}),
            "rank 0 at step 0 of 1: expects 2 elements of rank 1, which sends 4");
  EXPECT_EQ(failure({{}, sends}), "rank 1 at step 1 of 1: ends, but rank 0 took less than it sent");
  EXPECT_EQ(failure({{}, overwrites}),
            "rank 1 at step 1 of 2: overwrites what it sends to rank 0 in step 0");
  EXPECT_EQ(failure({unset}),
            "rank 0 at step 0 of 1: reads scratch memory that nothing was written to");
}

TEST(Algorithms, what_a_collective_does_not_have_is_refused_with_what_it_has) {
  EXPECT_THROW(
      {
        try {
          make_schedule(Collective::AllGather, Algorithm::Tree, {.world_size = 2});
        } catch (const InvalidArgument& error) {
          EXPECT_STREQ(error.what(),
                       "all-gather has no algorithm \"tree\"; choose from: direct, ring");
          throw;
        }
      },
      InvalidArgument);
  EXPECT_THROW(make_schedule(Collective::AllReduce, Algorithm::Ring, {.world_size = 2, .rank = 2}),
               InvalidArgument);
  EXPECT_THROW(algorithm_from_string("rings"), InvalidArgument);
  EXPECT_EQ(algorithm_from_string("halving-doubling"), Algorithm::HalvingDoubling);
}

}  // namespace
}  // namespace triptych::parallel
