// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/state_store.h"

#include <gmock/gmock.h>

#include "tests/unit/runtime/reference_device.h"

namespace triptych {
namespace {

using testing::Each;
using testing::ElementsAre;
using namespace testing_device;

class StateStoreTest : public testing::Test {
 protected:
  ReferenceDevice device{"toy", {}};
  StateStore states{device};
};

TEST_F(StateStoreTest, the_first_use_decides_the_value) {
  auto* memory = states.require("w", filled({3}, 1));
  EXPECT_EQ(states.require("w", filled({3}, 2)), memory);
  EXPECT_THAT(states.read("w").as<float>(), Each(1));
}

TEST_F(StateStoreTest, what_is_written_is_read) {
  states.require("w", filled({3}, 1));
  states.write("w", filled({3}, 4));
  EXPECT_THAT(states.read("w").as<float>(), Each(4));
}

TEST_F(StateStoreTest, another_spec_is_refused) {
  states.require("w", filled({3}, 1));
  EXPECT_EQ(message_of<InvalidArgument>([&] {
              states.require("w", filled({1, 3}, 1));
            }),
            "the state \"w\" is f32[3], not f32[1, 3]");
  EXPECT_THROW(states.write("w", filled({4}, 1)), InvalidArgument);
}

TEST_F(StateStoreTest, an_unknown_name_is_refused) {
  EXPECT_FALSE(states.contains("w"));
  EXPECT_THROW(states.read("w"), InvalidArgument);
  EXPECT_THROW(states.write("w", filled({1}, 0)), InvalidArgument);
}

TEST_F(StateStoreTest, lists_names_in_order_and_counts_bytes) {
  states.require("b", filled({3}, 1));
  states.require("a", filled({}, 1));
  EXPECT_THAT(states.names(), ElementsAre("a", "b"));
  EXPECT_EQ(states.bytes(), 16u);
  EXPECT_TRUE(states.contains("a"));
}

}  // namespace
}  // namespace triptych
