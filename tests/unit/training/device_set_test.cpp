// A machine's clocks, and the times that choose its kernels.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/training/device_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/base/error.h"
#include "core/ops/binary.h"

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

/// A sum of a million values by an array's host.
HostShare host_of_a_sum(const std::string& machine_name) {
  Graph graph;
  const TensorSpec spec = {DType::F32, Shape{1000, 1000}};
  const std::vector<ValueId> inputs = {graph.add_input("a", spec), graph.add_input("b", spec)};
  graph.mark_output("y", graph.add_node(make_op(Binary()), inputs).front());
  const DeviceSet machine(
      {.backend = "systolic", .contract = Contract::Bf16Exact, .machine = machine_name});
  return *machine.host_share(
      make_plan(std::move(graph), machine.devices(), machine.plan_options()));
}

TEST(HostShare, a_node_takes_the_longer_of_its_operations_and_its_bytes) {
  const auto with_ddr3 = host_of_a_sum("mmu16");
  EXPECT_EQ(with_ddr3.nodes, 1U);
  EXPECT_EQ(with_ddr3.bytes, 12e6);
  EXPECT_NEAR(with_ddr3.time.seconds, 12e6 / 34e9, 1e-9);
  EXPECT_THAT(to_string(with_ddr3), HasSubstr("1.2e+07 bytes at 34 GB/s: 0.353 ms (modelled)"));
  const auto ideal = host_of_a_sum(R"({"name": "x", "vector_lanes": 16, "dram": "ideal"})");
  EXPECT_NEAR(ideal.time.seconds, 1e6 / (16 * 700e6), 1e-9);
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
