// The numbers that the page of collectives steps through.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/studies/collectives_report.h"

#include <gtest/gtest.h>

#include <cmath>

namespace triptych::studies {
namespace {

TEST(CollectivesReport, latencies_and_volumes_are_the_price_for_every_link) {
  for (const auto way : summing_ways()) {
    for (const int ranks : {2, 3, 4, 8}) {
      const auto price = price_of_sum(way, ranks);
      // Below and far above the size that ranks with a shared cache cut into pieces.
      const std::int64_t bytes = std::int64_t{3360} << (ranks == 3 ? 3 : 17);
      for (const double alpha : {1e-7, 1e-6, 5e-6, 1e-4, 1e-2}) {
        for (const double rate : {1e7, 1e9, 12.5e9, 450e9}) {
          const double seconds = modelled_seconds(way, ranks, bytes, alpha, rate);
          EXPECT_NEAR(price.latencies * alpha + price.volumes * static_cast<double>(bytes) / rate,
                      seconds, 1e-9 * seconds)
              << way << ", " << ranks << " ranks, alpha " << alpha << ", rate " << rate;
        }
      }
    }
  }
}

TEST(CollectivesReport, prices_are_those_of_the_literature) {
  EXPECT_DOUBLE_EQ(price_of_sum("ring", 8).latencies, 28);
  EXPECT_NEAR(price_of_sum("ring", 8).volumes, 7 / 4., 1e-12);
  EXPECT_NEAR(price_of_sum("server", 8).volumes, 14, 1e-12);
  EXPECT_DOUBLE_EQ(price_of_sum("server", 8).latencies, 4);
  EXPECT_NEAR(price_of_sum("tree", 8).volumes, 6, 1e-12);
  EXPECT_NEAR(price_of_sum("halving-doubling", 8).volumes, 7 / 4., 1e-12);
}

TEST(CollectivesReport, every_sum_has_each_rank_once) {
  const auto report = collectives_report();
  ASSERT_EQ(report.at("gradients").size(), 8U);
  EXPECT_NE(report.at("gradients")[0], report.at("gradients")[1]);
  for (const auto& way : report.at("ways")) {
    for (const auto& world : way.at("worlds")) {
      const auto ranks = world.at("ranks").get<std::size_t>();
      EXPECT_EQ(world.at("schedules").size(), ranks);
      for (std::size_t i = 0; i < report.at("elements").get<std::size_t>(); ++i) {
        double exact = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank)
          exact += report.at("gradients")[rank][i].get<double>();
        EXPECT_NEAR(world.at("sums")[i].get<double>(), exact, 1e-5 * (std::abs(exact) + 1e-3));
      }
    }
  }
}

}  // namespace
}  // namespace triptych::studies
