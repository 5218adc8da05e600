// Faults that the emulator finds beyond one block's barriers: races between blocks, threads that do
// not end, boxes at places where the copy engine cannot put them. Also the order of threads.
// SPDX-License-Identifier: Apache-2.0
#define TRIPTYCH_COUNTED

#include <gtest/gtest.h>

#include <optional>

#include "backends/cuda/kernels/hopper.cuh"
#include "tests/unit/cuda/launch_bench.h"

namespace triptych::cuda::counted {
namespace {

/// The fault that a kernel ends with.
template <class... Parameters, class... Arguments>
void expect_fault(FaultKind kind, unsigned line, Bench& bench, const LaunchShape& shape,
                  void (*kernel)(Parameters...), const Arguments&... arguments) {
  try {
    bench.run(shape, kernel, arguments...);
    ADD_FAILURE() << "no fault";
  } catch (const KernelFault& fault) {
    EXPECT_EQ(fault.kind(), kind) << fault.what();
    EXPECT_EQ(fault.place().line, line) << fault.what();
  }
}

constexpr unsigned kSameWordLine = __LINE__ + 1;
void same_word_kernel(Global<int> y) { y[threadIdx.x] = static_cast<int>(blockIdx.x); }

constexpr unsigned kNeighbourLine = __LINE__ + 3;
void read_neighbour_kernel(Global<int> y) {
  y[blockIdx.x] = 1;
  if (blockIdx.x > 0) y[blockIdx.x + 8] = y[blockIdx.x - 1];
}

constexpr unsigned kOverwriteLine = __LINE__ + 3;
void write_what_others_read_kernel(Global<int> y) {
  const int first = y[0];
  if (blockIdx.x == 3) y[0] = first + 1;
}

/// Every block its own half of a word.
void own_half_kernel(Global<std::int16_t> y) {
  for (int i = 0; i < 2; ++i) y[blockIdx.x] = 1;
  const std::int16_t mine = y[blockIdx.x];
  y[blockIdx.x] = mine;
}

constexpr unsigned kHalfLine = __LINE__ + 10;
/// Two blocks read a whole word, one its first half, and one writes its second.
void read_and_write_parts_kernel(Global<int> words, Global<std::int16_t> halves, Global<int> y) {
  if (blockIdx.x < 2) {
    y[blockIdx.x] = words[0];
    return;
  }
  if (blockIdx.x == 2) {
    y[2] = halves[0];
  } else {
    halves[1] = 5;
  }
}
void read_all_kernel(Global<int> x, Global<int> y) { y[blockIdx.x] = x[0]; }

TEST(GlobalRaces, between_blocks_of_one_launch_are_found) {
  Array<int> y(64);
  const auto g = y.global();
  Bench bench("checked", 1);
  expect_fault(FaultKind::Race, kSameWordLine, bench, {{2}, {32}}, same_word_kernel, g);
  expect_fault(FaultKind::Race, kNeighbourLine, bench, {{2}, {1}}, read_neighbour_kernel, g);
  expect_fault(FaultKind::Race, kOverwriteLine, bench, {{4}, {1}}, write_what_others_read_kernel,
               g);
  const Global<std::int16_t> halves(reinterpret_cast<std::int16_t*>(y.values.data()), 128);
  Array<int> read(4);
  expect_fault(FaultKind::Race, kHalfLine, bench, {{4}, {1}}, read_and_write_parts_kernel, g,
               halves, read.global());
}

TEST(GlobalRaces, are_not_what_one_block_does_or_two_launches_or_two_parts_of_a_word) {
  Bench bench("checked");
  Array<int> x(64), y(64);
  Array<std::int16_t> halves(64);
  bench.run({{64}, {1}}, own_half_kernel, halves.global());
  bench.run({{64}, {1}}, read_all_kernel, x.global(), y.global());
  bench.run({{64}, {1}}, read_all_kernel, y.global(), x.global());
  bench.run({{1}, {32}}, same_word_kernel, y.global());
}

struct Flag {
  Shared<int, 1> up;
};

/// Thread 0 waits until another thread of the block has raised the flag.
void wait_for_flag_kernel(Global<int> y) {
  auto& flag = shared<Flag>();
  if (threadIdx.x == 0) flag.up[0] = 0;
  __syncthreads();
  if (threadIdx.x == 40) flag.up[0] = 7;
  int seen = 0;
  while (threadIdx.x == 0 && seen == 0) seen = flag.up[0];
  if (threadIdx.x == 0) y[0] = seen;
}

constexpr unsigned kSpinLine = __LINE__ + 3;
void spin_kernel(Global<int> y) {
  int seen = 0;
  while (seen == 0) seen = y[0];
}

constexpr unsigned kLoopLine = __LINE__ + 3;
void endless_loop_kernel(Global<int> y) {
  for (int i = 0; i < 64; i = (i + 1) % 64) {
    y[i] = i;
  }
}

TEST(Endless, a_thread_that_reads_the_same_place_lets_others_go_on) {
  for (const std::uint64_t seed : {0, 1, 2}) {
    Bench bench("counted");
    bench.device.follow({.seed = seed});
    Array<int> y(1);
    bench.run({{1}, {64}, sizeof(Flag)}, wait_for_flag_kernel, y.global());
    EXPECT_EQ(y.values[0], 7);
  }
}

TEST(Endless, a_thread_that_never_ends_is_stopped_at_its_line) {
  Array<int> y(64);
  Bench bench("counted");
  expect_fault(FaultKind::Endless, kSpinLine, bench, {{1}, {2}}, spin_kernel, y.global());
  bench.device.follow({.most_steps = 10000});
  expect_fault(FaultKind::Endless, kLoopLine, bench, {{1}, {1}}, endless_loop_kernel, y.global());
}

/// The last thread to come leaves its number.
void last_kernel(Global<int> y) { y[0] = static_cast<int>(threadIdx.x); }

TEST(Schedule, a_seed_draws_an_order_of_threads_that_is_the_same_every_time) {
  const auto last = [](std::uint64_t seed) {
    Bench bench("counted");
    bench.device.follow({.seed = seed});
    Array<int> y(1);
    bench.run({{1}, {1024}}, last_kernel, y.global());
    return y.values[0];
  };
  EXPECT_EQ(last(0), 1023);
  EXPECT_EQ(last(1), last(1));
  EXPECT_NE(last(1), last(2));
}

struct Tiles {
  Swizzled<8> tile;
  Shared<float, 32> behind;
  Swizzled<8> shifted;
  PhaseBarrier full;
};

enum class Box { Whole, OfShiftedTile, BeyondTheTile, NeverWaitedFor };

template <Box kBox>
void box_kernel(TensorMap map) {
  auto& tiles = shared<Tiles>();
  tiles.full.begin(1);
  publish_barriers();
  tiles.full.expect(8 * 128);
  load_box(kBox == Box::OfShiftedTile ? tiles.shifted : tiles.tile,
           kBox == Box::BeyondTheTile ? 1 : 0, map, 0, 0, tiles.full);
  if (kBox != Box::NeverWaitedFor) tiles.full.wait(0);
}

TEST(CopyEngine, puts_whole_boxes_at_multiples_of_the_swizzle_for_somebody_who_waits) {
  alignas(128) static BFloat16 elements[8 * 64];
  const auto map = make_tensor_map(elements, 8, 64, 8);
  const auto kind_of = [&](void (*kernel)(TensorMap)) -> std::optional<FaultKind> {
    try {
      Bench("counted").run({{1}, {1}, sizeof(Tiles)}, kernel, map);
    } catch (const KernelFault& fault) {
      return fault.kind();
    }
    return std::nullopt;
  };
  EXPECT_EQ(kind_of(box_kernel<Box::Whole>), std::nullopt);
  EXPECT_EQ(kind_of(box_kernel<Box::OfShiftedTile>), FaultKind::Misaligned);
  EXPECT_EQ(kind_of(box_kernel<Box::BeyondTheTile>), FaultKind::OutOfBounds);
  EXPECT_EQ(kind_of(box_kernel<Box::NeverWaitedFor>), FaultKind::UnderWay);
}

/// Two boxes of four rows fill a tile, the one at `kFirst` first.
template <int kFirst>
void two_boxes_kernel(TensorMap map) {
  auto& tiles = shared<Tiles>();
  tiles.full.begin(1);
  publish_barriers();
  tiles.full.expect(8 * 128);
  for (const int row : {kFirst, 4 - kFirst}) load_box(tiles.tile, row, map, 0, row, tiles.full);
  tiles.full.wait(0);
}

TEST(CopyEngine, puts_several_boxes_of_one_phase_into_a_tile) {
  alignas(128) static BFloat16 elements[8 * 64];
  const auto map = make_tensor_map(elements, 8, 64, 4);
  Bench bench("checked");
  EXPECT_NO_THROW(bench.run({{1}, {1}, sizeof(Tiles)}, two_boxes_kernel<0>, map));
  EXPECT_NO_THROW(bench.run({{1}, {1}, sizeof(Tiles)}, two_boxes_kernel<4>, map));
}

TEST(CopyEngine, refuses_the_tensors_that_the_driver_refuses) {
  alignas(128) static BFloat16 elements[8 * 64];
  EXPECT_NO_THROW(make_tensor_map(elements, 8, 64, 256));
  EXPECT_THROW(make_tensor_map(elements, 8, 64, 257), DeviceError);
  EXPECT_THROW(make_tensor_map(elements, 8, 60, 8), DeviceError);  // rows of 120 bytes
  EXPECT_THROW(make_tensor_map(elements + 1, 8, 64, 8), DeviceError);
  EXPECT_THROW(make_tensor_map(elements, {64, 8, 1, 1}, {128, 8, 1, 1}), DeviceError);
  EXPECT_THROW(make_tensor_map(elements, 0, 64, 8), DeviceError);
}

}  // namespace
}  // namespace triptych::cuda::counted
