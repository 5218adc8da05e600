// A machine's clocks.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/device_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/base/error.h"

namespace triptych::training {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(WorkClock, of_a_processor_does_not_run_while_others_compute) {
  const DeviceSet machine({.threads = 1});
  const auto clock = machine.work_clock();
  const double before = clock();
  double others = 0;
  std::jthread([&] {
    const double start = clock();
    while (others < 0.02) others = clock() - start;
  }).join();
  EXPECT_LT(clock() - before, others) << "it has only waited";
}

TEST(WorkClock, of_a_processor_is_of_one_thread) {
  const DeviceSet machine({.threads = 2});
  EXPECT_THAT([&] { machine.work_clock(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("leave out the option threads 2")));
}

TEST(WorkClock, of_a_simulated_machine_is_its_own) {
  const DeviceSet machine({.backend = "systolic", .threads = 2});
  EXPECT_EQ(machine.work_clock()(), machine.device().elapsed().seconds);
}

}  // namespace
}  // namespace triptych::training
