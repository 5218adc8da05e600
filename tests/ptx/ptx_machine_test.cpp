// Threads that diverge, wait and cooperate, checked memory, and unknown instructions.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ptx/bench.h"

namespace triptych::ptx {
namespace {

using testing::HasSubstr;

/// Code that leaves each thread's own address of `out` in %rd1 and its number in %r1.
constexpr const char* kOwnWord =
    "ld.param.u64 %rd0, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4;"
    "add.s64 %rd1, %rd0, %rd1;\n";

TEST(PtxMachine, lets_threads_diverge_and_loop_each_as_often_as_it_likes) {
  Bench bench(std::string(kOwnWord) + R"(
    mov.u32 %r2, 0; mov.u32 %r3, 0;
    $L_loop:
    setp.ge.u32 %p1, %r3, %r1;
    @%p1 bra $L_end;
    add.u32 %r2, %r2, %r3; add.u32 %r3, %r3, 1;
    bra.uni $L_loop;
    $L_end:
    st.global.u32 [%rd1], %r2;)");
  const auto words = bench.run(70, 70);
  for (std::uint32_t i = 0; i < 70; ++i) EXPECT_EQ(words[i], i * (i + 1) / 2 - i);
}

TEST(PtxMachine, brings_lanes_together_for_a_shuffle_after_a_branch) {
  Bench bench(std::string(kOwnWord) + R"(
    mov.u32 %r2, %r1;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra $L_low;
    add.u32 %r2, %r2, 100;
    $L_low:
    shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1;
    st.global.u32 [%rd1], %r3;)");
  const auto words = bench.run(32, 32);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(words[i], i < 16 ? i + 116 : i - 16);
}

TEST(PtxMachine, shuffles_down_up_and_by_index_within_segments) {
  Bench bench(std::string(kOwnWord) + R"(
    shfl.sync.down.b32 %r2|%p1, %r1, 3, 31, -1;
    shfl.sync.up.b32 %r3, %r1, 1, 0, -1;
    shfl.sync.idx.b32 %r4, %r1, 2, 0x181F, -1;
    selp.u32 %r5, 1000000, 0, %p1;
    mad.lo.u32 %r3, %r3, 100, %r2; mad.lo.u32 %r4, %r4, 10000, %r3; add.u32 %r4, %r4, %r5;
    st.global.u32 [%rd1], %r4;)");
  const auto words = bench.run(32, 32);
  for (std::uint32_t i = 0; i < 32; ++i) {
    const auto down = i + 3 < 32 ? i + 3 : i, up = i == 0 ? 0 : i - 1, by_index = i / 8 * 8 + 2;
    EXPECT_EQ(words[i], down + 100 * up + 10000 * by_index + (i + 3 < 32 ? 1000000 : 0)) << i;
  }
}

TEST(PtxMachine, says_when_lanes_of_a_warp_wait_for_each_other_at_different_places) {
  Bench bench(std::string(kOwnWord) + R"(
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra $L_low;
    shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;
    bra $L_end;
    $L_low:
    shfl.sync.bfly.b32 %r3, %r1, 2, 31, -1;
    $L_end:)");
  EXPECT_THAT(fault_of([&] { bench.run(32, 32); }), HasSubstr("lanes wait for others"));
}

TEST(PtxMachine, holds_a_block_at_its_barrier) {
  Bench bench(std::string(kOwnWord) + R"(
    mov.u32 %r5, dynamic;
    mad.lo.u32 %r2, %r1, 4, %r5;
    st.shared.u32 [%r2], %r1;
    bar.sync 0;
    sub.u32 %r3, 99, %r1; mad.lo.u32 %r3, %r3, 4, %r5;
    ld.shared.u32 %r4, [%r3];
    st.global.u32 [%rd1], %r4;)");
  const auto words = bench.run(100, 100, 400);
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(words[i], 99 - i);
}

TEST(PtxMachine, says_who_waits_at_a_barrier_for_ever) {
  Bench bench(std::string(kOwnWord) + R"(
    setp.lt.u32 %p1, %r1, 32;
    @%p1 bra $L_other;
    bar.sync 0;
    ret;
    $L_other:
    bar.sync 1;)");
  EXPECT_THAT(fault_of([&] { bench.run(64, 64); }), HasSubstr("never ends"));
}

TEST(PtxMachine, keeps_loads_and_stores_inside_of_what_was_allocated) {
  Bench outside(std::string(kOwnWord) + "st.global.u32 [%rd1+4], %r1;");
  EXPECT_THAT(fault_of([&] { outside.run(32, 32); }), HasSubstr("lane 31"));
  Bench crooked(std::string(kOwnWord) + "st.global.v2.u32 [%rd1], {%r1, %r1};");
  EXPECT_THAT(fault_of([&] { crooked.run(2, 64); }), HasSubstr("no multiple of 8"));
  Bench shared("ld.shared.u32 %r1, [dynamic+64];");
  EXPECT_THAT(fault_of([&] { shared.run(1, 1, 64); }), HasSubstr("shared memory at 64 of 64"));
}

TEST(PtxMachine, reaches_every_memory_by_generic_addresses) {
  Bench bench(std::string(kOwnWord) + R"(
    mov.u64 %rd2, own; cvta.local.u64 %rd3, %rd2;
    st.u32 [%rd3+4], %r1;
    ld.local.u32 %r2, [own+4];
    mov.u64 %rd4, dynamic; cvta.shared.u64 %rd5, %rd4;
    st.u32 [%rd5], 40;
    ld.shared.u32 %r3, [dynamic];
    add.u32 %r2, %r2, %r3;
    st.u32 [%rd1], %r2;)",
              ".local .align 8 .b8 own[8];");
  EXPECT_EQ(bench.run(3, 3, 4), (std::vector<std::uint32_t>{40, 41, 42}));
}

TEST(PtxText, names_the_line_and_the_instruction_that_it_does_not_know) {
  EXPECT_THAT(fault_of([] { Bench("ex2.approx.ftz.f32 %f1, %f2;"); }),
              testing::AllOf(HasSubstr("line 9"), HasSubstr("ex2.approx.ftz.f32")));
  EXPECT_THAT(fault_of([] { Bench("add.cc.s32 %r1, %r2, %r3;"); }), HasSubstr("add.cc.s32"));
  EXPECT_THAT(fault_of([] { Bench("add.s32 %r1, %r2, %rd3;"); }), HasSubstr("add.s32"));
  EXPECT_THAT(fault_of([] { Bench("div.approx.ftz.f32 %f1, %f2, %f3;"); }),
              HasSubstr("div.approx"));
}

}  // namespace
}  // namespace triptych::ptx
