// Stores of several threads to one place: the values decide whether they are a race.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/emulation/racing_stores.h"

#include <gtest/gtest.h>

namespace triptych::cuda::emulation {
namespace {

class RacingStoresTest : public testing::Test {
 protected:
  RacingAccess access(const int& place, const char* what) const {
    return {store, what, 2, {reinterpret_cast<std::uintptr_t>(&place), sizeof(place)}};
  }

  const Location store{"a.cu", 3, 1}, behind{"a.cu", 4, 1};
  RacingStores stores;
  int word = 7, other = 8;
};

TEST_F(RacingStoresTest, equal_values_are_counted_by_place) {
  for (unsigned thread = 1; thread < 4; ++thread) {
    stores.expect(thread, access(word, "first message"));
    word = 7;
    EXPECT_FALSE(stores.settle(thread, behind));
  }
  ASSERT_EQ(stores.equal().size(), 1U);
  EXPECT_EQ(stores.equal()[0].count, 3U);
  EXPECT_EQ(stores.equal()[0].first, "first message");
  EXPECT_TRUE(stores.empty());
}

TEST_F(RacingStoresTest, another_value_is_reported_with_both_lines) {
  stores.expect(5, access(word, "message"));
  word = 9;
  const auto unequal = stores.settle(5, behind);
  ASSERT_TRUE(unequal);
  EXPECT_EQ(unequal->where, store);
  EXPECT_EQ(unequal->other_line, 2U);
  EXPECT_EQ(unequal->what, "message");
  EXPECT_TRUE(stores.equal().empty());
}

TEST_F(RacingStoresTest, every_changed_place_is_reported) {
  stores.expect(5, access(word, "message"));
  stores.expect(5, access(other, "second message"));
  word = other = 9;
  EXPECT_EQ(stores.settle(5, behind).value().what, "message");
  EXPECT_EQ(stores.settle(5, behind).value().what, "second message");
  EXPECT_FALSE(stores.settle(5, behind));
}

TEST_F(RacingStoresTest, a_store_in_progress_is_not_compared) {
  stores.expect(5, access(word, "message"));
  stores.expect(5, access(other, "second piece"));
  EXPECT_FALSE(stores.settle(5, store));   // the next piece of the same store
  EXPECT_FALSE(stores.settle(6, behind));  // another thread
  EXPECT_FALSE(stores.empty());
  other = 9;
  EXPECT_TRUE(stores.settle(5, behind));
  EXPECT_TRUE(stores.empty());
}

}  // namespace
}  // namespace triptych::cuda::emulation
