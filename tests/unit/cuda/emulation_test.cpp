// The emulator against closed forms: barriers, warp operations, counters and every fault, by
// kernels small enough to say what must come out.
// SPDX-License-Identifier: Apache-2.0
#define TRIPTYCH_COUNTED

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "tests/unit/cuda/launch_bench.h"

namespace triptych::cuda::counted {
namespace {

struct Row {
  Shared<int, 64> values;
};

/// y = x reversed, by way of shared memory: right only when the barrier holds.
void reverse_kernel(Global<int> x, Global<int> y) {
  auto& row = shared<Row>();
  const int n = static_cast<int>(blockDim.x), t = static_cast<int>(threadIdx.x);
  const std::int64_t first = std::int64_t{blockIdx.x} * n;
  row.values[t] = x[first + t];
  __syncthreads();
  y[first + t] = row.values[n - 1 - t];
}

TEST(Emulation, a_barrier_waits_for_every_thread_of_the_block) {
  for (const int threads : {1, 3}) {
    for (const unsigned size : {1U, 31U, 32U, 33U, 64U}) {
      Bench bench("checked", threads);
      Array<int> x(size * 5), y(size * 5);
      std::iota(x.values.begin(), x.values.end(), 0);
      bench.run({{5}, {size}, sizeof(Row)}, reverse_kernel, x.global(), y.global());
      for (unsigned i = 0; i < size * 5; ++i) {
        EXPECT_EQ(y.values[i], static_cast<int>(i / size * size + size - 1 - i % size));
      }
      EXPECT_EQ(bench.counters().barriers, 5U);
      EXPECT_EQ(bench.counters().threads, 5 * size);
      EXPECT_EQ(bench.counters().block_threads, size);
      EXPECT_EQ(bench.counters().shared_bytes, sizeof(Row));
    }
  }
}

/// y = 3/4 x in two steps, with a barrier between them.
void halve_kernel(Global<float> x, Global<float> y) {
  const int t = static_cast<int>(threadIdx.x);
  y[t] = x[t] * 0.5F;
  __syncthreads();
  y[t] = y[t] + x[t] * 0.25F;
}

TEST(Emulation, a_schedule_says_whether_subnormal_numbers_are_kept) {
  Bench bench("checked", 1);
  Array<float> x(40, 0x1p-126F), y(40);
  const auto run = [&](bool keeps) {
    bench.device.follow({.keeps_subnormals = keeps});
    bench.run({{1}, {40}}, halve_kernel, x.global(), y.global());
    return y.values.back();
  };
  for (int i = 0; i < 2; ++i) {  // fibers of one mode are not used in the other
    EXPECT_EQ(std::bit_cast<std::uint32_t>(run(false)), 0U);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(run(true)), 0x00600000U);
  }
}

void many_barriers_kernel(Global<int> y) {
  auto& row = shared<Row>();
  const int t = static_cast<int>(threadIdx.x);
  row.values[t] = t;
  for (int i = 0; i < 100; ++i) {
    __syncthreads();
    const int next = row.values[(t + 1) % 64];
    __syncthreads();
    row.values[t] = next;
  }
  y[t] = row.values[t];
}

TEST(Emulation, a_loop_of_barriers_keeps_the_threads_in_step) {
  Bench bench("checked");
  Array<int> y(64);
  bench.run({{1}, {64}, sizeof(Row)}, many_barriers_kernel, y.global());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(y.values[static_cast<std::size_t>(i)], (i + 100) % 64);
}

void shuffle_kernel(Global<int> y) {
  const int t = static_cast<int>(threadIdx.x);
  int sum = t;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
  y[t] = sum;
  y[64 + t] = __shfl_down_sync(~0U, t, 3U);
  y[128 + t] = __shfl_up_sync(~0U, t, 3U, 8);
  y[192 + t] = __shfl_sync(~0U, t, 5, 16);
  y[256 + t] = static_cast<int>(__ballot_sync(~0U, t % 3 == 0 ? 1 : 0));
  if (t % 2 == 0) y[320 + t] = __shfl_xor_sync(0x55555555U, t, 2);
}

TEST(Emulation, warp_operations_follow_the_rules_of_cuda) {
  Bench bench("checked");
  Array<int> y(384);
  bench.run({{1}, {64}}, shuffle_kernel, y.global());
  for (int t = 0; t < 64; ++t) {
    const auto at = [&](int row) {
      return y.values[64 * static_cast<std::size_t>(row) + static_cast<std::size_t>(t)];
    };
    const int lane = t % 32, warp = t / 32;
    EXPECT_EQ(at(0), 31 * 16 + warp * 32 * 32);
    EXPECT_EQ(at(1), lane + 3 < 32 ? t + 3 : t);
    EXPECT_EQ(at(2), lane % 8 >= 3 ? t - 3 : t);
    EXPECT_EQ(at(3), warp * 32 + lane / 16 * 16 + 5);
    std::uint32_t votes = 0;
    for (int l = 0; l < 32; ++l) votes |= ((warp * 32 + l) % 3 == 0 ? 1U : 0U) << l;
    EXPECT_EQ(static_cast<std::uint32_t>(at(4)), votes);
    EXPECT_EQ(at(5), t % 2 == 0 ? t ^ 2 : 0);
  }
}

void strided_kernel(Global<float> x, Global<float> y, int stride) {
  const int t = static_cast<int>(threadIdx.x);
  y[t] = x[t * stride];
}

TEST(Counters, a_request_takes_as_many_sectors_as_its_lanes_touch) {
  // 32 lanes, 4 bytes each, `stride` elements apart.
  for (const auto& [stride, sectors] : {std::pair{1, 4U}, {2, 8U}, {4, 16U}, {8, 32U}, {33, 32U}}) {
    Bench bench;
    Array<float> x(32 * 33 + 8), y(32 + 8);
    const auto skip = [](Array<float>& a) {
      return (32 - reinterpret_cast<std::uintptr_t>(a.values.data()) % 32) % 32 / 4;
    };
    bench.run({{1}, {32}}, strided_kernel, x.global().from(skip(x)), y.global().from(skip(y)),
              stride);
    const auto loads = bench.counters().total(Space::Global, Access::Load);
    EXPECT_EQ(loads.requests, 1U);
    EXPECT_EQ(loads.lanes, 32U);
    EXPECT_EQ(loads.useful_bytes, 128U);
    EXPECT_EQ(loads.sectors, sectors) << "stride " << stride;
    EXPECT_EQ(bench.counters().total(Space::Global, Access::Store).sectors, 4U);
  }
}

TEST(Counters, what_many_lanes_ask_for_moves_once) {
  for (const auto& [stride, distinct] : {std::pair{0, 4U}, {1, 128U}, {2, 128U}}) {
    Bench bench;
    Array<float> x(64 + 8), y(32);
    bench.run({{1}, {32}}, strided_kernel, x.global(), y.global(), stride);
    const auto loads = bench.counters().total(Space::Global, Access::Load);
    EXPECT_EQ(loads.useful_bytes, 128U);
    EXPECT_EQ(loads.distinct_bytes, distinct) << "stride " << stride;
  }
  const emulation::Request reversed = [] {
    emulation::Request request = {.mask = 0xF, .bytes = 8, .addresses = {}};
    const std::uint64_t addresses[] = {16, 8, 8, 16};
    std::ranges::copy(addresses, request.addresses.begin());
    return request;
  }();
  EXPECT_EQ(emulation::count_distinct_bytes(reversed), 16U);
}

struct Tile {
  Shared<float, 32, 32> plain;
  Shared<float, 32, 33> padded;
};

void transpose_kernel(Global<float> y, bool padded) {
  auto& tile = shared<Tile>();
  const int x = static_cast<int>(threadIdx.x), row = static_cast<int>(threadIdx.y);
  if (padded) {
    tile.padded(row, x) = static_cast<float>(row * 32 + x);
    __syncthreads();
    y[row * 32 + x] = tile.padded(x, row);
  } else {
    tile.plain(row, x) = static_cast<float>(row * 32 + x);
    __syncthreads();
    y[row * 32 + x] = tile.plain(x, row);
  }
}

TEST(Counters, a_padded_tile_has_no_bank_conflicts_and_an_unpadded_one_all_of_them) {
  for (const bool padded : {false, true}) {
    Bench bench;
    Array<float> y(1024);
    bench.run({{1}, {32, 32}, sizeof(Tile)}, transpose_kernel, y.global(), padded);
    for (int i = 0; i < 1024; ++i) {
      const int transposed = i % 32 * 32 + i / 32;
      EXPECT_EQ(y.values[static_cast<std::size_t>(i)], static_cast<float>(transposed));
    }
    const auto stores = bench.counters().total(Space::Shared, Access::Store);
    const auto loads = bench.counters().total(Space::Shared, Access::Load);
    EXPECT_EQ(stores.requests, 32U);
    EXPECT_EQ(stores.wavefronts, 32U);
    EXPECT_EQ(loads.requests, 32U);
    EXPECT_EQ(loads.wavefronts, padded ? 32U : 32U * 32U);
  }
}

void vector_kernel(Global<float> x, Global<float> y) {
  const int t = static_cast<int>(threadIdx.x);
  const Vector<float, 4> four = x.load<4>(4 * t);
  y.store<4>(4 * t, four);
}

TEST(Counters, vectors_of_four_ask_once_for_sixteen_sectors) {
  Bench bench;
  Array<float> x(128 + 8, 1.0F), y(128 + 8);
  const auto skip = [](Array<float>& a) {
    return (32 - reinterpret_cast<std::uintptr_t>(a.values.data()) % 32) % 32 / 4;
  };
  bench.run({{1}, {32}}, vector_kernel, x.global().from(skip(x)), y.global().from(skip(y)));
  const auto loads = bench.counters().total(Space::Global, Access::Load);
  EXPECT_EQ(loads.requests, 1U);
  EXPECT_EQ(loads.useful_bytes, 512U);
  EXPECT_EQ(loads.sectors, 16U);
}

void half_of_the_lanes_kernel(Global<float> y) {
  const int t = static_cast<int>(threadIdx.x);
  for (int i = 0; i < t % 4; ++i) y[t] = static_cast<float>(i);
}

TEST(Counters, a_divergent_loop_has_requests_with_fewer_lanes) {
  Bench bench;
  Array<float> y(32);
  bench.run({{1}, {32}}, half_of_the_lanes_kernel, y.global());
  const auto stores = bench.counters().total(Space::Global, Access::Store);
  EXPECT_EQ(stores.requests, 3U);         // the longest lanes store three times
  EXPECT_EQ(stores.lanes, 24U + 16 + 8);  // of 24, 16 and 8 active lanes
}

TEST(Counters, are_the_same_at_any_number_of_threads) {
  KernelCounterTable first;
  for (const int threads : {1, 4}) {
    Bench bench("counted", threads);
    Array<int> x(64 * 100), y(64 * 100);
    bench.run({{100}, {64}, sizeof(Row)}, reverse_kernel, x.global(), y.global());
    if (threads == 1) first = bench.device.kernel_counters();
    const auto &a = first.at("test"), &b = bench.counters();
    EXPECT_EQ(a.blocks, b.blocks);
    EXPECT_EQ(a.sites.size(), b.sites.size());
    const auto x_loads = a.total(Space::Shared, Access::Load);
    EXPECT_EQ(x_loads.wavefronts, b.total(Space::Shared, Access::Load).wavefronts);
  }
}

/// The fault that a kernel ends with. `line`: of the macro-free statement that must be named.
template <class... Parameters, class... Arguments>
void expect_fault(FaultKind kind, unsigned line, unsigned thread, const LaunchShape& shape,
                  void (*kernel)(Parameters...), const Arguments&... arguments) {
  Bench bench("checked");
  try {
    bench.run(shape, kernel, arguments...);
    ADD_FAILURE() << "no fault";
  } catch (const KernelFault& fault) {
    EXPECT_EQ(fault.kind(), kind) << fault.what();
    EXPECT_EQ(fault.place().line, line) << fault.what();
    EXPECT_EQ(fault.place().thread.x, thread) << fault.what();
    EXPECT_TRUE(fault.place().file.ends_with("emulation_test.cpp"));
  }
}

constexpr unsigned kRaceLine = __LINE__ + 5;
void race_kernel(Global<int> y) {
  auto& row = shared<Row>();
  row.values[threadIdx.x] = 0;
  __syncthreads();
  row.values[threadIdx.x] = 1;
  y[threadIdx.x] = row.values[(threadIdx.x + 1) % 64];
}

constexpr unsigned kWriteRaceLine = __LINE__ + 3;
void write_race_kernel(Global<int>) {
  auto& row = shared<Row>();
  row.values[threadIdx.x / 2] = 1;
}

constexpr unsigned kGlobalRaceLine = __LINE__ + 2;
void global_race_kernel(Global<int> y) {
  y[threadIdx.x] = 1;
  y[(threadIdx.x + 1) % 64] = 2;
}

/// The same with a barrier between.
void ordered_kernel(Global<int> y) {
  y[threadIdx.x] = 1;
  __syncthreads();
  y[(threadIdx.x + 1) % 64] = 2;
}

/// Thread 0 reads what thread 1 is about to write: no read of what nobody writes.
constexpr unsigned kUnfilledLine = __LINE__ + 3;
void unfilled_kernel(Global<int> y) {
  auto& row = shared<Row>();
  row.values[threadIdx.x] = 1;
  y[threadIdx.x] = row.values[(threadIdx.x + 1) % 64];
}

constexpr unsigned kBoundsLine = __LINE__ + 1;
void bounds_kernel(Global<int> y) { y[threadIdx.x + 1] = 1; }

constexpr unsigned kSharedBoundsLine = __LINE__ + 3;
void shared_bounds_kernel(Global<int>) {
  auto& row = shared<Row>();
  row.values[threadIdx.x + 33] = 1;
}

constexpr unsigned kDivergentLine = __LINE__ + 3;
void divergent_kernel(Global<int> y) {
  if (threadIdx.x == 7) return;
  __syncthreads();
  y[0] = 1;
}

constexpr unsigned kOtherBarrierLine = __LINE__ + 5;
void other_barrier_kernel(Global<int>) {
  if (threadIdx.x < 16) {  // NOLINT(bugprone-branch-clone)
    __syncthreads();
  } else {
    __syncthreads();
  }
}

constexpr unsigned kMissingLaneLine = __LINE__ + 3;
void missing_lane_kernel(Global<int> y) {
  if (threadIdx.x == 9) return;
  y[threadIdx.x] = __shfl_xor_sync(~0U, 1, 1);
}

constexpr unsigned kMisledLine = __LINE__ + 3;
void misled_kernel(Global<int> y) {
  auto& row = shared<Row>();
  const int index = row.values[threadIdx.x];
  y[index * 0 + 64] = 1;
}

constexpr unsigned kUnreadLine = __LINE__ + 4;
void uninitialised_kernel(Global<int> y) {
  auto& row = shared<Row>();
  if (threadIdx.x != 3) row.values[threadIdx.x] = 1;
  y[threadIdx.x] = row.values[threadIdx.x];
}

TEST(Faults, each_is_found_at_its_line_and_thread) {
  Array<int> y(64);
  const auto g = y.global();
  // The last thread to come to a barrier goes on first, and then its warp.
  expect_fault(FaultKind::Race, kRaceLine, 33, {{1}, {64}, sizeof(Row)}, race_kernel, g);
  expect_fault(FaultKind::Race, kWriteRaceLine, 1, {{1}, {64}, sizeof(Row)}, write_race_kernel, g);
  expect_fault(FaultKind::Race, kGlobalRaceLine, 1, {{1}, {64}}, global_race_kernel, g);
  expect_fault(FaultKind::Race, kUnfilledLine, 1, {{1}, {64}, sizeof(Row)}, unfilled_kernel, g);
  expect_fault(FaultKind::OutOfBounds, kBoundsLine, 63, {{1}, {64}}, bounds_kernel, g);
  expect_fault(FaultKind::OutOfBounds, kSharedBoundsLine, 31, {{1}, {32}, sizeof(Row)},
               shared_bounds_kernel, g);
  expect_fault(FaultKind::DivergentBarrier, kDivergentLine, 0, {{1}, {64}}, divergent_kernel, g);
  expect_fault(FaultKind::DivergentBarrier, kOtherBarrierLine, 16, {{1}, {64}},
               other_barrier_kernel, g);
  expect_fault(FaultKind::MissingLane, kMissingLaneLine, 0, {{1}, {32}}, missing_lane_kernel, g);
  expect_fault(FaultKind::Uninitialised, kUnreadLine, 3, {{1}, {64}, sizeof(Row)},
               uninitialised_kernel, g);
  expect_fault(FaultKind::Uninitialised, kMisledLine, 0, {{1}, {64}, sizeof(Row)}, misled_kernel,
               g);
}

/// Each warp works on its own part, in step by warp barriers alone.
void warp_only_kernel(Global<int> y) {
  auto& row = shared<Row>();
  const unsigned first = threadIdx.x / 32 * 32, lane = threadIdx.x % 32;
  row.values[first + lane] = static_cast<int>(lane);
  __syncwarp();
  y[threadIdx.x] = row.values[first + (lane + 1) % 32];
}

TEST(Faults, a_barrier_orders_accesses_of_global_memory) {
  Bench bench("checked");
  Array<int> y(64);
  bench.run({{1}, {64}}, ordered_kernel, y.global());
  EXPECT_EQ(y.values[5], 2);
}

TEST(Faults, a_warp_barrier_orders_the_lanes_of_its_warp) {
  Bench bench("checked");
  Array<int> y(64);
  bench.run({{1}, {64}, sizeof(Row)}, warp_only_kernel, y.global());
  EXPECT_EQ(y.values[31], 0);
  EXPECT_EQ(y.values[32], 1);
}

TEST(Faults, the_device_goes_on_after_one) {
  Bench bench("checked");
  Array<int> x(64), y(64);
  EXPECT_THROW(bench.run({{1}, {64}}, divergent_kernel, y.global()), KernelFault);
  bench.run({{1}, {64}, sizeof(Row)}, reverse_kernel, x.global(), y.global());
}

TEST(Launch, refuses_shapes_that_no_gpu_takes) {
  Bench bench;
  Array<int> y(1);
  for (const LaunchShape& shape :
       {LaunchShape{{1}, {1025}}, {{1}, {32, 32, 2}}, {{0}, {32}}, {{1, 65536}, {32}}}) {
    EXPECT_THROW(bench.run(shape, warp_only_kernel, y.global()), InvalidArgument);
  }
}

}  // namespace
}  // namespace triptych::cuda::counted
