// Functions of the vector unit have the bits of the exact mathematics, in the twin.
// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/vector_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "core/base/exact_math.h"
#include "systolic/driver/driver.h"

namespace triptych::systolic {
namespace {

constexpr std::uint32_t kRows = 256, kColumns = 64, kValues = kRows * kColumns;

using Function = void (VectorProgram::*)(VectorBlock, VectorBlock);

mmu::MachineConfig vector_machine() {
  mmu::MachineConfig machine = mmu::find_machine("mmu4-vector");
  machine.columns = kColumns;
  machine.vector_rows = 4096;
  return machine;
}

/// y = function(x) for kValues bit patterns.
std::vector<std::uint32_t> run(Function function, const std::vector<std::uint32_t>& x) {
  const mmu::MachineConfig config = vector_machine();
  VectorProgram program(config, kRows);
  const VectorBlock in = program.allocate(), out = program.allocate();
  mmu::VectorLoad load;
  load.pitch = 4 * kColumns;
  load.row = in.row;
  load.count = kRows;
  load.columns = kColumns;
  program.add(mmu::encode(load));
  (program.*function)(in, out);
  mmu::VectorStore store;
  store.address = 4 * kValues;
  store.pitch = 4 * kColumns;
  store.row = out.row;
  store.count = kRows;
  store.columns = kColumns;
  program.add(mmu::encode(store));
  const mmu::Program finished = program.finish();
  mmu::verify(finished, config);
  const auto machine = mmu::open_machine(config, mmu::Simulation::Twin);
  std::memcpy(machine->dram().data(), x.data(), 4 * kValues);
  machine->run(finished);
  std::vector<std::uint32_t> y(kValues);
  std::memcpy(y.data(), machine->dram().data() + store.address, 4 * kValues);
  return y;
}

/// Edges of every function, numbers of all exponents, and numbers of everyday size.
std::vector<std::uint32_t> arguments(unsigned seed) {
  std::vector<std::uint32_t> x;
  for (const std::uint32_t sign : {0U, 0x80000000U})
    for (const std::uint32_t bits :
         {0x00000000U, 0x00000001U, 0x007FFFFFU, 0x00800000U, 0x00800001U, 0x3F2AAAAAU,
          0x3F2AAAABU, 0x3F7FFFFFU, 0x3F800000U, 0x3F800001U, 0x3FFFFFFFU, 0x40000000U,
          0x42AEAC4FU, 0x42AEAC50U, 0x42AEAC51U, 0x42B17217U, 0x42B17218U, 0x42B17219U,
          0x7E7FFFFFU, 0x7E800000U, 0x7E800001U, 0x7EFFFFFFU, 0x7F000000U, 0x7F7FFFFFU,
          0x7F800000U, 0x7F800001U, 0x7FC00000U, 0x7FFFFFFFU})
      x.push_back(sign | bits);
  std::mt19937 random(seed);
  while (x.size() < kValues / 2) x.push_back(static_cast<std::uint32_t>(random()));
  std::uniform_real_distribution<float> everyday(-100, 100);
  while (x.size() < kValues) x.push_back(std::bit_cast<std::uint32_t>(everyday(random)));
  return x;
}

void expect_bits(Function function, const std::function<float(float)>& expected) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const auto x = arguments(seed);
    const auto y = run(function, x);
    for (std::uint32_t i = 0; i < kValues; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(expected(std::bit_cast<float>(x[i])));
      ASSERT_EQ(y[i], bits) << std::hex << "x = " << x[i];
    }
  }
}

TEST(VectorProgram, relu_has_the_bits_of_the_exact_mathematics) {
  expect_bits(&VectorProgram::relu, [](float x) { return exact::relu(x); });
}
TEST(VectorProgram, exp_has_the_bits_of_the_exact_mathematics) {
  expect_bits(&VectorProgram::exp, [](float x) { return exact::exp(x); });
}
TEST(VectorProgram, log_has_the_bits_of_the_exact_mathematics) {
  expect_bits(&VectorProgram::log, [](float x) { return exact::log(x); });
}
TEST(VectorProgram, a_reciprocal_is_rounded_correctly) {
  expect_bits(&VectorProgram::reciprocal,
              [](float x) { return exact::flushed(exact::canonical(1.0F / exact::flushed(x))); });
}
TEST(VectorProgram, a_square_root_is_rounded_correctly) {
  expect_bits(&VectorProgram::square_root,
              [](float x) { return exact::canonical(std::sqrt(exact::flushed(x))); });
}

/// Operations and cycles per row, without the rows of constants.
std::pair<int, int> cost_of(Function function) {
  const mmu::MachineConfig config = vector_machine();
  VectorProgram program(config, kRows);
  const VectorBlock x = program.allocate(), y = program.allocate();
  (program.*function)(x, y);
  std::pair<int, int> cost;
  for (const mmu::Instruction& instruction : program.finish()) {
    if (instruction.opcode() != mmu::Opcode::VectorOp) continue;
    const auto op = mmu::decode<mmu::VectorOp>(instruction);
    if (op.count == 1) continue;
    cost.first += 1;
    cost.second += (mmu::vector_operation(op.operation).reads & mmu::kReadsC) != 0 ? 2 : 1;
  }
  return cost;
}

TEST(VectorProgram, functions_cost_what_the_manual_states) {
  EXPECT_THAT(cost_of(&VectorProgram::relu), testing::Pair(2, 3));
  EXPECT_THAT(cost_of(&VectorProgram::exp), testing::Pair(18, 30));
  EXPECT_THAT(cost_of(&VectorProgram::log), testing::Pair(23, 36));
  EXPECT_THAT(cost_of(&VectorProgram::reciprocal), testing::Pair(26, 38));
  EXPECT_THAT(cost_of(&VectorProgram::square_root), testing::Pair(33, 45));
}

TEST(VectorProgram, a_full_memory_is_an_error) {
  const mmu::MachineConfig config = vector_machine();
  VectorProgram program(config, 1024);
  for (int block = 0; block < 3; ++block) program.allocate();
  const VectorBlock last = program.allocate();
  EXPECT_THROW(program.allocate(), std::invalid_argument);
  EXPECT_THROW(program.relu({0}, {1024}), std::invalid_argument) << "no row for a constant is left";
  program.release(last);
  EXPECT_EQ(program.allocate().row, last.row);
}

}  // namespace
}  // namespace triptych::systolic
