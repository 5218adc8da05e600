// Which windows have their planes laid out, and which find their maxima by rows.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/windows/window_plane.h"

#include <gtest/gtest.h>

#include "backends/cpu/windows/max_rows.h"

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

TEST(MaxRows, are_for_windows_of_neighbours_that_meet_the_plane) {
  const auto takes = [](const WindowAttributes& attributes, std::vector<std::int64_t> kernel) {
    return takes_max_rows(resolve_window("Op", attributes, {40, 40}, kernel));
  };
  EXPECT_TRUE(takes({}, {3, 3}));
  EXPECT_TRUE(takes({.strides = {5, 2}}, {3, 3}));
  EXPECT_FALSE(takes({.strides = {1, 3}}, {3, 3}));
  EXPECT_FALSE(takes({.dilations = {1, 2}}, {3, 3}));
  EXPECT_FALSE(takes({}, {3, 1}));
  EXPECT_TRUE(takes({}, {16, 2}));
  EXPECT_FALSE(takes({}, {17, 2}));
  EXPECT_TRUE(takes({}, {3, 37}));
  EXPECT_FALSE(takes({}, {3, 38})) << "three windows";
  EXPECT_TRUE(takes({.pads = {2, 2, 0, 0}}, {3, 3}));
  EXPECT_FALSE(takes({.pads = {3, 0, 0, 0}}, {3, 3})) << "a window of padding";
}

}  // namespace
}  // namespace triptych::cpu
