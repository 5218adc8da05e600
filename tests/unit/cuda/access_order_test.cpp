// The order of accesses of a block's threads by barriers, warp barriers, fences and relaxed
// accesses.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/access_order.h"

#include <gtest/gtest.h>

namespace triptych::cuda::emulation {
namespace {

constexpr Manner kRead = {Access::Load, Strength::Plain, false};
constexpr Manner kWrite = {Access::Store, Strength::Plain, true};
constexpr Manner kAtomic = {Access::Atomic, Strength::Atomic, true};
constexpr Manner kVolatileRead = {Access::Load, Strength::Volatile, false};
constexpr Manner kVolatileWrite = {Access::Store, Strength::Volatile, true};

class AccessOrderTest : public testing::Test {
 protected:
  AccessOrderTest() { order.begin_block(96); }

  /// True when the access races with an earlier one.
  bool races(unsigned thread, const Manner& manner) {
    return order.access(cell, thread, order.now(thread, 7, manner)) != nullptr;
  }

  AccessOrder order;
  AccessOrder::Cell cell;
};

TEST_F(AccessOrderTest, barriers_order_all_threads) {
  EXPECT_FALSE(races(0, kWrite));
  EXPECT_TRUE(races(40, kRead));
  order.barrier_passed();
  EXPECT_FALSE(races(40, kRead));
}

TEST_F(AccessOrderTest, warp_barriers_order_the_lanes_of_their_mask_and_pass_it_on) {
  EXPECT_FALSE(races(0, kWrite));
  order.warp_synchronised(0, 0b11);
  EXPECT_FALSE(races(1, kRead));
  EXPECT_TRUE(races(2, kRead));
  order.warp_synchronised(0, 0b110);
  EXPECT_FALSE(races(2, kRead));
}

TEST_F(AccessOrderTest, a_write_races_with_each_of_several_readers) {
  for (const unsigned reader : {0U, 1U, 40U, 70U}) EXPECT_FALSE(races(reader, kRead));
  order.warp_synchronised(0, 0b111);
  EXPECT_TRUE(races(2, kWrite));  // readers of other warps
  order.barrier_passed();
  EXPECT_FALSE(races(2, kWrite));
}

TEST_F(AccessOrderTest, of_readers_only_those_that_are_ordered_are_forgotten) {
  EXPECT_FALSE(races(0, kRead));
  order.warp_synchronised(0, 0b11);
  EXPECT_FALSE(races(1, kRead));
  EXPECT_FALSE(races(5, kRead));
  order.warp_synchronised(0, 0b1010);
  EXPECT_TRUE(races(3, kWrite));  // lane 5
}

TEST_F(AccessOrderTest, an_atomic_operation_keeps_the_plain_write_before_it) {
  EXPECT_FALSE(races(0, kWrite));
  EXPECT_FALSE(races(0, kAtomic));
  EXPECT_TRUE(races(1, kAtomic));
}

TEST_F(AccessOrderTest, a_plain_read_races_with_each_of_several_atomic_operations) {
  for (unsigned thread = 0; thread < 4; ++thread) EXPECT_FALSE(races(thread, kAtomic));
  EXPECT_TRUE(races(3, kRead));
}

TEST_F(AccessOrderTest, volatile_accesses_race_within_a_warp_only) {
  EXPECT_FALSE(races(0, kVolatileWrite));
  EXPECT_FALSE(races(40, kVolatileRead));
  EXPECT_TRUE(races(1, kVolatileRead));
  EXPECT_FALSE(races(0, kAtomic));
}

TEST_F(AccessOrderTest, fences_around_relaxed_accesses_order_two_threads) {
  constexpr std::uintptr_t kFlag = 64;
  EXPECT_FALSE(races(0, kWrite));
  order.fence(0);
  order.relaxed_access(0, kFlag, true, true);
  order.relaxed_access(40, kFlag, true, false);
  EXPECT_TRUE(races(40, kRead));  // without a fence of its own
  order.fence(40);
  EXPECT_FALSE(races(40, kRead));
  EXPECT_TRUE(races(41, kRead));
}

TEST_F(AccessOrderTest, what_comes_after_the_fence_is_not_released) {
  constexpr std::uintptr_t kFlag = 64;
  order.fence(0);
  EXPECT_FALSE(races(0, kWrite));
  order.relaxed_access(0, kFlag, true, true);
  order.relaxed_access(40, kFlag, true, true);
  order.fence(40);
  EXPECT_TRUE(races(40, kRead));
}

TEST_F(AccessOrderTest, a_relaxed_store_ends_what_others_released_at_its_place) {
  constexpr std::uintptr_t kFlag = 64;
  EXPECT_FALSE(races(0, kWrite));
  order.fence(0);
  order.relaxed_access(0, kFlag, false, true);
  order.relaxed_access(70, kFlag, false, true);
  order.relaxed_access(40, kFlag, true, false);
  order.fence(40);
  EXPECT_TRUE(races(40, kRead));
}

TEST_F(AccessOrderTest, a_copy_of_a_cell_has_a_history_of_its_own) {
  for (const unsigned reader : {0U, 40U, 70U}) EXPECT_FALSE(races(reader, kRead));
  auto copy = order.copy(cell);
  EXPECT_NE(order.access(copy, 0, order.now(0, 7, kWrite)), nullptr);
  // The raced write is noted, too: the kernel may continue.
  EXPECT_NE(order.access(copy, 1, order.now(1, 7, kRead)), nullptr);
  EXPECT_FALSE(races(1, kRead));
  EXPECT_TRUE(races(0, kWrite));
}

}  // namespace
}  // namespace triptych::cuda::emulation
