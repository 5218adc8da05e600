// Figures that a calibration makes of its samples.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "core/base/error.h"
#include "experiments/measure/link_timing.h"
#include "experiments/measure/reference_kernels.h"

namespace triptych::measure {
namespace {

TEST(Points, give_the_time_of_many_neighbours_together) {
  const auto points = points_of({{"a", 1e-3, 8, 2e-3},
                                 {"a", 1e-3, 8, 1e-3},
                                 {"a", 1e-3, 100, 4e-3},
                                 {"a", 1, 8, 2},
                                 {"b", 0, 0, 1}});
  ASSERT_EQ(points.size(), 1U) << "what has no work has no efficiency";
  const auto& list = points.at("a");
  ASSERT_EQ(list.size(), 3U);
  EXPECT_NEAR(list[0].fraction, 2.0 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(list[0].bound_s, 1e-3);
}

TEST(Transfers, are_fitted_exactly_where_they_are_a_line) {
  std::vector<TransferSample> samples;
  for (const double bytes : {1e3, 1e5, 1e7}) samples.push_back({bytes, 2e-6 + bytes / 5e9});
  const auto fit = fit_transfers(samples);
  EXPECT_NEAR(fit.alpha_s, 2e-6, 1e-12);
  EXPECT_NEAR(fit.bytes_per_s, 5e9, 1);
  EXPECT_GE(fit_transfers({{1e3, 1e-9}, {1e4, 1e-6}}).alpha_s, 0) << "never below nothing";
  EXPECT_THROW(fit_transfers({{1, 1}}), InvalidArgument);
}

}  // namespace
}  // namespace triptych::measure
