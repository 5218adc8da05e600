// SPDX-License-Identifier: Apache-2.0
#include "parallel/collectives/price.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "parallel/collectives/algorithms.h"
#include "tests/unit/parallel/fluid_reference.h"

namespace triptych::parallel {
namespace {

using testing::ElementsAre;

constexpr double kAlpha = 1e-6, kBandwidth = 1e9;
constexpr Link kLink = {kAlpha, kBandwidth};

std::vector<Schedule> schedules_of(Algorithm algorithm, const Interconnect& net,
                                   std::int64_t elements,
                                   Collective collective = Collective::AllReduce) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < net.world_size(); ++rank) {
    schedules.push_back(make_schedule(collective, algorithm,
                                      {.world_size = net.world_size(),
                                       .rank = rank,
                                       .elements = elements,
                                       .segment_elements = elements}));
  }
  return schedules;
}

double seconds(Algorithm algorithm, const Interconnect& net, std::int64_t elements,
               Collective collective = Collective::AllReduce) {
  return price(schedules_of(algorithm, net, elements, collective), 4, net).seconds;
}

TEST(Interconnect, messages_on_a_ring_take_the_shorter_way) {
  const auto ring = Interconnect::ring(5, kLink);
  EXPECT_THAT(ring.path(0, 2), ElementsAre(0, 4));
  EXPECT_THAT(ring.path(0, 3), ElementsAre(1, 17));
  EXPECT_TRUE(ring.path(2, 2).empty());
}

TEST(Interconnect, messages_on_a_torus_go_along_the_row_and_then_down) {
  const auto torus = Interconnect::torus(3, 2, kLink);
  EXPECT_THAT(torus.path(0, 4), ElementsAre(0, 4 * 1 + 2));
  EXPECT_THAT(torus.path(0, 2), ElementsAre(1)) << "around the edge";
}

TEST(Interconnect, bridges_share_their_links_to_the_host) {
  const auto tree = Interconnect::pcie_tree(4, 2, kLink);
  EXPECT_EQ(tree.path(0, 1).size(), 2);
  EXPECT_EQ(tree.path(0, 2).size(), 4);
  EXPECT_EQ(tree.path(0, 2)[1], tree.path(1, 3)[1]);
  EXPECT_THROW(Interconnect::ring(0, kLink), InvalidArgument);
}

TEST(Interconnect, is_made_by_its_name) {
  EXPECT_EQ(make_interconnect("torus:3x2", 6, kLink).path(0, 4).size(), 2);
  EXPECT_EQ(make_interconnect("pcie:2", 4, kLink).path(0, 2).size(), 4);
  EXPECT_EQ(make_interconnect("ring", 4, kLink).path(0, 2).size(), 2);
  EXPECT_EQ(make_interconnect("switch", 4, kLink).path(0, 2).size(), 2);
  for (const char* wrong : {"torus:3x3", "torus:3", "pcie:0", "pcie:2x", "star"})
    EXPECT_THROW(make_interconnect(wrong, 6, kLink), InvalidArgument) << wrong;
}

class PricedRanks : public testing::TestWithParam<int> {};

TEST_P(PricedRanks, a_ring_takes_2_n_minus_1_latencies_and_nearly_twice_the_bytes) {
  const int n = GetParam();
  const std::int64_t elements = 1000 * n;
  const double each = kAlpha + 4.0 * 1000 / kBandwidth;
  EXPECT_NEAR(seconds(Algorithm::Ring, Interconnect::ring(n, kLink), elements), 2 * (n - 1) * each,
              1e-12);
}

TEST_P(PricedRanks, an_all_gather_takes_half_of_that) {
  const int n = GetParam();
  const double each = kAlpha + 4.0 * 1000 / kBandwidth;
  EXPECT_NEAR(
      seconds(Algorithm::Ring, Interconnect::ring(n, kLink), 1000 * n, Collective::AllGather),
      (n - 1) * each, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Price, PricedRanks, testing::Values(2, 3, 5, 8));

TEST(Price, a_tree_takes_all_bytes_up_and_down_each_level) {
  const double each = 2 * kAlpha + 4.0 * 1000 / kBandwidth;
  EXPECT_NEAR(seconds(Algorithm::Tree, Interconnect::switched(8, kLink), 1000), 6 * each, 1e-12);
}

TEST(Price, halving_doubling_has_the_bytes_of_a_ring_and_the_latencies_of_a_tree) {
  const auto net = Interconnect::switched(8, kLink);
  const double bytes = 4.0 * 8000 / kBandwidth;
  EXPECT_NEAR(seconds(Algorithm::HalvingDoubling, net, 8000), 6 * 2 * kAlpha + 2 * 7.0 / 8 * bytes,
              1e-12);
}

constexpr std::int64_t kElements = 1 << 18;  // 1 MiB
constexpr double kBytes = 4.0 * kElements;
constexpr Algorithm kAlgorithms[] = {Algorithm::Ring, Algorithm::Direct, Algorithm::HalvingDoubling,
                                     Algorithm::Tree};

/// Every topology with as many ranks.
std::vector<std::string> topologies(int ranks) {
  std::vector<std::string> names = {"ring", "switch", "pcie:2", "pcie:3"};
  for (int height = 2; height * height <= ranks; ++height)
    if (ranks % height == 0) names.push_back(fmt::format("torus:{}x{}", ranks / height, height));
  return names;
}

/// A separately written simulation computes every rate again at every event.
TEST(Price, is_that_of_an_independent_simulation_of_fair_flows) {
  for (const int ranks : {2, 3, 4, 6, 8, 12, 16}) {
    for (const auto& topology : topologies(ranks)) {
      const auto net = make_interconnect(topology, ranks, kLink);
      for (const auto algorithm : kAlgorithms) {
        const auto schedules = schedules_of(algorithm, net, kElements);
        const double expected = test::FluidReference(schedules, 4, net).seconds();
        EXPECT_NEAR(price(schedules, 4, net).seconds, expected, 1e-6 * expected)
            << topology << " " << ranks << " " << to_string(algorithm);
      }
    }
  }
}

/// Seconds by the closed forms in price.h, for neighbours that are `hops` links apart.
double closed_form(Algorithm algorithm, int ranks, int hops) {
  const double n = ranks, a = hops * kAlpha, time = kBytes / kBandwidth;
  switch (algorithm) {
    case Algorithm::Ring:
      return 2 * (n - 1) * (a + time / n);
    case Algorithm::Direct:
      return 2 * (a + (n - 1) / n * time);
    case Algorithm::HalvingDoubling:
      return 2 * std::log2(n) * a + 2 * (n - 1) / n * time;
    default:
      return 2 * std::log2(n) * (a + time);
  }
}

TEST(Price, is_the_closed_form_where_nothing_is_in_the_way) {
  for (const int ranks : {2, 4, 8, 16, 32, 64}) {
    for (const auto algorithm : kAlgorithms) {
      const double expected = closed_form(algorithm, ranks, 2);
      EXPECT_NEAR(seconds(algorithm, Interconnect::switched(ranks, kLink), kElements), expected,
                  0.05 * expected)
          << to_string(algorithm) << " over a switch of " << ranks;
    }
  }
  for (int ranks = 2; ranks <= 64; ++ranks) {
    const double expected = closed_form(Algorithm::Ring, ranks, 1);
    EXPECT_NEAR(seconds(Algorithm::Ring, Interconnect::ring(ranks, kLink), kElements), expected,
                0.05 * expected);
  }
}

/// No link can carry more than its bandwidth. With fair shares the fullest one seldom rests.
TEST(Price, of_an_exchange_of_all_with_all_is_near_the_load_of_the_fullest_link) {
  for (const auto& [topology, ranks] :
       {std::pair{"switch", 8}, {"torus:4x4", 16}, {"torus:8x8", 64}, {"ring", 64}}) {
    const auto net = make_interconnect(topology, ranks, kLink);
    const auto schedules = schedules_of(Algorithm::Direct, net, 64 * kElements);
    std::vector<double> load(net.links().size(), 0);
    for (int from = 0; from < ranks; ++from)
      for (const auto& step : schedules[static_cast<std::size_t>(from)].steps)
        if (step.kind == ScheduleStep::Kind::Send)
          for (const int link : net.path(from, step.peer))
            load[static_cast<std::size_t>(link)] +=
                4.0 * static_cast<double>(step.place.range.size()) / kBandwidth;
    const double bound = std::ranges::max(load);
    const double priced = price(schedules, 4, net).seconds;
    EXPECT_GE(priced, bound) << topology;
    EXPECT_LE(priced, 1.05 * bound) << topology;
  }
}

TEST(Price, what_shares_a_link_shares_its_bandwidth) {
  // PricedRanks 0 and 1 exchange with 2 and 3 over the bridges' two links to the host.
  const auto shared = seconds(Algorithm::Direct, Interconnect::pcie_tree(4, 2, kLink), 4000);
  const auto apart = seconds(Algorithm::Direct, Interconnect::switched(4, kLink), 4000);
  EXPECT_GT(shared, 1.2 * apart);
}

TEST(Price, additions_take_their_time_and_flights_are_in_order) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < 2; ++rank)
    schedules.push_back(make_schedule(Collective::AllReduce, Algorithm::Ring,
                                      {.world_size = 2, .rank = rank, .elements = 2000}));
  const auto net = Interconnect::ring(2, kLink);
  const auto plain = price(schedules, 4, net), adding = price(schedules, 4, net, 2e9);
  EXPECT_NEAR(adding.seconds - plain.seconds, 4000 / 2e9, 1e-12);
  EXPECT_EQ(plain.flights.size(), 4);
  EXPECT_TRUE(std::ranges::is_sorted(plain.flights, {}, &Flight::start_s));
  double busy = 0;
  for (const double link : plain.busy_s) busy += link;
  EXPECT_NEAR(busy, 4 * (kAlpha + 4000 / kBandwidth), 1e-12);
}

TEST(Price, one_rank_alone_takes_no_time) {
  EXPECT_EQ(seconds(Algorithm::Ring, Interconnect::ring(1, kLink), 100), 0);
}

TEST(Price, what_nobody_waits_for_is_hidden_behind_computation) {
  // Both ranks: compute 1 s, send and receive, compute meanwhile, then wait.
  const Schedule exchange = make_schedule(Collective::AllReduce, Algorithm::Ring,
                                          {.world_size = 2, .rank = 0, .elements = 2000});
  const std::vector<Schedule> schedules = {
      exchange, make_schedule(Collective::AllReduce, Algorithm::Ring,
                              {.world_size = 2, .rank = 1, .elements = 2000})};
  const auto steps = exchange.steps.size();
  const auto net = Interconnect::ring(2, kLink);
  const double alone = price(schedules, 4, net).seconds;
  const auto run = [&](double meanwhile) {
    const std::vector<Delay> delays = {
        {.before = 0, .seconds = 1, .after = 0},
        {.before = steps, .seconds = meanwhile, .after = 0},  // during the exchange
        {.before = steps, .seconds = 0.5, .after = steps}};   // behind it
    return price(schedules, 4, net, 0, std::vector(2, delays));
  };
  EXPECT_NEAR(run(alone / 2).seconds, 1 + alone + 0.5, 1e-12) << "half of it shows";
  EXPECT_NEAR(run(3 * alone).seconds, 1 + 3 * alone + 0.5, 1e-12) << "nothing shows";
  const auto timeline = run(alone / 2);
  EXPECT_NEAR(timeline.computations[1][1].end_s, 1 + alone / 2, 1e-12);
  EXPECT_NEAR(timeline.steps[1].front().start_s, 1, 1e-12);
  EXPECT_NEAR(timeline.steps[1].back().end_s, 1 + alone, 1e-12);
}

}  // namespace
}  // namespace triptych::parallel
