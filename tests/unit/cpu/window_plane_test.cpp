// Which windows have their planes laid out.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/windows/window_plane.h"

#include <gtest/gtest.h>

namespace triptych::cpu {
namespace {

TEST(WindowPlane, pays_unless_taps_are_many_or_a_plane_grows_to_several_times_its_size) {
  const auto pays = [](const WindowAttributes& attributes, std::vector<std::int64_t> kernel) {
    return WindowPlane::pays(resolve_window("Op", attributes, {40, 40}, kernel));
  };
  EXPECT_TRUE(pays({}, {3, 3}));
  EXPECT_TRUE(pays({.strides = {2, 2}}, {3, 3}));
  EXPECT_FALSE(pays({.pads = {500, 500, 500, 500}}, {32, 32})) << "mostly padding";
  EXPECT_TRUE(pays({.pads = {20, 20, 20, 20}}, {32, 32}));
  EXPECT_FALSE(pays({.pads = {20, 20, 20, 20}}, {33, 32})) << "1056 taps";
  EXPECT_FALSE(pays({.pads = {600, 0, 600, 0}}, {1025, 1}));
  EXPECT_FALSE(pays({.pads = {0, 600, 0, 600}}, {1, 1025}));
  EXPECT_FALSE(pays({.pads = {150, 150, 150, 150}, .dilations = {150, 150}}, {2, 2}));
}

}  // namespace
}  // namespace triptych::cpu
