// Kernels in plain CUDA, compiled when the test runs: their counts are those of the same kernels in
// the program's own dialect, and closed forms. Their values are what CUDA says.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "core/io/npy.h"
#include "tests/unit/cuda/matmul_counters.h"
#include "tests/unit/cuda/plain_kernels.h"

namespace triptych::cuda {
namespace {

using kernels::KernelRun;
using enum MemorySpace;
using enum MemoryAccess;

KernelRun run_ladder(const std::string& kernel) {
  return run_plain("ladder:" + kernel, {.arguments = {"f32:70x50=random", "f32:50x90=random",
                                                      "f32:70x90", "i64:2=0", "70", "90", "50"},
                                        .grid = {3, 3},
                                        .block = {32, 32}});
}

void expect_same(const KernelCounters& plain, const KernelCounters& own) {
  EXPECT_EQ(plain.blocks, own.blocks);
  EXPECT_EQ(plain.threads, own.threads);
  EXPECT_EQ(plain.barriers, own.barriers);
  for (const auto space : {Global, Shared}) {
    for (const auto access : {Load, Store}) {
      const auto a = plain.total(space, access), b = own.total(space, access);
      EXPECT_EQ(a.requests, b.requests);
      EXPECT_EQ(a.lanes, b.lanes);
      EXPECT_EQ(a.useful_bytes, b.useful_bytes);
      EXPECT_EQ(a.distinct_bytes, b.distinct_bytes);
      EXPECT_EQ(a.sectors, b.sectors);
      EXPECT_EQ(a.wavefronts, b.wavefronts);
    }
  }
}

TEST(PlainLadder, has_the_counts_of_the_same_steps_in_the_programs_dialect) {
  const std::pair<const char*, const char*> steps[] = {{"naive", "naive"},
                                                       {"coalesced", "coalesced"},
                                                       {"tiled<false, 32>", "tiled"},
                                                       {"tiled<true, 32>", "tiled-transposed"},
                                                       {"tiled<true, 33>", "tiled-padded"}};
  for (const auto& [plain, own] : steps) {
    SCOPED_TRACE(plain);
    const auto run = run_ladder(plain);
    expect_same(run.counters, matmul_counters(own, {}, {70, 50}, {50, 90}));
  }
}

TEST(PlainLadder, has_one_chain_of_fused_multiply_adds_in_every_step) {
  const auto bits = [](const char* kernel) {
    const auto run = run_ladder(kernel);
    const auto y = run.outputs.at(0).tensor.as<float>();
    return std::vector<float>(y.begin(), y.end());
  };
  const auto naive = bits("naive");
  EXPECT_EQ(naive, bits("coalesced"));
  EXPECT_EQ(naive, bits("tiled<false, 32>"));
}

AccessCounters total(const KernelRun& run, MemorySpace space, MemoryAccess access) {
  return run.counters.total(space, access);
}

TEST(PlainMemory, a_coalesced_copy_takes_four_sectors_per_request) {
  const auto run = run_plain(
      "memory:copy", {.arguments = {"f32:256=count", "f32:256"}, .grid = {4}, .block = {64}});
  for (const auto access : {Load, Store}) {
    EXPECT_EQ(total(run, Global, access).requests, 8U);
    EXPECT_EQ(total(run, Global, access).sectors, 8U * 4);
    EXPECT_EQ(total(run, Global, access).useful_bytes, 1024U);
  }
  EXPECT_EQ(run.outputs.at(0).tensor.as<float>()[255], 255);
}

TEST(PlainMemory, a_column_takes_a_sector_for_each_lane) {
  const auto run =
      run_plain("memory:column", {.arguments = {"f32:1024=0", "f32:32"}, .block = {32}});
  EXPECT_EQ(total(run, Global, Load).requests, 1U);
  EXPECT_EQ(total(run, Global, Load).sectors, 32U);
  EXPECT_EQ(total(run, Global, Store).sectors, 4U);
}

TEST(PlainMemory, strides_take_the_sectors_that_they_span) {
  for (const unsigned step : {0U, 1U, 2U, 3U, 4U, 8U}) {
    const auto run =
        run_plain("memory:stride",
                  {.arguments = {"f32:256=0", "f32:32", std::to_string(step)}, .block = {32}});
    const auto spanned = step == 0 ? 1 : (31 * step + 1 + 7) / 8;
    EXPECT_EQ(total(run, Global, Load).sectors, spanned) << step;
  }
}

TEST(PlainMemory, vectors_are_one_access_and_triples_are_three) {
  const auto vectors =
      run_plain("memory:vectors", {.arguments = {"f32:64x4=1", "f32:64x4"}, .block = {64}});
  EXPECT_EQ(total(vectors, Global, Load).requests, 2U);
  EXPECT_EQ(total(vectors, Global, Load).sectors, 2U * 16);
  EXPECT_EQ(total(vectors, Global, Store).useful_bytes, 1024U);
  const auto y = vectors.outputs.at(0).tensor.as<float>();
  EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 4), (std::vector<float>{2, 1, 1, 2}));
  const auto triples =
      run_plain("memory:triples", {.arguments = {"f32:32x3=1", "f32:32"}, .block = {32}});
  EXPECT_EQ(total(triples, Global, Load).requests, 3U);
  EXPECT_EQ(total(triples, Global, Load).sectors, 3U * 12);
}

TEST(PlainMemory, loads_with_a_hint_are_loads) {
  const auto run = run_plain("memory:cached", {.arguments = {"f32:32=1", "f32:32"}, .block = {32}});
  EXPECT_EQ(total(run, Global, Load).requests, 2U);
  EXPECT_EQ(total(run, Global, Load).sectors, 4U + 1);
}

TEST(PlainMemory, a_column_of_a_tile_lies_in_one_bank_unless_it_is_padded) {
  const kernels::KernelRunRequest request = {.arguments = {"f32:32x32=count", "f32:32x32"},
                                             .block = {32, 32}};
  const auto plain = run_plain("memory:transposed<32>", request);
  EXPECT_EQ(total(plain, Shared, Load).wavefronts, 32U * 32);
  EXPECT_EQ(total(plain, Shared, Store).wavefronts, 32U);
  EXPECT_EQ(plain.counters.shared_bytes, 4096U);
  const auto padded = run_plain("memory:transposed<33>", request);
  EXPECT_EQ(total(padded, Shared, Load).wavefronts, 32U);
  EXPECT_EQ(padded.counters.shared_bytes, 32U * 33 * 4);
  EXPECT_EQ(padded.outputs.at(0).tensor.as<float>()[1], 32);
}

TEST(PlainMemory, shared_memory_of_the_launch_is_counted_and_limits_the_occupancy) {
  const auto run = run_plain(
      "memory:dynamic",
      {.arguments = {"f32:64=count", "f32:64"}, .block = {64}, .shared_bytes = 100 * 1024});
  EXPECT_EQ(run.outputs.at(0).tensor.as<float>()[0], 63);
  EXPECT_EQ(run.counters.shared_bytes, 100U * 1024);
  const auto& on = run.counters.occupancy.at("9.0");
  EXPECT_EQ(on.registers, 0);
  EXPECT_EQ(on.warps, 2 * 2);
  EXPECT_EQ(on.limits, std::vector{OccupancyLimit::SharedMemory});
}

TEST(PlainMemory, a_branch_that_parts_the_lanes_is_counted_by_line) {
  const auto run = run_plain("memory:parted", {.arguments = {"f32:64"}, .block = {64}});
  std::map<unsigned, PassCounters> lines;
  for (const auto& [site, at] : run.counters.passes) {
    lines[site.line].warps += at.warps;
    lines[site.line].lanes += at.lanes;
    lines[site.line].divergent += at.divergent;
  }
  std::vector<unsigned> parted;
  for (const auto& [line, at] : lines) {
    if (at.divergent == 0) continue;
    parted.push_back(line);
    EXPECT_EQ(at.lanes, at.warps * 16) << line;
  }
  EXPECT_EQ(parted.size(), 2U);
}

TEST(PlainMemory, constants_are_set_and_counted_apart) {
  const TemporaryFolder folder("mask");
  const auto file = (folder.path() / "mask.npy").string();
  save_npy(file, Tensor(Shape{3}, std::vector<float>{1, 10, 100}));
  const auto run = run_plain(
      "memory:filtered",
      {.arguments = {"f32:8=count", "f32:8", "8"}, .constants = {"mask=" + file}, .block = {8}});
  EXPECT_EQ(run.outputs.at(0).tensor.as<float>()[1], 1 + 20 + 300);
  EXPECT_EQ(total(run, Global, Load).requests, 3U);
  EXPECT_EQ(total(run, Constant, Load).requests, 3U);
  EXPECT_EQ(total(run, Constant, Load).wavefronts, 3U);
}

TEST(PlainWords, shuffles_shared_memory_and_atomics_add_up) {
  const auto run = run_plain(
      "warps:sum", {.arguments = {"f32:1000=1", "f32:1=0", "1000"}, .grid = {4}, .block = {256}});
  EXPECT_EQ(run.outputs.at(0).tensor.as<float>()[0], 1000);
  EXPECT_EQ(total(run, Global, Atomic).requests, 4U);
  EXPECT_EQ(run.counters.warp_operations, 4U * 8 * 5);
}

TEST(PlainWords, atomics_on_one_bank_take_a_pass_each) {
  const auto run = run_plain(
      "warps:histogram",
      {.arguments = {"i32:64=5", "i32:8=0", "64", "8"}, .block = {64}, .shared_bytes = 32});
  const auto counts = run.outputs.at(0).tensor.as<std::int32_t>();
  EXPECT_EQ(counts[5], 64);
  EXPECT_EQ(counts[4], 0);
  EXPECT_EQ(total(run, Shared, Atomic).requests, 2U);
  EXPECT_EQ(total(run, Shared, Atomic).wavefronts, 64U);
}

TEST(PlainWords, votes_see_all_lanes) {
  const auto run = run_plain("warps:votes", {.arguments = {"i32:32=1", "i32:32"}, .block = {32}});
  // All are 1: any is false, every is true, other + first is 2, 32 bits are set.
  EXPECT_EQ(run.outputs.at(0).tensor.as<std::int32_t>()[7],
            static_cast<std::int32_t>(0xFFFFFFFFU ^ (0U + 2 + 8 + 32)));
}

TEST(PlainWords, a_fence_and_an_atomic_operation_order_blocks) {
  const kernels::KernelRunRequest request = {
      .arguments = {"f32:8=count", "f32:8", "f32:1"}, .grid = {8}, .block = {32}};
  const auto run = run_plain("warps:last_block", request);
  EXPECT_EQ(run.outputs.at(1).tensor.as<float>()[0], 28);
}

TEST(PlainWords, functions_of_mathematics_are_there) {
  const auto run = run_plain(
      "warps:softmax", {.arguments = {"f32:2x8=count", "f32:2x8", "8"}, .grid = {2}, .block = {8}});
  const auto y = run.outputs.at(0).tensor.as<float>();
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += y[static_cast<std::size_t>(i)];
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_NEAR(y[7], y[15], 1e-7);
}

TEST(PlainWords, a_product_and_a_sum_are_rounded_once_unless_written_as_two) {
  const auto run = run_plain(
      "warps:contracted",
      {.arguments = {"f32:32=random", "f32:32=random", "f32:32=random", "f32:32", "f32:32"},
       .block = {32}});
  const auto& request = run.outputs;
  EXPECT_NE(
      std::memcmp(request.at(0).tensor.bytes().data(), request.at(1).tensor.bytes().data(), 128),
      0);
}

TEST(PlainWords, structs_local_arrays_and_flags_are_taken) {
  const auto run =
      run_plain("warps:mixed", {.arguments = {"i32:4x2=1", "f32:4", "4", "true"}, .block = {4}});
  EXPECT_TRUE(std::isfinite(run.outputs.at(0).tensor.as<float>()[3]));
}

}  // namespace
}  // namespace triptych::cuda
