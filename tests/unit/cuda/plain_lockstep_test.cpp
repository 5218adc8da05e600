// Plain kernels whose warps part, against counts by hand, and the order of memory against CUDA's.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/io/npy.h"
#include "tests/unit/cuda/plain_kernels.h"

namespace triptych::cuda {
namespace {

using kernels::KernelRun;
using testing::HasSubstr;
using enum MemorySpace;
using enum MemoryAccess;

using Arguments = std::vector<std::string>;

KernelRun run(const std::string& kernel, Arguments arguments, std::int64_t block = 32) {
  return run_plain("lockstep:" + kernel, {.arguments = std::move(arguments), .block = {block}});
}

/// The fault of a kernel. The test fails where there is none.
KernelFault fault_of(const std::string& kernel, Arguments arguments, std::int64_t block = 32) {
  const auto run =
      kernels::run_kernel(plain_library("lockstep"),
                          {.kernel = kernel, .arguments = std::move(arguments), .block = {block}});
  if (run.fault) return *run.fault;
  ADD_FAILURE() << kernel << " has no fault";
  return {FaultKind::Assertion, {}, ""};
}

AccessCounters loads(const KernelRun& run) { return run.counters.total(Global, Load); }

std::uint64_t parted(const KernelRun& run) {
  std::uint64_t count = 0;
  for (const auto& [site, at] : run.counters.passes) count += at.divergent;
  return count;
}

TEST(PlainLockstep, lanes_that_take_turns_make_a_request_each) {
  const auto at = run("serial", {"f32:32=count", "f32:32"});
  EXPECT_EQ(loads(at).requests, 32U);
  EXPECT_EQ(loads(at).sectors, 32U);
  EXPECT_EQ(parted(at), 32U);
}

TEST(PlainLockstep, a_turn_of_a_loop_is_not_joined_with_the_next_one) {
  const auto at = run("parity", {"f32:2048=1", "f32:32"});
  EXPECT_EQ(loads(at).requests, 64U);
  EXPECT_EQ(loads(at).lanes, 64U * 16);
  EXPECT_EQ(loads(at).sectors, 64U * 4);
  EXPECT_EQ(at.outputs.at(0).tensor.as<float>()[5], 32);
}

TEST(PlainLockstep, a_filter_loads_once_in_each_turn_that_some_lane_chooses) {
  // From flags 0, 1, 2, ... each turn of 32 lanes chooses 8, one in each half sector.
  const auto at = run("chosen", {"i32:4096=count", "f32:4096=1", "f32:32", "4096"});
  EXPECT_EQ(loads(at).requests, 128U + 128U);
  EXPECT_EQ(loads(at).lanes, 4096U + 1024U);
  EXPECT_EQ(loads(at).sectors, 128U * 4 + 128U * 4);
}

TEST(PlainLockstep, long_loops_are_counted_while_they_run) {
  const auto at = run("chosen", {"i32:320000=count", "f32:320000=1", "f32:32", "320000"});
  EXPECT_EQ(loads(at).requests, 2U * 10000);
  EXPECT_EQ(loads(at).sectors, 2U * 10000 * 4);
}

TEST(PlainLockstep, calls_of_one_function_from_two_branches_are_two_requests) {
  const auto at = run("called", {"f32:32=1", "f32:32"});
  EXPECT_EQ(loads(at).requests, 2U);
  EXPECT_EQ(loads(at).sectors, 4U);
  EXPECT_EQ(at.counters.total(Global, Store).requests, 1U);
}

TEST(PlainLockstep, a_recursion_is_as_many_requests_as_it_is_deep) {
  // Element i leads to i / 2, so that lane 31 reads the elements 31, 15, 7, 3 and 1.
  const TemporaryFolder folder("halves");
  const auto file = (folder.path() / "halves.npy").string();
  std::vector<std::int32_t> halves(32);
  for (int i = 0; i < 32; ++i) halves[static_cast<std::size_t>(i)] = i / 2;
  save_npy(file, Tensor(Shape{32}, halves));
  const auto at = run("recursive", {file, "i32:32"});
  EXPECT_EQ(at.outputs.at(0).tensor.as<std::int32_t>()[31], 4);
  EXPECT_EQ(at.counters.total(Global, Store).requests, 1U);
  // A load at each of five levels, and one more where a lane goes deeper.
  EXPECT_EQ(loads(at).requests, 5U + 4U);
}

TEST(PlainOrder, a_volatile_sum_of_a_warp_is_a_race) {
  const auto fault = fault_of("volatile_sum", {"f32:32=1", "f32:1"});
  EXPECT_EQ(fault.kind(), FaultKind::Race);
  EXPECT_EQ(fault.place().line, line_with("lockstep", "volatile sum"));
  EXPECT_THAT(fault.reason(), HasSubstr("volatile does not order the lanes of a warp"));
  EXPECT_EQ(run("synchronised_sum", {"f32:32=1", "f32:1"}).outputs.at(0).tensor.as<float>()[0], 32);
}

TEST(PlainOrder, shuffles_and_votes_order_no_memory) {
  for (const auto* kernel : {"after_shuffle", "after_vote"}) {
    const auto fault = fault_of(kernel, {"f32:32=1", "f32:32"});
    EXPECT_EQ(fault.kind(), FaultKind::Race);
    EXPECT_THAT(fault.reason(), HasSubstr("shuffles and votes do not"));
  }
}

TEST(PlainOrder, a_warp_barrier_orders_the_lanes_of_its_mask) {
  run("half_warps", {"f32:32=1", "f32:32"});
  run("rest_of_warp", {"f32:32=1", "f32:32=0", "20"});
  const auto fault = fault_of("across_halves", {"f32:32=1", "f32:32"});
  EXPECT_EQ(fault.kind(), FaultKind::Race);
  EXPECT_EQ(fault.place().line, line_with("lockstep", "across halves"));
}

TEST(PlainOrder, fences_and_atomic_operations_make_a_lock) {
  const auto at = run("locked", {"i32:1=0", "i32:1=0"}, 96);
  EXPECT_EQ(at.outputs.at(1).tensor.as<std::int32_t>()[0], 96);
  const auto fault = fault_of("locked_without_fences", {"i32:1=0", "i32:1=0"}, 96);
  EXPECT_EQ(fault.kind(), FaultKind::Race);
  EXPECT_EQ(fault.place().line, line_with("lockstep", "locked without fences"));
}

TEST(PlainOrder, an_atomic_operation_that_fails_tells_nobody) {
  const auto fault = fault_of("failed_lock", {"i32:1=0", "i32:64=0"});
  EXPECT_EQ(fault.kind(), FaultKind::Race);
  EXPECT_EQ(fault.place().line, line_with("lockstep", "failed lock"));
}

TEST(PlainOrder, an_atomic_operation_does_not_hide_the_plain_store_before_it) {
  const auto fault = fault_of("cleared_and_counted", {"i32:1"});
  EXPECT_EQ(fault.kind(), FaultKind::Race);
  EXPECT_EQ(fault.place().line, line_with("lockstep", "cleared and counted: no barrier"));
}

TEST(PlainTypes, a_structure_is_copied_in_pieces_of_its_alignment) {
  const auto part = run("copied_part", {"f32:32x5=count", "f32:32"});
  EXPECT_EQ(loads(part).requests, 4U);
  EXPECT_EQ(loads(part).useful_bytes, 32U * 16);
  EXPECT_EQ(part.outputs.at(0).tensor.as<float>()[1], 6 + 7 + 8 + 9);
  const auto whole = run("copied_whole", {"f32:32x5=count", "f32:32x5"});
  EXPECT_EQ(loads(whole).requests, 5U);
  EXPECT_EQ(whole.counters.total(Global, Store).requests, 5U);
  const auto pairs = run("copied_pairs", {"i64:66=count", "i64:66"});
  EXPECT_EQ(loads(pairs).requests, 2U);
}

TEST(PlainTypes, code_for_a_gpu_is_compiled) {
  const auto at = run("for_which_gpu", {"i32:32"});
  EXPECT_EQ(at.outputs.at(0).tensor.as<std::int32_t>()[0], 900);
}

TEST(PlainTypes, numbers_that_no_array_has_are_refused) {
  for (const auto* kernel : {"doubles", "shorts", "addresses"}) {
    try {
      kernels::run_kernel(plain_library("lockstep"),
                          {.kernel = kernel, .arguments = {"i64:32=0"}, .block = {32}});
      ADD_FAILURE() << kernel << " was not refused";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr("argument 1"));
    }
  }
}

TEST(PlainBarriers, skip_threads_that_have_ended_when_asked) {
  const Arguments arguments = {"f32:64=count", "f32:64=0", "40"};
  const auto fault = fault_of("returns_early", arguments, 64);
  EXPECT_EQ(fault.kind(), FaultKind::DivergentBarrier);
  const auto run = run_plain("lockstep:returns_early",
                             {.arguments = arguments, .block = {64}, .skip_ended = true});
  EXPECT_EQ(run.outputs.at(0).tensor.as<float>()[0], 39);
  ASSERT_EQ(run.warnings.size(), 1U);
  const auto line = line_with("lockstep", "returns early");
  EXPECT_THAT(run.warnings[0], HasSubstr("lockstep.cu:" + std::to_string(line)));
}

TEST(PlainLockstep, bytes_of_a_shared_word_have_histories_of_their_own) {
  EXPECT_EQ(run("own_bytes", {"i32:32"}).outputs.at(0).tensor.as<std::int32_t>()[31], 1);
  EXPECT_EQ(fault_of("bytes_then_words", {"i32:32"}).kind(), FaultKind::Race);
  const auto race = fault_of("words_then_bytes", {"i32:32"});
  EXPECT_EQ(race.kind(), FaultKind::Race);
  EXPECT_THAT(race.reason(), HasSubstr("writes byte 1 of the shared variable words"));
  const auto undefined = fault_of("half_words", {"i32:32"});
  EXPECT_EQ(undefined.kind(), FaultKind::Uninitialised);
  EXPECT_THAT(undefined.reason(), HasSubstr("byte 0 of the shared variable words"));
}

}  // namespace
}  // namespace triptych::cuda
