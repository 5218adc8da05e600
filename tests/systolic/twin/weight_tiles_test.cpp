// Tiles on their way into the array: when the loader moves them, and when a matmul may take them.
// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/weight_tiles.h"

#include <gtest/gtest.h>

namespace triptych::mmu {
namespace {

MachineConfig small_machine(std::uint32_t weight_tiles) {
  MachineConfig machine;
  machine.rows = 4;
  machine.columns = 6;
  machine.weight_tiles = weight_tiles;
  machine.dataflows = Dataflows::Both;
  return machine;
}

TEST(WeightTiles, a_tile_for_the_shadow_weights_moves_as_soon_as_they_are_free) {
  const MachineConfig machine = small_machine(2);
  WeightTiles tiles(machine);
  for (const Cycle there : {10U, 11U}) {
    tiles.load({.rows = 4, .columns = 6});
    EXPECT_FALSE(tiles.move()) << "it is not there";
    tiles.arrive(there);
    EXPECT_EQ(tiles.move(), there == 10) << "the shadow weights hold one";
  }
  EXPECT_EQ(tiles.next(false).ready, 10U + 4);
  EXPECT_EQ(tiles.room(), 10U + 4 + 6);
  tiles.swap(20);
  EXPECT_TRUE(tiles.move());
  EXPECT_EQ(tiles.next(false).begins, 21U);
  EXPECT_EQ(tiles.idle(), 21U + 4);
}

TEST(WeightTiles, a_streamed_tile_waits_for_its_matmul) {
  const MachineConfig machine = small_machine(1);
  WeightTiles tiles(machine);
  tiles.load({.rows = 3, .columns = 6, .stream = true});
  EXPECT_FALSE(tiles.is_known(true));
  tiles.arrive(10);
  EXPECT_FALSE(tiles.move());
  EXPECT_TRUE(tiles.is_known(true));
  EXPECT_EQ(tiles.next(true).ready, 10U);
  EXPECT_EQ(tiles.room(), kUnknown) << "until the matmul starts";
  EXPECT_EQ(tiles.stream(12).rows, 3U);
  EXPECT_EQ(tiles.room(), 13U + 4 + 6);
  tiles.load({.rows = 4, .columns = 6, .stream = true});
  tiles.arrive(14);
  EXPECT_EQ(tiles.next(true).ready, 16U) << "the loader begins a cycle after the start";
  EXPECT_EQ(tiles.next(true).busy, 17U);
}

}  // namespace
}  // namespace triptych::mmu
