// The programs of copies and triads: legal, with the traffic that the machine counts.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/array_bandwidth.h"

#include <gtest/gtest.h>

#include "systolic/driver/driver.h"
#include "systolic/twin/twin.h"

namespace triptych::measure {
namespace {

constexpr int kChunks = 5;

std::uint64_t dram_bytes(const mmu::Counters& counters, mmu::Unit unit) {
  return counters.dram_bytes[static_cast<std::size_t>(unit)];
}

TEST(ArrayBandwidth, programs_are_legal_on_every_machine_that_is_shipped) {
  for (const auto& name : mmu::machine_names()) {
    const auto machine = mmu::find_machine(name);
    for (const bool triad : {false, true}) {
      EXPECT_NO_THROW(mmu::verify(on_chip_program(machine, triad, kChunks).program, machine))
          << name << triad;
      EXPECT_NO_THROW(mmu::verify(dram_program(machine, triad, kChunks).program, machine))
          << name << triad;
    }
  }
}

TEST(ArrayBandwidth, bytes_of_dram_are_those_that_the_machine_counts) {
  for (const auto* name : {"mmu4", "mmu16", "mmu16-int8"}) {
    const auto machine = mmu::find_machine(name);
    for (const bool triad : {false, true}) {
      const auto run = dram_program(machine, triad, kChunks);
      const auto counters = mmu::estimate(run.program, machine).counters;
      EXPECT_EQ(run.dram_bytes,
                dram_bytes(counters, mmu::Unit::Load) + dram_bytes(counters, mmu::Unit::Store))
          << name << triad;
    }
  }
}

TEST(ArrayBandwidth, bytes_on_the_chip_are_those_that_the_machine_counts) {
  const auto machine = mmu::find_machine("mmu8");
  for (const bool triad : {false, true}) {
    const auto few = on_chip_program(machine, triad, 4), many = on_chip_program(machine, triad, 9);
    const auto before = mmu::estimate(few.program, machine).counters,
               after = mmu::estimate(many.program, machine).counters;
    const auto grown = [&](std::uint64_t mmu::Counters::*counter) {
      return after.*counter - before.*counter;
    };
    EXPECT_EQ(many.chip_bytes - few.chip_bytes, 2 * grown(&mmu::Counters::buffer_reads) +
                                                    4 * (grown(&mmu::Counters::accumulator_reads) +
                                                         grown(&mmu::Counters::accumulator_writes)))
        << triad;
  }
}

TEST(ArrayBandwidth, a_faster_dram_shows_below_and_not_above) {
  auto slow = mmu::find_machine("mmu16");
  auto fast = slow;
  fast.dram = mmu::dram_preset("hbm", fast.clock_mhz);
  const auto below = array_bandwidths(slow), above = array_bandwidths(fast);
  EXPECT_DOUBLE_EQ(below[0].copy->value, above[0].copy->value);
  EXPECT_GT(above[1].copy->value, 1.2 * below[1].copy->value);
  EXPECT_EQ(above[1].copy->kind, TimeKind::Simulated);
}

}  // namespace
}  // namespace triptych::measure
