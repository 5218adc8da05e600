// The dispatcher's check of an instruction against the one that programs pass before they start.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "Vmmu_check.h"
#include "Vmmu_check_12x20.h"
#include "Vmmu_check_both.h"
#include "Vmmu_check_vector.h"
#include "systolic/isa/check.h"

namespace triptych::mmu {
namespace {

/// Random words with fields that are often 0, small, or as large as a machine of 4 x 4 allows.
Instruction random_instruction(std::mt19937& random) {
  Instruction instruction;
  instruction.words[0] = random() % 15 | (random() & 0xFFFF0000);
  for (std::size_t w = 1; w < 8; ++w) {
    const auto half = [&] {
      const std::uint32_t choices[] = {0, 1, 2, 3, 4, 5, 127, 128, 129, 0xFFFF};
      return random() % 4 == 0 ? static_cast<std::uint32_t>(random() & 0xFFFF)
                               : choices[random() % 10];
    };
    instruction.words[w] = half() | half() << 16;
  }
  return instruction;
}

template <class Model>
void expect_equal_refusals(MachineConfig machine) {
  Model check;
  machine.accumulator_rows = 128;
  std::mt19937 random(7);
  int legal = 0;
  constexpr int kInstructions = 200'000;
  for (int i = 0; i < kInstructions; ++i) {
    const Instruction instruction = random_instruction(random);
    std::memcpy(&check.word_i, instruction.words.data(), 32);
    check.eval();
    const bool expected = !illegal(instruction, machine).empty();
    ASSERT_EQ(check.illegal_o != 0, expected)
        << instruction.words[0] << ": " << illegal(instruction, machine);
    legal += expected ? 0 : 1;
  }
  EXPECT_GT(legal, kInstructions / 20);
}

TEST(Check, refuses_what_verify_calls_illegal) {
  expect_equal_refusals<Vmmu_check>({.rows = 4, .columns = 4});
}
TEST(Check, knows_the_groups_of_rows_that_are_no_power_of_two) {
  expect_equal_refusals<Vmmu_check_12x20>({.rows = 12, .columns = 20});
}
TEST(Check, allows_output_stationary_matmuls_where_the_machine_has_them) {
  expect_equal_refusals<Vmmu_check_both>({.rows = 4, .columns = 4, .dataflows = Dataflows::Both});
}
TEST(Check, allows_vector_instructions_where_the_machine_has_the_unit) {
  expect_equal_refusals<Vmmu_check_vector>({.rows = 4, .columns = 4, .vector_rows = 64});
}

}  // namespace
}  // namespace triptych::mmu
