// SPDX-License-Identifier: Apache-2.0
#include "systolic/dram/dram.h"

#include <gtest/gtest.h>

#include "systolic/dram/memory.h"

namespace triptych::mmu {
namespace {

DramConfig slow() {
  DramConfig config;
  config.preset = "custom";
  config.bytes_per_cycle = 16;  // a burst of 64 bytes takes four cycles
  config.latency = 10;
  config.row_bytes = 256;
  config.banks = 2;
  config.row_miss = 3;
  return config;
}

TEST(Dram, data_arrives_after_opening_the_row_the_transfer_and_the_latency) {
  Dram dram(slow());
  EXPECT_EQ(dram.request(100, Unit::Load, 0, 32, false), 100U + 3 + 4 + 10);
  EXPECT_EQ(dram.bursts(), 1U);
  EXPECT_EQ(dram.row_misses(), 1U);
}

TEST(Dram, the_burst_touched_last_is_free_and_answers_keep_their_order) {
  Dram dram(slow());
  const std::uint64_t first = dram.request(0, Unit::Load, 0, 32, false);
  EXPECT_EQ(dram.request(1, Unit::Load, 32, 32, false), first + 1);
  EXPECT_EQ(dram.request(90, Unit::Load, 32, 32, false), 91U);
  EXPECT_EQ(dram.bursts(), 1U);
  EXPECT_GT(dram.request(91, Unit::Weights, 32, 32, false), 92U) << "another unit's own burst";
}

TEST(Dram, banks_keep_a_row_open_each) {
  Dram dram(slow());
  dram.request(0, Unit::Load, 0, 64, false);    // row 0, bank 0
  dram.request(0, Unit::Load, 256, 64, false);  // row 1, bank 1
  dram.request(0, Unit::Load, 64, 64, false);   // row 0 again
  EXPECT_EQ(dram.row_misses(), 2U);
  dram.request(0, Unit::Load, 512, 64, false);  // row 2, bank 0
  EXPECT_EQ(dram.row_misses(), 3U);
}

TEST(Dram, a_bank_opens_a_row_while_another_transfers_but_not_while_it_does_itself) {
  Dram dram(slow());
  dram.request(0, Unit::Load, 0, 256, false);  // bank 0 opens in 3 cycles, its row takes 16
  EXPECT_EQ(dram.request(0, Unit::Load, 256, 64, false), 0U + 3 + 16 + 4 + 10);  // bank 1
  EXPECT_EQ(dram.request(0, Unit::Load, 768, 64, false), 0U + 3 + 16 + 4 + 3 + 4 + 10);
}

TEST(Dram, is_not_ready_with_more_than_32_cycles_of_work) {
  Dram dram(slow());
  for (int i = 0; i < 8; ++i) dram.request(0, Unit::Store, 64ULL * i, 64, true);
  // Eight transfers, and a row opened. The other bank's opens meanwhile: 35 cycles.
  EXPECT_FALSE(dram.ready(2));
  EXPECT_TRUE(dram.ready(3));
  EXPECT_EQ(dram.next_ready(0), 3U);
  EXPECT_EQ(dram.next_ready(7), 7U);
  dram.reset();
  EXPECT_TRUE(dram.ready(0));
}

TEST(Dram, an_unlimited_one_answers_in_the_next_cycle) {
  Dram dram(dram_preset("ideal", 700));
  EXPECT_EQ(dram.request(5, Unit::Load, 1 << 20, 4096, false), 6U);
}

TEST(Memory, untouched_gigabytes_are_zero) {
  Memory memory(std::uint64_t{4} << 30);
  EXPECT_EQ(memory.bytes().size(), std::uint64_t{4} << 30);
  EXPECT_EQ(memory.bytes().back(), std::byte{0});
}

}  // namespace
}  // namespace triptych::mmu
