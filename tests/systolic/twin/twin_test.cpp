// SPDX-License-Identifier: Apache-2.0
#include "systolic/twin/twin.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "systolic/twin/numerics.h"
#include "tests/systolic/twin/product.h"

namespace triptych::mmu {
namespace {

template <class T>
void put(Machine& machine, std::uint64_t address, T value) {
  std::memcpy(machine.dram().data() + address, &value, sizeof value);
}
template <class T>
T get(Machine& machine, std::uint64_t address) {
  T value;
  std::memcpy(&value, machine.dram().data() + address, sizeof value);
  return value;
}

std::uint16_t random_bf16(std::mt19937& random) {
  return to_bf16(std::uniform_real_distribution<float>(-2, 2)(random));
}

/// Puts random operands into DRAM, runs, and compares every output with its chain.
void check_bf16_product(const std::string& name, Product product) {
  const auto machine = open_twin(find_machine(name));
  std::mt19937 random(7);
  const std::uint32_t pitch = product.x_pitch(machine->config());
  for (std::uint32_t i = 0; i < product.m; ++i)
    for (std::uint32_t j = 0; j < product.k; ++j)
      put(*machine, product.x + 2 * (i * pitch + j), random_bf16(random));
  for (std::uint32_t i = 0; i < product.k * product.n; ++i)
    put(*machine, product.w + 2 * i, random_bf16(random));
  machine->run(product.program(machine->config()));
  for (std::uint32_t i = 0; i < product.m; ++i)
    for (std::uint32_t j = 0; j < product.n; ++j) {
      float chain = 0;
      for (std::uint32_t p = 0; p < product.k; ++p)
        chain = std::fma(
            from_bf16(get<std::uint16_t>(*machine, product.x + 2 * (i * pitch + p))),
            from_bf16(get<std::uint16_t>(*machine, product.w + 2 * (p * product.n + j))), chain);
      ASSERT_EQ(get<float>(*machine, product.y + 4 * (i * product.n + j)), chain)
          << name << " " << i << ", " << j;
    }
}

TEST(Twin, chains_products_over_tiles_in_ascending_order) {
  check_bf16_product("mmu4", {10, 7, 6});
  check_bf16_product("mmu16", {33, 50, 40});
  check_bf16_product("mmu32", {9, 64, 17});
  check_bf16_product("mmu2", {1, 1, 1});
}

TEST(Twin, multiplies_int8_exactly) {
  const auto machine = open_twin(find_machine("mmu16-int8"));
  const Product product{21, 33, 19};
  const std::uint32_t pitch = product.x_pitch(machine->config());
  std::mt19937 random(3);
  for (std::uint32_t i = 0; i < product.m; ++i)
    for (std::uint32_t j = 0; j < product.k; ++j)
      put(*machine, product.x + i * pitch + j, static_cast<std::int8_t>(random()));
  for (std::uint32_t i = 0; i < product.k * product.n; ++i)
    put(*machine, product.w + i, static_cast<std::int8_t>(random()));
  machine->run(product.program(machine->config()));
  for (std::uint32_t i = 0; i < product.m; ++i)
    for (std::uint32_t j = 0; j < product.n; ++j) {
      std::int32_t sum = 0;
      for (std::uint32_t p = 0; p < product.k; ++p)
        sum += get<std::int8_t>(*machine, product.x + i * pitch + p) *
               get<std::int8_t>(*machine, product.w + p * product.n + j);
      ASSERT_EQ(get<std::int32_t>(*machine, product.y + 4 * (i * product.n + j)), sum);
    }
}

TEST(Twin, leaves_the_rounding_mode_of_its_caller_alone) {
  volatile float tiny = std::numeric_limits<float>::min();
  check_bf16_product("mmu2", {1, 2, 2});
  EXPECT_GT(tiny / 2, 0.0F);
}

TEST(Twin, times_a_single_tile_as_the_manual_says) {
  MachineConfig config = find_machine("mmu4");
  config.dram = dram_preset("ideal", config.clock_mhz);
  const Product product{5, 4, 4};
  const RunReport report = estimate(product.program(config), config, {.record_times = true});
  // Load is accepted in cycle 0, popped in 1. Its rows are requested in 2 to 6. The weights are
  // accepted in 4 and popped in 5. Their rows are requested in 6 to 9.
  EXPECT_EQ(report.times[0], (InstructionTimes{1, 8}));
  EXPECT_EQ(report.times[4], (InstructionTimes{5, 11}));
  // The tile is there at 11, in the shadow weights at 15.
  const std::uint64_t start = 15;
  EXPECT_EQ(report.times[5], (InstructionTimes{start, start + 5 + 4 + 4 + 2}));
  EXPECT_EQ(report.counters.issue_cycles, 5U);
  EXPECT_EQ(report.counters.macs, 5U * 4 * 4);
}

TEST(Twin, splits_all_cycles_into_issue_and_stalls) {
  const MachineConfig config = find_machine("mmu8");
  const Counters counters = estimate(Product{40, 100, 30}.program(config), config).counters;
  std::uint64_t sum = counters.issue_cycles;
  for (const std::uint64_t stall : counters.stall_cycles) sum += stall;
  EXPECT_EQ(sum, counters.cycles);
}

TEST(Twin, computes_without_timing_again_what_was_counted) {
  const auto machine = open_twin(find_machine("mmu2"));
  const Program program = Product{}.program(machine->config());
  const Counters other = {.cycles = 12345};
  put(*machine, Product{}.x, to_bf16(3));
  put(*machine, Product{}.w, to_bf16(5));
  EXPECT_EQ(machine->run(program, {.counted = &other}).counters, other);
  EXPECT_EQ(get<float>(*machine, Product{}.y), 15);
  const Counters own = machine->run(program, {.record_times = true, .counted = &other}).counters;
  EXPECT_EQ(own, estimate(program, machine->config()).counters);
}

TEST(Twin, refuses_a_program_without_halt) {
  Program program = Product{}.program(find_machine("mmu2"));
  program.pop_back();
  EXPECT_THROW(open_twin(find_machine("mmu2"))->run(program), std::invalid_argument);
}

}  // namespace
}  // namespace triptych::mmu
