// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "backends/cpu/cpu_backend.h"
#include "backends/host/parallel.h"

namespace triptych::cpu {
namespace {

float half_of(float value) {
  volatile float x = value;
  return x * 0.5F;
}

TEST(CpuDevice, flushes_subnormals_on_every_thread) {
  for (const int threads : {1, 2, 4}) {
    CpuDevice device({.threads = threads});
    std::atomic<int> kept = 0;
    std::atomic<int> started = 0;
    device.submit(0, [&](Stream*) {
      parallel_for(64, 1, [&](std::int64_t, std::int64_t) {
        // Long enough that workers arrive and take part.
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ++started;
        if (half_of(0x1p-126F) != 0) ++kept;            // flush-to-zero
        if (half_of(0x1p-127F) * 0x1p30F != 0) ++kept;  // denormals-are-zero
      });
    });
    EXPECT_GT(started, 0);
    EXPECT_EQ(kept, 0) << threads << " threads";
  }
}

TEST(CpuDevice, restores_the_callers_floating_point_settings) {
  CpuDevice device({.threads = 2});
  device.submit(0, [](Stream*) {});
  EXPECT_EQ(half_of(0x1p-126F), 0x1p-127F);
}

TEST(CpuDevice, runs_with_the_asked_number_of_threads) {
  for (const int threads : {1, 3}) {
    CpuDevice device({.threads = threads});
    EXPECT_EQ(device.threads(), threads);
    EXPECT_EQ(device.info().facts.threads, threads);
    device.submit(0, [&](Stream*) { EXPECT_EQ(max_threads(), threads); });
  }
  EXPECT_EQ(CpuDevice({}).threads(), usable_processors());
}

TEST(CpuDevice, refuses_options_that_it_does_not_know) {
  EXPECT_THROW(backend().open({.index = 1}), InvalidArgument);
  EXPECT_THROW(backend().open({.threads = -1}), InvalidArgument);
  EXPECT_THROW(backend().open({.extra = {{"machine", "mmu16"}}}), InvalidArgument);
}

TEST(CpuDevice, allocates_zeroed_aligned_memory_and_copies) {
  CpuDevice device({});
  const auto buffer = device.allocate(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % kAlignment, 0U);
  EXPECT_EQ(buffer->data()[999], std::byte{0});
  const std::byte sent[] = {std::byte{7}, std::byte{8}};
  std::byte received[2] = {};
  device.upload(buffer->data(), sent, 2);
  device.download(received, buffer->data(), 2);
  EXPECT_EQ(received[1], std::byte{8});
  EXPECT_THROW(device.allocate(std::size_t{1} << 62), DeviceError);
}

TEST(CpuDevice, passes_on_the_exception_of_a_kernel) {
  CpuDevice device({.threads = 2});
  const auto fail = [](Stream*) {
    parallel_for(8, 1, [](std::int64_t, std::int64_t) { throw NumericError("here"); });
  };
  EXPECT_THROW(device.submit(0, fail), NumericError);
}

TEST(CpuDevice, measures_time_and_describes_itself) {
  CpuDevice device({});
  const auto begin = device.elapsed();
  EXPECT_EQ(begin.kind, TimeKind::Measured);
  EXPECT_GE(device.elapsed().seconds, begin.seconds);
  EXPECT_FALSE(device.info().description.empty());
  EXPECT_EQ(backend().devices().size(), 1U);
}

// Truths that hold however busy the machine is: levels in order, each larger than the one before,
// and rates that a processor can have.
TEST(CpuDevice, measures_the_bandwidth_of_each_level_of_its_memory) {
  const auto levels = CpuDevice({}).level_bandwidths();
  ASSERT_FALSE(levels.empty());
  EXPECT_EQ(levels.back().level, "memory");
  for (std::size_t i = 0; i < levels.size(); ++i) {
    EXPECT_EQ(levels[i].kind, TimeKind::Measured);
    EXPECT_GT(levels[i].copy_bytes_per_s, 1e7) << levels[i].level;
    EXPECT_LT(levels[i].copy_bytes_per_s, 1e14) << levels[i].level;
    EXPECT_GT(levels[i].triad_bytes_per_s, 1e7) << levels[i].level;
    if (i + 1 < levels.size()) {
      EXPECT_LE(levels[i].array_bytes, levels[i].capacity_bytes) << levels[i].level;
      EXPECT_GT(levels[i + 1].array_bytes, levels[i].array_bytes) << levels[i].level;
    }
  }
}

}  // namespace
}  // namespace triptych::cpu
