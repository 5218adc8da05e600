// Costs of small kernels in plain/costs.cu against counts by hand: sectors behind the caches,
// passes of the constant cache, contention, branches and arithmetic.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/emulation/gpu.h"
#include "backends/cuda/emulation/launch_bounds.h"
#include "experiments/kernels/registers.h"
#include "tests/unit/cuda/plain_kernels.h"

namespace triptych::cuda {
namespace {

using emulation::Arithmetic;
using kernels::KernelRun;
using enum MemorySpace;
using enum MemoryAccess;

AccessCounters counted(const KernelRun& run, MemorySpace space, MemoryAccess access) {
  return run.counters.total(space, access);
}

emulation::SiteCosts costs(const KernelRun& run, MemorySpace space, MemoryAccess access) {
  emulation::SiteCosts sum;
  for (const auto& [site, at] : run.costs.sites) {
    if (site.space == space && site.access == access) sum += at;
  }
  return sum;
}

emulation::BranchCounters branches(const KernelRun& run) {
  emulation::BranchCounters sum;
  for (const auto& [site, at] : run.costs.branches) {
    sum.warps += at.warps;
    sum.divergent += at.divergent;
  }
  return sum;
}

emulation::IssueCounters issued(const KernelRun& run, Arithmetic kind) {
  const auto found = run.costs.arithmetic.find(kind);
  return found == run.costs.arithmetic.end() ? emulation::IssueCounters{} : found->second;
}

using Count = std::function<std::uint64_t(const KernelRun&)>;

/// Counts by the names that the rows of the table use.
const std::map<std::string, Count>& counts() {
  static const std::map<std::string, Count> all = {
      {"loads", [](const auto& run) { return counted(run, Global, Load).requests; }},
      {"load sectors", [](const auto& run) { return counted(run, Global, Load).sectors; }},
      {"load L2", [](const auto& run) { return costs(run, Global, Load).l2_sectors; }},
      {"load memory", [](const auto& run) { return costs(run, Global, Load).memory_sectors; }},
      {"store sectors", [](const auto& run) { return counted(run, Global, Store).sectors; }},
      {"store L2", [](const auto& run) { return costs(run, Global, Store).l2_sectors; }},
      {"store memory", [](const auto& run) { return costs(run, Global, Store).memory_sectors; }},
      {"constants", [](const auto& run) { return counted(run, Constant, Load).requests; }},
      {"constant passes", [](const auto& run) { return counted(run, Constant, Load).wavefronts; }},
      {"atomics", [](const auto& run) { return counted(run, Global, Atomic).requests; }},
      {"contention", [](const auto& run) { return costs(run, Global, Atomic).contention; }},
      {"atomic L2", [](const auto& run) { return costs(run, Global, Atomic).l2_sectors; }},
      {"atomic memory", [](const auto& run) { return costs(run, Global, Atomic).memory_sectors; }},
      {"shared contention", [](const auto& run) { return costs(run, Shared, Atomic).contention; }},
      {"shared passes", [](const auto& run) { return counted(run, Shared, Load).wavefronts; }},
      {"shared atomic passes",
       [](const auto& run) { return counted(run, Shared, Atomic).wavefronts; }},
      {"branches", [](const auto& run) { return branches(run).warps; }},
      {"divergent", [](const auto& run) { return branches(run).divergent; }},
      {"operations",
       [](const auto& run) { return static_cast<std::uint64_t>(run.costs.operations()); }},
      {"multiply-adds",
       [](const auto& run) { return issued(run, Arithmetic::MultiplyAdd32).warps; }},
      {"multiplications",
       [](const auto& run) { return issued(run, Arithmetic::Multiply32).warps; }},
      {"of doubles", [](const auto& run) { return issued(run, Arithmetic::Multiply64).warps; }},
      {"divisions", [](const auto& run) { return issued(run, Arithmetic::Divide32).warps; }},
      {"functions", [](const auto& run) { return issued(run, Arithmetic::Function).warps; }}};
  return all;
}

struct Row {
  std::string kernel;
  std::vector<std::string> arguments;
  std::vector<std::int64_t> grid, block;
  std::vector<std::pair<std::string, std::uint64_t>> expected;
  std::string gpu = "h100";
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.kernel; }

const std::string kX = "f32:1024=1", kY = "f32:128";

// A sector is 32 bytes: 8 floats. A warp has 32 lanes.
const std::vector<Row> kRows = {
    // Two warps read 64 floats, then write them.
    {"strided<1, 0>",
     {kX, kY},
     {1},
     {64},
     {{"loads", 2}, {"load sectors", 8}, {"load L2", 8}, {"load memory", 8}, {"store memory", 8}}},
    // The second warp finds the one sector in the L1.
    {"strided<0, 0>", {kX, kY}, {1}, {64}, {{"load sectors", 2}, {"load L2", 1}}},
    {"strided<2, 0>", {kX, kY}, {1}, {32}, {{"load sectors", 8}, {"load memory", 8}}},
    {"strided<4, 0>", {kX, kY}, {1}, {32}, {{"load sectors", 16}}},
    {"strided<8, 0>", {kX, kY}, {1}, {32}, {{"load sectors", 32}, {"load memory", 32}}},
    {"strided<16, 0>", {kX, kY}, {1}, {32}, {{"load sectors", 32}}},
    // Floats 1 to 32 and 33 to 64 share the sector of float 32.
    {"strided<1, 1>", {kX, kY}, {1}, {64}, {{"load sectors", 10}, {"load L2", 9}}},
    {"vectors", {"f32:32x4=1", "f32:32x4"}, {1}, {32}, {{"loads", 1}, {"load sectors", 16}}},
    // The first of four turns fills the L1.
    {"again", {kX, kY}, {1}, {32}, {{"loads", 4}, {"load sectors", 16}, {"load L2", 4}}},
    // Each of two blocks begins with an empty L1, the second one with a full L2.
    {"strided<1, 0>",
     {kX, "f32:64"},
     {2},
     {32},
     {{"load sectors", 8},
      {"load L2", 8},
      {"load memory", 4},
      {"store L2", 8},
      {"store memory", 8}}},
    // 50 KiB fit into the 96 KiB of a T4: the second turn stays in the L1.
    {"streamed",
     {"f32:12800=1", kY, "400"},
     {1},
     {32},
     {{"load sectors", 3200}, {"load L2", 1600}, {"load memory", 1600}},
     "t4"},
    // 100 KiB do not: the oldest sector is always the next one. All of them are in the L2.
    {"streamed",
     {"f32:25600=1", kY, "800"},
     {1},
     {32},
     {{"load sectors", 6400}, {"load L2", 6400}, {"load memory", 3200}},
     "t4"},
    {"streamed", {"f32:25600=1", kY, "800"}, {1}, {32}, {{"load L2", 3200}}},
    // A store leaves its sectors in the L2, not in the L1.
    {"stored_and_loaded", {"f32:32", kY}, {1}, {32}, {{"load L2", 4}, {"load memory", 0}}},
    // The L2 writes a sector to memory once.
    {"stored_twice", {"f32:32"}, {1}, {32}, {{"store L2", 8}, {"store memory", 4}}},
    {"constant_of_all", {kY}, {2}, {32}, {{"constants", 2}, {"constant passes", 2}}},
    {"constant_of_lanes", {kY}, {1}, {32}, {{"constants", 1}, {"constant passes", 32}}},
    {"constant_of_pairs", {kY}, {1}, {32}, {{"constants", 1}, {"constant passes", 16}}},
    {"constant_of_warps", {kY}, {1}, {64}, {{"constants", 2}, {"constant passes", 2}}},
    // An atomic operation reads its sectors from memory, and writes them back.
    {"atomic<1>",
     {"i32:64=0"},
     {1},
     {64},
     {{"atomics", 2}, {"contention", 2}, {"atomic L2", 8}, {"atomic memory", 16}}},
    {"atomic<2>", {"i32:64=0"}, {1}, {64}, {{"atomics", 2}, {"contention", 4}, {"atomic L2", 4}}},
    {"atomic<1024>",
     {"i32:1=0"},
     {1},
     {64},
     {{"atomics", 2}, {"contention", 64}, {"atomic L2", 2}, {"atomic memory", 2}}},
    {"atomic_in_eight", {"i32:8=0"}, {1}, {32}, {{"contention", 4}, {"atomic L2", 1}}},
    {"shared_atomic<1>",
     {"i32:64"},
     {1},
     {64},
     {{"shared contention", 2}, {"shared atomic passes", 2}}},
    {"shared_atomic<1024>",
     {"i32:64"},
     {1},
     {64},
     {{"shared contention", 64}, {"shared atomic passes", 64}}},
    {"shared_strided<1>", {kY}, {1}, {32}, {{"shared passes", 1}}},
    {"shared_strided<2>", {kY}, {1}, {32}, {{"shared passes", 2}}},
    {"shared_strided<32>", {kY}, {1}, {32}, {{"shared passes", 32}}},
    {"shared_strided<33>", {kY}, {1}, {32}, {{"shared passes", 1}}},
    {"odd", {kY}, {1}, {64}, {{"branches", 2}, {"divergent", 2}}},
    {"second_warp", {kY}, {1}, {64}, {{"branches", 2}, {"divergent", 0}}},
    {"bounded", {kY, "40"}, {1}, {64}, {{"branches", 2}, {"divergent", 1}}},
    {"sized", {kY, "40"}, {1}, {64}, {{"branches", 2}, {"divergent", 1}}},
    {"nested", {kY}, {1}, {32}, {{"branches", 2}, {"divergent", 2}}},
    // Lanes leave after 0, 1 and 2 turns. The last ones leave together.
    {"turns", {kY}, {1}, {32}, {{"branches", 4}, {"divergent", 3}}},
    {"returned", {kY, "20"}, {1}, {32}, {{"branches", 1}, {"divergent", 1}}},
    {"after_barrier", {kY}, {1}, {64}, {{"branches", 2}, {"divergent", 2}}},
    {"after_shuffle", {kY}, {1}, {32}, {{"branches", 1}, {"divergent", 1}}},
    {"chain", {kY}, {1}, {32}, {{"branches", 3}, {"divergent", 3}}},
    // The branch belongs to the kernel, not to the function that it called before.
    {"behind_call", {kY}, {1}, {64}, {{"branches", 2}, {"divergent", 2}}},
    {"behind_call_with_branch", {kY}, {1}, {32}, {{"branches", 2}, {"divergent", 1}}},
    // Four comparisons in the function, and four branches of the loop.
    {"turns_of_calls", {kY}, {1}, {32}, {{"branches", 8}, {"divergent", 3}}},
    {"behind_call_that_meets", {kY}, {1}, {64}, {{"branches", 2}, {"divergent", 2}}},
    {"axpy",
     {kX, "f32:128=1", "2"},
     {1},
     {64},
     {{"multiply-adds", 2}, {"multiplications", 0}, {"operations", 2 * 64}, {"branches", 0}}},
    {"quotient", {kX, kY}, {1}, {64}, {{"divisions", 2}, {"operations", 64}}},
    {"of_doubles", {kX, kY}, {1}, {32}, {{"of doubles", 1}, {"multiplications", 0}}},
    {"exponential", {kX, kY}, {1}, {64}, {{"functions", 2}, {"operations", 64}}},
    // Half of the lanes multiply in one instruction of the warp.
    {"square_of_odd", {kX, kY}, {1}, {32}, {{"multiplications", 1}, {"operations", 16}}},
    {"polynomial", {kX, kY}, {1}, {32}, {{"multiply-adds", 8}, {"operations", 8 * 32 * 2}}}};

class PlainCosts : public testing::TestWithParam<Row> {};

TEST_P(PlainCosts, equal_counts_by_hand) {
  const auto& row = GetParam();
  const auto run = run_plain("costs:" + row.kernel, {.arguments = row.arguments,
                                                     .grid = row.grid,
                                                     .block = row.block,
                                                     .gpu = &emulation::find_gpu(row.gpu)});
  for (const auto& [name, expected] : row.expected) {
    EXPECT_EQ(counts().at(name)(run), expected) << row.kernel << ": " << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, PlainCosts, testing::ValuesIn(kRows));

TEST(PlainBranches, have_the_line_of_their_condition) {
  const auto run = run_plain(
      "costs:odd", {.arguments = {kY}, .block = {32}, .gpu = &emulation::find_gpu("h100")});
  ASSERT_EQ(run.costs.branches.size(), 1U);
  const auto& site = run.costs.branches.begin()->first;
  EXPECT_TRUE(site.file.ends_with("costs.cu")) << site.file;
  EXPECT_EQ(site.line, line_with("costs", "odd lanes"));
}

TEST(Registers, are_read_from_the_messages_of_ptxas) {
  const auto registers = kernels::read_registers(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z6stagedILi16EEvPKfPf' for 'sm_90'\n"
      "ptxas info    : Function properties for _Z6stagedILi16EEvPKfPf\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 26 registers, used 1 barriers, 368 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function '_Z5scalePKfPffi' for 'sm_90'\n"
      "ptxas info    : Used 10 registers, 376 bytes cmem[0]\n");
  EXPECT_EQ(registers, (std::map<std::string, int>{{"scale", 10}, {"staged<16>", 26}}));
}

TEST(Registers, limit_the_occupancy_on_their_gpu) {
  const auto run = run_plain("costs:odd", {.arguments = {"f32:256"},
                                           .block = {256},
                                           .gpu = &emulation::find_gpu("h100"),
                                           .registers = {{"odd", 128}}});
  // 65,536 registers hold 512 threads of 128.
  EXPECT_EQ(run.counters.occupancy.at("9.0").warps, 16);
  EXPECT_EQ(run.counters.occupancy.at("9.0").limits, std::vector{OccupancyLimit::Registers});
  EXPECT_EQ(run.counters.occupancy.at("7.5").registers, 0);
}

TEST(LaunchBounds, are_work_over_the_rate_of_each_unit) {
  const auto& gpu = emulation::find_gpu("a100");
  KernelCounters counters;
  counters.launches = 2;
  counters.blocks = 20;  // 10 multiprocessors work
  counters.sites[{.space = Shared}].wavefronts = 14100;
  emulation::KernelCosts costs;
  costs.sites[{}].memory_sectors = 1000;
  costs.arithmetic[Arithmetic::MultiplyAdd32] = {2820000, 90240000};
  const auto bounds = emulation::bounds_of(gpu, counters, costs);
  ASSERT_EQ(bounds.size(), 3U);
  // 1,410 MHz and 64 lanes: a warp takes half a clock.
  EXPECT_EQ(bounds[0].unit, "f32 units");
  EXPECT_DOUBLE_EQ(bounds[0].seconds, 2820000 / 2.0 / 10 / 1.41e9);
  EXPECT_EQ(bounds[1].unit, "shared memory");
  EXPECT_DOUBLE_EQ(bounds[1].seconds, 14100.0 / 10 / 1.41e9);
  EXPECT_EQ(bounds[2].unit, "memory");
  EXPECT_DOUBLE_EQ(bounds[2].seconds, 32000 / 1555.2e9);
  EXPECT_DOUBLE_EQ(costs.operations(), 2.0 * 90240000);
}

}  // namespace
}  // namespace triptych::cuda
