// Ways of lanes merged into requests of a warp, and the meeting points of small graphs.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/lockstep.h"

#include <gtest/gtest.h>

#include <bit>

namespace triptych::cuda::emulation {
namespace {

constexpr auto kStart = ControlFlow::kStart, kEnd = ControlFlow::kEnd;

struct Issued : IssueObserver {
  void requested(std::uint32_t site, const Request& request) override {
    sites.push_back(site);
    masks.push_back(request.mask);
    addresses.push_back(request.addresses);
    for (unsigned lane = 0; lane < 32; ++lane) {
      if ((request.mask >> lane & 1) == 0) addresses.back()[lane] = 0;
    }
  }
  void passed(std::uint32_t, std::uint32_t mask) override { passes.push_back(mask); }
  void parted(std::uint32_t pass) override { partings.push_back(pass); }
  std::vector<std::uint32_t> sites, masks, passes, partings;
  std::vector<std::array<std::uint64_t, 32>> addresses;
};

TEST(ControlFlow, branches_meet_at_their_immediate_post_dominator) {
  ControlFlow flow;
  // 2 parts into 3 and 4. 3 parts into 5 and 6, which meet at 7. All meet at 8.
  for (const auto& [from, to] : std::vector<std::pair<unsigned, unsigned>>{{kStart, 2},
                                                                           {2, 3},
                                                                           {2, 4},
                                                                           {3, 5},
                                                                           {3, 6},
                                                                           {5, 7},
                                                                           {6, 7},
                                                                           {7, 8},
                                                                           {4, 8},
                                                                           {8, kEnd}}) {
    flow.add(from, to);
  }
  flow.solve({});
  EXPECT_EQ(flow.meeting_point(2), 8U);
  EXPECT_EQ(flow.meeting_point(3), 7U);
  EXPECT_EQ(flow.meeting_point(8), kEnd);
  flow.clear();
  flow.add(kStart, 3);
  flow.add(3, kEnd);
  flow.solve({});
  EXPECT_EQ(flow.meeting_point(kStart), 3U);
}

TEST(ControlFlow, a_loop_that_is_left_in_its_middle_meets_behind_it) {
  ControlFlow flow;
  // 2 is the head, 3 the branch, 4 leaves to 6, 5 goes back.
  for (const auto& [from, to] : std::vector<std::pair<unsigned, unsigned>>{
           {kStart, 2}, {2, 3}, {3, 4}, {3, 5}, {4, 6}, {4, 5}, {5, 2}, {2, 6}, {6, kEnd}}) {
    flow.add(from, to);
  }
  flow.solve({});
  EXPECT_EQ(flow.meeting_point(2), 6U);
  EXPECT_EQ(flow.meeting_point(3), 6U);
}

TEST(ControlFlow, a_loop_that_nobody_has_left_ends_at_its_head) {
  ControlFlow flow;
  for (const auto& [from, to] : std::vector<std::pair<unsigned, unsigned>>{
           {kStart, 2}, {2, 3}, {3, 4}, {3, 5}, {4, 5}, {5, 2}}) {
    flow.add(from, to);
  }
  const std::uint32_t in_the_loop[] = {4};
  flow.solve(in_the_loop);
  EXPECT_EQ(flow.meeting_point(3), 5U);
  EXPECT_EQ(flow.meeting_point(2), kEnd);
}

/// Lane i of two runs i + 1 turns of a loop (head 2, body 3 with site 0), and then 4 with site 1.
void run_loops(Lockstep& lockstep, unsigned turns_of_lane_1) {
  lockstep.begin(3);
  for (unsigned lane = 0; lane < 2; ++lane) {
    lockstep.pass(lane, 2, 0);
    for (unsigned turn = 0; turn < (lane == 0 ? 1 : turns_of_lane_1); ++turn) {
      lockstep.pass(lane, 3, Lockstep::kNoPass);
      lockstep.access(lane, 0, 4 * lane, 4);
      lockstep.pass(lane, 2, 0);
    }
    lockstep.pass(lane, 4, Lockstep::kNoPass);
    lockstep.access(lane, 1, 4 * lane, 4);
    lockstep.end(lane);
  }
}

TEST(Lockstep, lanes_that_leave_a_loop_wait_behind_it) {
  Lockstep lockstep;
  Issued issued;
  run_loops(lockstep, 3);
  lockstep.close(issued);
  EXPECT_EQ(issued.sites, (std::vector<std::uint32_t>{0, 0, 0, 1}));
  EXPECT_EQ(issued.masks, (std::vector<std::uint32_t>{3, 2, 2, 3}));
  EXPECT_EQ(issued.passes, (std::vector<std::uint32_t>{3, 3, 2, 2}));
  EXPECT_EQ(lockstep.running(), 0U);
}

TEST(Lockstep, what_is_issued_in_parts_is_what_is_issued_at_once) {
  for (const unsigned turns : {2U, 5000U, 20000U}) {
    Lockstep whole, parts;
    Issued at_once, bit_by_bit;
    run_loops(whole, turns);
    whole.close(at_once);
    parts.begin(3);
    for (const unsigned lane : {0U, 1U}) {
      const auto pass = [&](std::uint32_t node) {
        parts.pass(lane, node, node == 2 ? 0 : Lockstep::kNoPass);
        if (parts.is_long(lane)) parts.advance(bit_by_bit);
      };
      pass(2);
      for (unsigned turn = 0; turn < (lane == 0 ? 1 : turns); ++turn) {
        pass(3);
        parts.access(lane, 0, 4 * lane, 4);
        pass(2);
      }
      pass(4);
      parts.access(lane, 1, 4 * lane, 4);
      parts.end(lane);
    }
    parts.close(bit_by_bit);
    EXPECT_EQ(bit_by_bit.sites, at_once.sites) << turns;
    EXPECT_EQ(bit_by_bit.masks, at_once.masks) << turns;
    EXPECT_EQ(bit_by_bit.passes, at_once.passes) << turns;
  }
}

TEST(Lockstep, lanes_that_have_ended_take_part_no_more) {
  Lockstep lockstep;
  Issued issued;
  lockstep.begin(0b111);
  lockstep.end(1);
  lockstep.close(issued);
  for (const unsigned lane : {0U, 2U}) lockstep.access(lane, 5, 4 * lane, 4);
  lockstep.close(issued);
  EXPECT_EQ(issued.masks, (std::vector<std::uint32_t>{0b101}));
}

/// All lanes run so many turns of a loop (head 2, site 0). Then the odd ones run 3 (site 1), and
/// all run 4 (site 2). The warp's instructions are issued as soon as a lane's path is long.
/// `knows_calls`: pieces are recognised by their calls where that is possible. Counts these.
unsigned part_after_a_loop(unsigned turns, Issued& issued, bool knows_calls = false) {
  constexpr std::array<char, 5> calls = {};  // places in code
  constexpr std::size_t depth = 64;
  Lockstep lockstep;
  lockstep.begin(~0U);
  unsigned recognised = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto pass = [&](std::uint32_t node) {
      if (knows_calls && lockstep.expected(lane, &calls[node], nullptr, depth) != nullptr) {
        lockstep.begin_expected(lane);
        ++recognised;
      } else {
        lockstep.pass(lane, node, node, 0, {&calls[node], nullptr, depth, nullptr});
      }
    };
    const auto step = [&](std::uint32_t node, std::uint32_t site, std::uint64_t address) {
      pass(node);
      if (lockstep.is_long(lane)) lockstep.advance(issued);
      lockstep.access(lane, site, address, 4);
    };
    for (unsigned turn = 0; turn < turns; ++turn) step(2, 0, 1000 * turn + 4 * lane);
    if (lane % 2 == 1) step(3, 1, std::uint64_t{lane} << 40);
    step(4, 2, 7);
    lockstep.end(lane);
  }
  lockstep.close(issued);
  return recognised;
}

TEST(Lockstep, lanes_that_part_have_done_the_same_before) {
  for (const unsigned turns : {0U, 1U, 5000U}) {
    Issued issued;
    part_after_a_loop(turns, issued);
    ASSERT_EQ(issued.sites.size(), turns + 2);
    for (unsigned turn = 0; turn < turns; ++turn) {
      EXPECT_EQ(issued.sites[turn], 0U);
      EXPECT_EQ(issued.masks[turn], ~0U);
      for (unsigned lane : {0U, 1U, 31U}) {
        EXPECT_EQ(issued.addresses[turn][lane], 1000 * turn + 4 * lane);
      }
    }
    EXPECT_EQ(issued.sites[turns], 1U);
    EXPECT_EQ(issued.masks[turns], 0xAAAAAAAAU);
    EXPECT_EQ(issued.addresses[turns][31], std::uint64_t{31} << 40);
    EXPECT_EQ(issued.masks[turns + 1], ~0U);
    EXPECT_EQ(issued.passes.size(), turns + 2);
    EXPECT_EQ(issued.partings, std::vector<std::uint32_t>(turns > 0 ? 1 : 0, 2));
  }
}

TEST(Lockstep, pieces_that_are_recognised_by_their_calls_are_issued_as_all_are) {
  for (const unsigned turns : {0U, 1U, 100U, 5000U}) {
    Issued complete, recognised;
    part_after_a_loop(turns, complete);
    // Lane 0 is the first one everywhere, and lane 1 leaves the path behind the loop.
    const auto count = part_after_a_loop(turns, recognised, true);
    EXPECT_EQ(count > 0, turns > 0) << turns;
    if (turns <= 100) {
      EXPECT_EQ(count, turns);
    }
    EXPECT_EQ(recognised.sites, complete.sites) << turns;
    EXPECT_EQ(recognised.masks, complete.masks) << turns;
    EXPECT_EQ(recognised.passes, complete.passes) << turns;
    EXPECT_EQ(recognised.partings, complete.partings) << turns;
    EXPECT_TRUE(recognised.addresses == complete.addresses) << turns;
  }
}

TEST(Lockstep, a_call_is_recognised_by_its_place_its_caller_and_its_depth) {
  constexpr char call = 0, caller = 0, other = 0;
  const Location where = Location::current();
  Lockstep lockstep;
  lockstep.begin(3);
  EXPECT_EQ(lockstep.expected(0, &call, &caller, 16), nullptr);
  lockstep.pass(0, 2, 0, 2, {&call, &caller, 16, &where});
  lockstep.access(0, 0, 4, 4);
  const auto* expected = lockstep.expected(1, &call, &caller, 16);
  ASSERT_NE(expected, nullptr);
  EXPECT_EQ(expected->where, &where);
  EXPECT_EQ(lockstep.expected(1, &other, &caller, 16), nullptr);
  EXPECT_EQ(lockstep.expected(1, &call, &other, 16), nullptr);
  EXPECT_EQ(lockstep.expected(1, &call, &caller, 32), nullptr);
  lockstep.begin_expected(1);
  EXPECT_EQ(lockstep.expected(1, &call, &caller, 16), nullptr);  // an access is next
}

TEST(Lockstep, a_common_path_may_lead_anywhere) {
  Lockstep lockstep;
  Issued issued;
  lockstep.begin(~0U);
  for (unsigned lane = 0; lane < 32; ++lane) {
    lockstep.access(lane, 0, std::uint64_t{lane} << 25, 4);  // as far as it is kept
    lockstep.access(lane, 1, std::uint64_t{31 - lane} << 33, 4);
  }
  lockstep.close(issued);
  EXPECT_EQ(issued.masks, (std::vector<std::uint32_t>{~0U, ~0U}));
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(issued.addresses[0][lane], std::uint64_t{lane} << 25);
    EXPECT_EQ(issued.addresses[1][lane], std::uint64_t{31 - lane} << 33);
  }
}

}  // namespace
}  // namespace triptych::cuda::emulation
