// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <random>
#include <sstream>

#include "systolic/isa/check.h"
#include "systolic/isa/field.h"
#include "systolic/isa/machine.h"
#include "systolic/isa/package.h"

namespace triptych::mmu {
namespace {

std::string read_source(const std::string& path) {
  std::ifstream file(TRIPTYCH_SOURCE_DIR "/" + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Any value in each field, including wait and signal.
Instruction random_instruction(const OpcodeInfo& info, std::mt19937& random) {
  Instruction instruction;
  instruction.words[0] = static_cast<std::uint32_t>(info.opcode) | (random() & 0xFF) << 8;
  for (const Field& field : info.fields) {
    const std::uint64_t value = random() & ((std::uint64_t{1} << field.bits) - 1);
    const bool negative = field.is_signed && (value >> (field.bits - 1)) != 0;
    set_field(instruction, field,
              static_cast<std::int64_t>(value) -
                  (negative ? std::int64_t{1} << field.bits : std::int64_t{0}));
  }
  return instruction;
}

TEST(Isa, fields_of_an_instruction_do_not_overlap) {
  for (const OpcodeInfo& info : opcodes()) {
    std::array<std::uint32_t, 8> used{0xFFFF};
    for (const Field& field : info.fields) {
      const auto mask =
          static_cast<std::uint32_t>(((std::uint64_t{1} << field.bits) - 1) << field.shift);
      ASSERT_LE(field.shift + field.bits, 32) << info.mnemonic << " " << field.name;
      std::uint32_t& word = used[static_cast<std::size_t>(field.word)];
      EXPECT_EQ(word & mask, 0U) << info.mnemonic << " " << field.name;
      word |= mask;
    }
  }
}

TEST(Isa, decode_is_the_inverse_of_encode) {
  Matmul matmul;
  matmul.accumulate = matmul.transpose = true;
  matmul.address = -3;
  matmul.y = -32768;
  matmul.dx = 32767;
  matmul.count = 65535;
  matmul.offset = std::numeric_limits<std::int32_t>::min();
  const Instruction instruction = encode(matmul, {5, 8});
  EXPECT_EQ(instruction.opcode(), Opcode::Matmul);
  EXPECT_EQ(instruction.wait(), 5U);
  EXPECT_EQ(instruction.signal(), 8U);
  const auto back = decode<Matmul>(instruction);
  EXPECT_TRUE(back.accumulate);
  EXPECT_FALSE(back.keep);
  EXPECT_TRUE(back.transpose);
  EXPECT_EQ(back.address, -3);
  EXPECT_EQ(back.y, -32768);
  EXPECT_EQ(back.dx, 32767);
  EXPECT_EQ(back.count, 65535U);
  EXPECT_EQ(back.offset, matmul.offset);
}

TEST(Isa, assembling_is_the_inverse_of_disassembling) {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i)
    for (const OpcodeInfo& info : opcodes()) {
      const Instruction instruction = random_instruction(info, random);
      EXPECT_EQ(assemble(disassemble(instruction)), instruction) << disassemble(instruction);
    }
}

TEST(Isa, a_listing_has_comments_and_numbers_of_two_bases) {
  const Program program = assemble_program(
      "# a product\n"
      "load address=0x40 units=2 lines=3 signal=compute  # operands\n"
      "\n"
      "matmul wait=load,store y=-1 count=4\n"
      "halt");
  ASSERT_EQ(program.size(), 3U);
  EXPECT_EQ(decode<Load>(program[0]).address, 64U);
  EXPECT_EQ(program[1].wait(), 0b1001U);
  EXPECT_EQ(decode<Matmul>(program[1]).y, -1);
  EXPECT_EQ(program[2], encode_halt());
}

TEST(Isa, package_and_manual_are_those_of_the_table) {
  EXPECT_EQ(read_source("systolic/rtl/mmu_pkg.sv"), systemverilog_package())
      << "run generate_package";
  const std::string manual = read_source("docs/reference/mmu.md");
  EXPECT_EQ(manual, with_manual_tables(manual)) << "run generate_package";
}

std::string complaint(const std::string& text, const std::string& machine = "mmu4") {
  try {
    check_program(assemble_program(text), find_machine(machine));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

constexpr const char* kSetup =
    "set_stream in_height=1 in_width=1 out_height=1 out_width=1\n"
    "set_taps channels=1 kernel_width=1\n";

TEST(Check, accepts_a_small_program) {
  EXPECT_EQ(complaint(std::string(kSetup) +
                      "weight_load rows=4 columns=4\n"
                      "matmul count=3 rows_left=1 columns_left=1\n"
                      "matmul count=3 rows_left=1 columns_left=1 keep=1 accumulate=1\n"
                      "halt"),
            "accepted");
}

TEST(Check, refuses_what_the_machine_would_refuse) {
  EXPECT_EQ(complaint("load units=1\nhalt"), "instruction 0 (load units=1): units or lines is 0");
  EXPECT_EQ(complaint("load units=1 lines=1 log2_group=3\nhalt"),
            "instruction 0 (load units=1 lines=1 log2_group=3): log2_group = 3: of 4 rows there "
            "are groups 0 for 1, 1 for 2, 2 for 4");
  EXPECT_EQ(complaint("weight_load rows=5 columns=1\nhalt"),
            "instruction 0 (weight_load rows=5 columns=1): rows = 5: give 1 to 4");
  EXPECT_THAT(complaint(std::string(kSetup) + "weight_load rows=1 columns=1\n"
                                              "matmul count=2 rows_left=1 columns_left=1 "
                                              "accumulator=1023\nhalt"),
              testing::EndsWith("accumulator rows 1023 to 1024 of 1024"));
}

/// The complaint of a machine with both dataflows.
std::string complaint_of_both(const std::string& text) {
  return complaint(text, R"({"name": "x", "rows": 4, "columns": 4, "dataflows": "both"})");
}

TEST(Check, refuses_output_stationary_programs_that_no_array_can_run) {
  const std::string setup(kSetup);
  const std::string tile = "weight_load stream=1 rows=4 columns=4\n";
  const std::string matmul = "matmul output_stationary=1 rows_left=1 columns_left=1 ";
  EXPECT_EQ(complaint_of_both(setup + tile + tile + matmul + "count=3\n" + matmul +
                              "count=3 accumulate=1 drain=1\nhalt"),
            "accepted");
  EXPECT_THAT(complaint(setup + tile + "halt"),
              testing::EndsWith("mmu4 has the weight-stationary dataflow only; give its file "
                                "\"dataflows\": \"both\""));
  EXPECT_THAT(complaint_of_both(setup + tile + matmul + "count=5\nhalt"),
              testing::EndsWith("count = 5: give 1 to 4"));
  EXPECT_THAT(complaint_of_both(setup + tile + matmul + "count=4 keep=1\nhalt"),
              testing::EndsWith("it neither keeps nor abuts"));
  EXPECT_THAT(complaint_of_both(setup + "matmul count=4 rows_left=1 columns_left=1 drain=1\nhalt"),
              testing::EndsWith("drain moves the sums of an output-stationary matmul"));
  EXPECT_THAT(
      complaint_of_both(setup + "weight_load rows=4 columns=4\n" + matmul + "count=4\nhalt"),
      testing::EndsWith("the tile is loaded with stream=0, an output-stationary matmul "
                        "needs stream=1"));
  EXPECT_THAT(complaint_of_both(setup + tile + "matmul count=4 rows_left=1 columns_left=1\nhalt"),
              testing::EndsWith("the tile is loaded with stream=1, this matmul needs stream=0"));
  EXPECT_THAT(complaint_of_both(setup + tile + matmul + "count=4 accumulate=1\nhalt"),
              testing::EndsWith("no output-stationary matmul without accumulate precedes it"));
  EXPECT_THAT(complaint_of_both(setup + tile + tile + matmul + "count=4\n" + matmul +
                                "count=3 accumulate=1\nhalt"),
              testing::EndsWith("goes on with 3 x 4 sums in the array, which holds 4 x 4"));
  EXPECT_THAT(complaint_of_both(tile + tile + tile + tile + tile + "halt"),
              testing::EndsWith("5 tiles wait for matmuls, the FIFO holds 4"));
}

std::string complaint_with_vectors(const std::string& text) {
  return complaint(text, R"({"name": "x", "rows": 4, "columns": 4, "vector_rows": 16})");
}

TEST(Check, refuses_vector_instructions_that_no_unit_can_run) {
  EXPECT_EQ(complaint_with_vectors("vector_load count=16 columns=4\n"
                                   "vector_op operation=add step=1 a_step=1 b=8 b_step=1 count=8\n"
                                   "vector_op operation=move a=1 a_step=2 step=1 count=8\n"
                                   "vector_store count=16 columns=4\nhalt"),
            "accepted");
  EXPECT_THAT(complaint("vector_op operation=add count=1\nhalt"),
              testing::EndsWith("mmu4 has no vector unit; give its file \"vector_rows\": 1024"));
  EXPECT_THAT(complaint_with_vectors("vector_op operation=add\nhalt"),
              testing::EndsWith("count is 0"));
  EXPECT_THAT(complaint_with_vectors("vector_op operation=21 count=1\nhalt"),
              testing::EndsWith("operation = 21: give 0 to 20"));
  EXPECT_THAT(complaint_with_vectors("vector_op operation=rotate scalar=4 count=1\nhalt"),
              testing::EndsWith("scalar = 4: there are lanes 0 to 3"));
  EXPECT_THAT(complaint_with_vectors("vector_load count=3 columns=5\nhalt"),
              testing::EndsWith("columns = 5: give 1 to 4"));
  EXPECT_THAT(complaint_with_vectors("vector_store row=14 count=3 columns=4\nhalt"),
              testing::EndsWith("row is rows 14 to 16 of the vector memory, which has 16"));
  EXPECT_THAT(complaint_with_vectors("vector_op operation=add a=3 a_step=-2 count=3\nhalt"),
              testing::EndsWith("a is rows 3 to -1 of the vector memory, which has 16"));
  EXPECT_THAT(complaint_with_vectors("vector_op operation=add b=1 destination=2 step=1 b_step=1 "
                                     "count=3\nhalt"),
              testing::EndsWith("reads row 2 of the vector memory as b, after it has written it"));
}

TEST(Check, knows_the_rows_that_a_vector_operation_has_written_by_any_step) {
  const auto complain = [](const std::string& destination, const std::string& b) {
    return complaint_with_vectors(
        "vector_op operation=add a=15 count=3 destination=" + destination + " b=" + b + "\nhalt");
  };
  EXPECT_EQ(complain("8 step=-2", "7 b_step=-2"), "accepted") << "between the results";
  EXPECT_EQ(complain("8 step=-2", "8 b_step=-2"), "accepted") << "before each is written";
  EXPECT_EQ(complain("8 step=-2", "10 b_step=-3"), "accepted") << "on both sides";
  EXPECT_EQ(complain("8 step=0", "8 b_step=1"), "accepted") << "in front of the first result";
  EXPECT_THAT(complain("8 step=-2", "4 b_step=1"), testing::HasSubstr("reads row 6 "));
  EXPECT_THAT(complain("8 step=-2", "9 b_step=-1"), testing::HasSubstr("reads row 8 "));
  EXPECT_THAT(complain("8 step=0", "8 b_step=0"), testing::HasSubstr("reads row 8 "));
}

TEST(Check, refuses_registers_that_were_not_loaded) {
  const std::string setup = "set_output out_height=1 out_width=1\n";
  const std::string store = "store count=1 rows_left=1 columns_left=1 columns=2 ";
  EXPECT_THAT(complaint("load_registers columns=1 file=3\nhalt"),
              testing::EndsWith("files beyond 2: 0 is bias, 1 multiplier, 2 shift"));
  EXPECT_THAT(complaint("load_registers columns=1 file=1 more=2\nhalt"),
              testing::HasSubstr("files beyond 2"));
  EXPECT_THAT(complaint("load_registers columns=1 more=2\nhalt"),
              testing::EndsWith("a bf16 machine has no shift registers"));
  EXPECT_THAT(complaint("load_registers columns=1 file=2\nhalt"),
              testing::EndsWith("a bf16 machine has no shift registers"));
  EXPECT_THAT(complaint(setup + "load_registers columns=2 file=1\n" + store + "bias=1\nhalt"),
              testing::EndsWith("adds 2 biases, load_registers loaded 0"));
  EXPECT_THAT(complaint(setup + "load_registers columns=1 file=1\n" + store + "scale=1\nhalt"),
              testing::EndsWith("scales 2 columns, load_registers loaded 1 multipliers"));
  EXPECT_THAT(complaint(setup + "load_registers columns=2 file=1\n" + store + "scale=1\nhalt",
                        "mmu16-int8"),
              testing::EndsWith("scales 2 columns, load_registers loaded 0 shifts"));
}

TEST(Check, refuses_operands_that_a_store_cannot_read) {
  const std::string setup = "set_output out_height=1 out_width=9 step_x=16\n";
  const std::string store = "store count=3 rows_left=1 columns_left=9 columns=4 ";
  EXPECT_THAT(complaint(setup + store + "residual=1\nhalt"),
              testing::EndsWith("no set_operand precedes it"));
  const std::string operand = setup + "set_operand step_x=16\n" + store;
  EXPECT_THAT(complaint(operand + "residual=1 select=1\nhalt"),
              testing::EndsWith("residual and select: a store has one operand"));
  EXPECT_EQ(complaint(operand + "residual=1\nhalt"), "accepted") << "in place";
  EXPECT_EQ(complaint(operand + "residual=1 operand=48\nhalt"), "accepted") << "beside";
  for (const char* rest : {"residual=1 operand=47\nhalt", "residual=1 operand=16\nhalt",
                           "select=1\nhalt", "residual=1 mask=1\nhalt"})
    EXPECT_THAT(
        complaint(operand + rest),
        testing::EndsWith("its result overlaps its operand, other than position for position"));
  EXPECT_THAT(complaint("set_output out_height=1 out_width=9 step_x=12\nset_operand step_x=12\n" +
                        store + "residual=1\nhalt"),
              testing::HasSubstr("overlaps"));
}

TEST(Check, refuses_stores_that_leave_no_activations_in_the_buffer) {
  const std::string store =
      "set_output out_height=1 out_width=4 step_x=1\n"
      "store buffer=1 address=4294967295 count=4 rows_left=1 columns_left=4 ";
  EXPECT_EQ(complaint(store + "narrow=1 columns=4 log2_group=2\nhalt"), "accepted") << "no DRAM";
  EXPECT_EQ(complaint(store + "narrow=1 columns=1 log2_group=0\nhalt"), "accepted");
  for (const char* rest :
       {"columns=4 log2_group=2\nhalt", "narrow=1 mask=1 columns=4 log2_group=2\nhalt"})
    EXPECT_THAT(complaint(store + rest),
                testing::EndsWith("a store to it is narrow and makes no mask"));
  EXPECT_THAT(
      complaint(store + "narrow=1 columns=3 log2_group=1\nhalt"),
      testing::EndsWith("more columns than the group's channels: a position is one buffer row"));
  EXPECT_THAT(complaint(store + "narrow=1 columns=4 log2_group=3\nhalt"),
              testing::HasSubstr("log2_group = 3"));
}

TEST(Check, refuses_what_would_wait_for_ever_or_read_elsewhere) {
  EXPECT_THAT(complaint("load units=1 lines=1 wait=store\nhalt"),
              testing::EndsWith("waits for a token of store that no earlier instruction gives"));
  EXPECT_THAT(complaint(std::string(kSetup) +
                        "weight_load rows=1 columns=1 signal=compute\n"
                        "matmul count=1 rows_left=1 columns_left=1 wait=weights\n"
                        "matmul count=2 rows_left=1 columns_left=1 wait=weights keep=1\nhalt"),
              testing::AllOf(testing::HasSubstr("keep=1 rows_left=1 columns_left=1 count=2): waits "
                                                "for a token of weights, and each that"),
                             testing::HasSubstr("the last one by instruction 3 (matmul")));
  EXPECT_THAT(complaint("load units=1 lines=1 signal=load\nhalt"),
              testing::EndsWith("a unit exchanges no tokens with itself"));
  EXPECT_THAT(complaint("load units=1 lines=1 address=0xFFFFFFFF\nhalt"),
              testing::HasSubstr("DRAM bytes 4294967295"));
  EXPECT_THAT(complaint("load units=1 lines=1"), testing::EndsWith("a program ends with a halt"));
  EXPECT_THAT(complaint("halt\nhalt"), testing::EndsWith("instructions follow the halt"));
  EXPECT_THAT(complaint(std::string(kSetup) + "matmul count=1 rows_left=1 columns_left=1\nhalt"),
              testing::EndsWith("no weight_load precedes it whose tile is unused"));
  EXPECT_THAT(complaint(std::string(kSetup) +
                        "weight_load rows=1 columns=1\nmatmul count=1 rows_left=1 columns_left=1\n"
                        "matmul count=1 rows_left=1 columns_left=1\nhalt"),
              testing::EndsWith("tile is unused; keep=1 goes on with the tile that is in the "
                                "array"));
  EXPECT_THAT(complaint(std::string(kSetup) + "matmul count=1 columns_left=1\nhalt"),
              testing::EndsWith("rows_left = 0: it counts from this position on, at least 1"));
  EXPECT_THAT(complaint("set_output out_height=1 out_width=1\n"
                        "store count=1 columns=1 rows_left=1\nhalt"),
              testing::EndsWith("columns_left = 0: it counts from this position on, at least 1"));
  std::string tiles;
  for (int i = 0; i < 6; ++i) tiles += "weight_load rows=1 columns=1\n";
  EXPECT_THAT(complaint(tiles + "halt"), testing::HasSubstr("6 tiles wait for matmuls"));
  std::string tokens;
  for (int i = 0; i < 256; ++i) tokens += "load units=1 lines=1 signal=compute\n";
  EXPECT_THAT(complaint(tokens + "halt"),
              testing::EndsWith("more than 255 tokens wait for compute"));
}

}  // namespace
}  // namespace triptych::mmu
