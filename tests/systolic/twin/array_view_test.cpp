// The registers of the PEs as ArrayView computes them, against the manual's diagram and against the
// memories that the twin leaves.
// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/array_view.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "systolic/twin/twin.h"
#include "tests/systolic/twin/product.h"

namespace triptych::mmu {
namespace {

constexpr std::size_t kTouched = 1 << 18;

struct Viewed {
  MachineConfig machine;
  RunReport report;
  Program program;
  std::unique_ptr<Machine> twin;
  std::vector<std::byte> before;

  ArrayView view() const { return {program, machine, report, before}; }
};

Viewed viewed(const MachineConfig& machine, const Product& product) {
  Viewed all{machine, {}, product.program(machine), open_twin(machine), {}};
  std::mt19937 random(1);
  const auto dram = all.twin->dram();
  for (std::size_t at = 0; at < kTouched; at += 2) {
    // Numbers between -4 and 4; in int8 any.
    const auto bits = static_cast<std::uint16_t>(0x3F00 + random() % 0x180 + (random() % 2 << 15));
    std::memcpy(dram.data() + at, &bits, sizeof bits);
  }
  all.before.assign(dram.begin(), dram.begin() + kTouched);
  all.report = all.twin->run(all.program, {.record_times = true});
  return all;
}

MachineConfig small(PeKind pe) {
  MachineConfig machine = find_machine("mmu4");
  machine.pe = pe;
  machine.dram = dram_preset("ideal", machine.clock_mhz);
  return machine;
}

TEST(ArrayView, pes_work_in_the_cycles_of_the_manuals_diagram) {
  const Viewed all = viewed(small(PeKind::Bf16), {4, 4, 4});
  const ArrayView view = all.view();
  const auto works = [&](std::uint32_t row, std::uint32_t column) {
    std::vector<std::uint64_t> cycles;
    for (std::uint64_t t = 0; t <= all.report.counters.cycles; ++t)
      if (view.at(t, row, column).activation) cycles.push_back(t);
    return cycles;
  };
  using Cycles = std::vector<std::uint64_t>;
  EXPECT_EQ(works(0, 0), (Cycles{18, 19, 20, 21}));
  EXPECT_EQ(works(0, 3), (Cycles{21, 22, 23, 24}));
  EXPECT_EQ(works(3, 0), (Cycles{21, 22, 23, 24}));
  EXPECT_EQ(works(3, 3), (Cycles{24, 25, 26, 27}));
}

/// In the cycle in which column c writes position m, the last row's sum is that accumulator.
TEST(ArrayView, sums_arrive_as_the_accumulators_are_left) {
  for (const PeKind pe : {PeKind::Bf16, PeKind::Int8}) {
    const Viewed all = viewed(small(pe), {7, 10, 3});
    const ArrayView view = all.view();
    const auto accumulators = all.twin->read_accumulators();
    std::size_t last = 0;
    for (std::size_t i = 0; i < all.program.size(); ++i)
      if (all.program[i].opcode() == Opcode::Matmul) last = i;
    const std::uint64_t start = all.report.times[last].start;
    for (std::uint32_t m = 0; m < 7; ++m)
      for (std::uint32_t c = 0; c < 3; ++c)
        EXPECT_EQ(view.at(start + m + 4 + 3 + c, 3, c).sum, accumulators[m * 4 + c])
            << to_string(pe) << ", position " << m << ", column " << c;
    EXPECT_EQ(view.matmul_at(start + 3, 0, 0), last);
  }
}

TEST(ArrayView, a_chain_goes_on_from_what_the_accumulators_feed_back) {
  const Viewed all = viewed(small(PeKind::Bf16), {6, 8, 4});
  const ArrayView view = all.view();
  std::vector<std::uint64_t> starts;
  for (std::size_t i = 0; i < all.program.size(); ++i)
    if (all.program[i].opcode() == Opcode::Matmul) starts.push_back(all.report.times[i].start);
  ASSERT_EQ(starts.size(), 2U);
  for (std::uint32_t m = 0; m < 6; ++m)
    for (std::uint32_t c = 0; c < 4; ++c) {
      EXPECT_EQ(view.top(starts[0] + m + 3 + c, c), 0U);
      EXPECT_EQ(view.top(starts[1] + m + 3 + c, c), view.at(starts[0] + m + 4 + 3 + c, 3, c).sum);
    }
}

TEST(ArrayView, weights_move_in_behind_the_computation) {
  for (const WeightScheme scheme :
       {WeightScheme::PassThrough, WeightScheme::PerColumn, WeightScheme::Drained}) {
    MachineConfig machine = small(PeKind::Bf16);
    machine.weight_scheme = scheme;
    const Viewed all = viewed(machine, {16, 12, 4});
    const ArrayView view = all.view();
    std::size_t both = 0;  // cycles in which a PE multiplies while a weight passes it
    for (std::uint64_t t = 0; t <= all.report.counters.cycles; ++t) {
      const PeState pe = view.at(t, 0, 0);
      both += pe.activation && pe.moving ? 1 : 0;
    }
    EXPECT_GT(both, 0U) << to_string(scheme);
    // Third tile, in the second matmul's time at the earliest.
    std::size_t matmul = 0;
    for (std::size_t i = 0; i < all.program.size() && matmul == 0; ++i)
      if (all.program[i].opcode() == Opcode::Matmul) matmul = i;
    const std::uint64_t swap = all.report.times[matmul].start;
    const std::uint64_t waits = scheme == WeightScheme::PassThrough ? 1
                                : scheme == WeightScheme::PerColumn ? 4
                                                                    : 8;
    std::uint64_t first = swap;
    while (!view.at(first, 0, 0).moving) ++first;
    EXPECT_EQ(first, swap + waits + 2) << to_string(scheme);
  }
}

}  // namespace
}  // namespace triptych::mmu
