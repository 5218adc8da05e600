// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/batch_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace triptych::measure {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::optional<std::int64_t> from(std::initializer_list<double> speedups) {
  static const std::vector<std::int64_t> batches = {1, 2, 4, 8};
  return break_even(batches, std::vector<double>(speedups));
}

TEST(BreakEven, is_the_smallest_batch_from_which_on_all_are_faster) {
  EXPECT_EQ(from({0.5, 0.9, 1.1, 2}), 4);
  EXPECT_EQ(from({1.5, 0.9, 1.1, 2}), 4) << "a lead that is lost again does not count";
  EXPECT_EQ(from({1.1, 1.1, 1.1, 1.1}), 1);
  EXPECT_EQ(from({0.5, 0.5, 0.5, 1.1}), 8);
}

TEST(BreakEven, is_nothing_when_the_largest_batch_is_not_faster) {
  EXPECT_EQ(from({2, 2, 2, 0.9}), std::nullopt);
  EXPECT_EQ(from({1, 1, 1, 1}), std::nullopt) << "as fast is not faster";
}

SweepPoint point(double seconds, TimeKind kind) {
  SweepPoint point;
  point.time = {seconds, seconds, seconds, 1};
  point.kind = kind;
  return point;
}

TEST(BatchSweep, transfers_count_with_their_kind) {
  auto array = point(2, TimeKind::Simulated);
  EXPECT_EQ(array.with_transfers().kind, TimeKind::Simulated);
  array.transfers = Transfers{.bytes_in = 1,
                              .bytes_out = 1,
                              .in = {1, TimeKind::Modelled},
                              .out = {0.5, TimeKind::Modelled}};
  EXPECT_DOUBLE_EQ(array.with_transfers().seconds, 3.5);
  EXPECT_EQ(array.with_transfers().kind, TimeKind::Modelled);
  EXPECT_EQ(kind_of_sum(TimeKind::Measured, TimeKind::Measured), TimeKind::Measured);
}

TEST(BatchSweep, speedups_are_over_the_first_machine_batch_by_batch) {
  SweptMachine first, second;
  first.points = {point(4, TimeKind::Measured), point(9, TimeKind::Measured)};
  second.points = {point(2, TimeKind::Simulated), point(3, TimeKind::Simulated)};
  second.points[1].transfers = Transfers{
      .bytes_in = 1, .bytes_out = 1, .in = {3, TimeKind::Modelled}, .out = {3, TimeKind::Modelled}};
  EXPECT_THAT(speedups(second, first, false), ElementsAre(DoubleEq(2), DoubleEq(3)));
  EXPECT_THAT(speedups(second, first, true), ElementsAre(DoubleEq(2), DoubleEq(1)));
}

TEST(TakeLayer, sets_the_shape_and_window_of_a_models_convolution) {
  BenchOptions options;
  take_layer("unet-l:down1.conv1", options);
  EXPECT_THAT(options.shape, ElementsAre(64, 64, 256, 256));
  EXPECT_EQ(options.window, 3);
  take_layer("unet-s:bottom.conv0", options);
  EXPECT_THAT(options.shape, ElementsAre(32, 64, 8, 8));
}

TEST(TakeLayer, lists_the_convolutions_that_there_are) {
  BenchOptions options;
  EXPECT_THAT([&] { take_layer("unet-s:down1.relu1", options); },
              ThrowsMessage<InvalidArgument>(testing::AllOf(
                  HasSubstr("\"down1.relu1\""), HasSubstr("down1.conv1"), HasSubstr("up3.conv0"))));
}

TEST(HostLink, is_a_machines_or_two_numbers) {
  const auto stated = host_link("1e-5,12e9");
  EXPECT_DOUBLE_EQ(stated.alpha.value, 1e-5);
  EXPECT_DOUBLE_EQ(stated.beta.value, 12e9);
  EXPECT_GT(host_link("tpu-v1").beta.value, 1e10);
  EXPECT_NEAR(host_link("pcie3x16").beta.value, 15.75e9, 1e7);
  for (const auto* wrong : {"1,2,3", "1", "nowhere", "-1,1", "1,0", "1,x", "nan,1", "pcie9x1"})
    EXPECT_THROW(host_link(wrong), InvalidArgument) << wrong;
}

}  // namespace
}  // namespace triptych::measure
