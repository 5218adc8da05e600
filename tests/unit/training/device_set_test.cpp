// A machine's clocks, and the times by which it chooses kernels.
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

TEST(RecordedTimes, of_a_run_come_before_those_of_the_cache) {
  MemoryCache cache;
  cache.insert("a", "cached");
  cache.insert("b", "cached");
  RecordedTimes times(cache, {{"a", "stored"}});
  EXPECT_EQ(times.find("a"), "stored");
  EXPECT_EQ(times.find("b"), "cached");
  EXPECT_EQ(times.find("c"), std::nullopt);
  times.insert("d", "measured");
  EXPECT_EQ(cache.find("d"), "measured");
  EXPECT_EQ(cache.find("a"), "cached") << "a run does not change what others measured";
  times.prefer({{"b", "of another run"}});
  RecordedTimes moved(cache, {{"times | cpu | Relu", "stored"}});
  EXPECT_EQ(moved.find("times | cpu | another computer, 7 threads | Relu"), "stored");
  EXPECT_EQ(moved.find("times | gpu | another computer | Relu"), std::nullopt);
  const std::map<std::string, std::string> all = {
      {"a", "stored"}, {"b", "of another run"}, {"d", "measured"}};
  EXPECT_EQ(times.texts(), all);
}

}  // namespace
}  // namespace triptych::training
