// Programs of the vector unit: their numbers, and their times by hand.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <string>

#include "systolic/driver/driver.h"
#include "systolic/driver/order.h"
#include "systolic/twin/numerics.h"
#include "systolic/twin/twin.h"

namespace triptych::mmu {
namespace {

constexpr std::size_t kLanes = 4;
using Row = std::array<float, kLanes>;

class VectorPrograms : public testing::Test {
 protected:
  VectorPrograms() {
    config_.dram = dram_preset("ideal", config_.clock_mhz);
    machine_ = open_twin(config_);
  }
  void put(std::uint32_t address, const Row& row) {
    std::memcpy(machine_->dram().data() + address, row.data(), sizeof row);
  }
  Row get(std::uint32_t address) const {
    Row row;
    std::memcpy(row.data(), machine_->dram().data() + address, sizeof row);
    return row;
  }
  RunReport run(const std::string& text) {
    const Program program = assemble_program(text + "\nhalt");
    verify(program, config_);
    return machine_->run(program, {.record_times = true});
  }

  MachineConfig config_ = find_machine("mmu4-vector");
  std::unique_ptr<Machine> machine_;
};

TEST_F(VectorPrograms, a_step_of_sgd_is_one_operation) {
  put(0, {1, 2, 3, 4});       // weights
  put(16, {10, 20, 30, -1});  // gradients
  const RunReport report =
      run("vector_load address=0 pitch=16 count=2 columns=4\n"
          "vector_op operation=fma a=1 b=0 c=0 constant=1 scalar=0xbdcccccd count=1\n"  // -0.1
          "vector_store address=64 count=1 columns=4");
  const Row expected{std::fma(10.0F, -0.1F, 1.0F), std::fma(20.0F, -0.1F, 2.0F),
                     std::fma(30.0F, -0.1F, 3.0F), std::fma(-1.0F, -0.1F, 4.0F)};
  EXPECT_EQ(get(64), expected);
  // The load pops in cycle 1, asks in 2 and 3, and its last row arrives in 4. The operation has an
  // operand c. The store presents its row two cycles after its pop.
  const InstructionTimes load{1, 5}, operation{5, 11}, store{11, 14};
  EXPECT_EQ(report.times, (std::vector<InstructionTimes>{load, operation, store, {14, 14}}));
}

TEST_F(VectorPrograms, counts_cycles_rows_and_operations_by_kind) {
  const Counters counters =
      run("vector_load address=0 pitch=16 count=2 columns=3\n"
          "vector_op operation=fma a=1 b=0 c=0 constant=1 count=1\n"
          "vector_op operation=subtract destination=4 b=1 b_step=1 step=1 count=2\n"
          "vector_op operation=multiply accumulators=1 b=0 count=1\n"
          "vector_op operation=select a=0 b=1 c=2 count=1\n"
          "vector_op operation=rotate scalar=1 count=1\n"
          "vector_store address=64 count=1 columns=2")
          .counters;
  VectorCounts expected;
  expected.cycles = 4 + 6 + 6 + 5 + 6 + 5 + 3;
  expected.reads = kLanes * (2 + 2 * 2 + 1 + 3 + 1 + 1);
  expected.writes = kLanes * (2 + 1 + 2 + 1 + 1 + 1);
  expected.fmas = kLanes;
  expected.adds = 2 * kLanes;
  expected.multiplies = kLanes;
  expected.others = kLanes;
  EXPECT_EQ(counters.vector, expected);
  EXPECT_EQ(counters.accumulator_reads, kLanes);
}

TEST_F(VectorPrograms, counts_of_the_unit_are_always_listed) {
  const auto count = [](const Counters& counters) {
    return std::ranges::count_if(named_counts(counters), [](const NamedCount& named) {
      return named.name.starts_with("vector_");
    });
  };
  EXPECT_EQ(count(run("").counters), 7);
  EXPECT_EQ(run("").counters.vector, VectorCounts{});
  const Counters counters = run("vector_op operation=fill constant=1 count=1").counters;
  EXPECT_EQ(count(counters), 7);
  std::map<std::string, std::uint64_t> values;
  for (const NamedCount& named : named_counts(counters)) values[named.name] = named.value;
  EXPECT_EQ(counters_from([&](const std::string& name) { return values[name]; }), counters);
}

TEST_F(VectorPrograms, rows_of_bf16_have_zeros_beyond_their_columns) {
  put(0, {1, -2, 3, 4});
  run("vector_load count=1 columns=4\n"
      "vector_store narrow=1 address=32 count=1 columns=4\n"
      "vector_load narrow=1 address=32 row=1 count=1 columns=3\n"
      "vector_store row=1 address=64 count=1 columns=4");
  EXPECT_EQ(get(64), (Row{1, -2, 3, 0}));
}

TEST_F(VectorPrograms, halving_adds_the_lanes_and_the_rows) {
  for (std::uint32_t i = 0; i < 8; ++i) {
    const auto x = static_cast<float>(i);
    put(16 * i, {x, 10 * x, 100 * x, 1000 * x});
  }
  run("vector_load pitch=16 count=8 columns=4\n"
      "vector_op operation=add step=1 a_step=1 b=4 b_step=1 count=4\n"
      "vector_op operation=add step=1 a_step=1 b=2 b_step=1 count=2\n"
      "vector_op operation=add b=1 count=1\n"
      "vector_op operation=rotate destination=1 scalar=2 count=1\n"
      "vector_op operation=add b=1 count=1\n"
      "vector_op operation=rotate destination=1 scalar=1 count=1\n"
      "vector_op operation=add b=1 count=1\n"
      "vector_store address=256 count=1 columns=4");
  EXPECT_EQ(get(256), (Row{31108, 31108, 31108, 31108}));
}

TEST_F(VectorPrograms, sums_of_the_array_are_operands) {
  const std::array<std::uint16_t, 8> ones{0x3F80, 0x4000, 0x4040, 0x4080,   // 1 2 3 4, row of x
                                          0x3F80, 0x4000, 0x4040, 0x4080};  // and of the weights
  std::memcpy(machine_->dram().data(), ones.data(), sizeof ones);
  run("set_stream in_height=1 in_width=1 out_height=1 out_width=1\n"
      "set_taps channels=1 kernel_width=1\n"
      "load units=1 lines=1 signal=compute\n"
      "weight_load address=8 rows=1 columns=4\n"
      "matmul count=1 rows_left=1 columns_left=1 accumulator=7 wait=load signal=store\n"
      "vector_op operation=multiply accumulators=1 a=7 constant=1 scalar=0x40000000 count=1 "
      "wait=compute\n"
      "vector_store address=64 count=1 columns=4");
  EXPECT_EQ(get(64), (Row{2, 4, 6, 8}));
}

std::string complaint(const std::string& text) {
  const MachineConfig machine = find_machine("mmu4-vector");
  const DramArray input{.name = "x", .type = ElementType::Uint8, .shape = {64}};
  try {
    check_order(assemble_program(text), machine, {&input, 1});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(VectorOrder, names_rows_that_nothing_has_written) {
  const std::string load = "vector_load count=2 columns=4 pitch=16\n";
  EXPECT_EQ(complaint(load + "vector_op operation=add b=1 count=1\nhalt"), "accepted");
  EXPECT_THAT(complaint(load + "vector_op operation=add b=2 count=1\nhalt"),
              testing::EndsWith(
                  "reads row 2 of the vector memory, which no vector instruction has written"));
  EXPECT_THAT(complaint("vector_op operation=move accumulators=1 count=1\nhalt"),
              testing::HasSubstr("accumulator row 0, of which matmuls have written 0"));
}

TEST(VectorOrder, a_load_waits_for_the_vector_store_that_writes_its_bytes) {
  const std::string program =
      "vector_load count=1 columns=4\n"
      "vector_store address=64 count=1 columns=4{}\n"
      "load address=64 units=1 lines=1 log2_group=2{}\nhalt";
  EXPECT_THAT(complaint(fmt::format(fmt::runtime(program), "", "")),
              testing::HasSubstr("no token makes it wait for that"));
  EXPECT_EQ(complaint(fmt::format(fmt::runtime(program), " signal=load", " wait=store")),
            "accepted");
}

}  // namespace
}  // namespace triptych::mmu
