// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace triptych::mmu {
namespace {

using testing::HasSubstr;

std::string complaint(const std::string& text) {
  try {
    read_listing(text);
  } catch (const ListingError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Listing, errors_name_line_and_column_and_what_is_allowed) {
  EXPECT_EQ(
      complaint("halt\n  jump"),
      "line 2, column 3: no instruction 'jump'; there are halt, load, weight_load, "
      "set_stream, set_taps, matmul, set_output, load_registers, store, set_operand, vector_load, "
      "vector_store, vector_op, and .input, .output, .values and .expect");
  EXPECT_EQ(complaint("weight_load speed=1"),
            "line 1, column 13: weight_load has no operand 'speed'; it has wait, signal, stream, "
            "address, "
            "pitch, rows, columns");
  EXPECT_EQ(complaint("matmul y=40000"),
            "line 1, column 10: y = 40000 does not fit: give -32768 to 32767");
  EXPECT_EQ(complaint("matmul wait=load count=4x"),
            "line 1, column 24: count: '4x' is no number below 2^33 and no array above this line");
  EXPECT_EQ(complaint("store wait=load,host"),
            "line 1, column 17: no unit 'host': use load, weights, compute, store");
  EXPECT_THAT(complaint("vector_op operation=sqrt"),
              HasSubstr("column 21: no operation 'sqrt'; there are move, fill, add, "));
  EXPECT_EQ(complaint("load units"), "line 1, column 6: 'units': write name=value, without blanks");
  EXPECT_EQ(complaint("load units=1 units=2"), "line 1, column 14: 'units' is given twice");
  EXPECT_THAT(complaint("load address="), HasSubstr("column 14: address: '' is no number"));
}

TEST(Listing, operations_have_names_and_numbers) {
  const Listing listing = read_listing("vector_op operation=fma\nvector_op operation=5\nhalt");
  EXPECT_EQ(listing.program[0], listing.program[1]);
  EXPECT_EQ(disassemble(listing.program[0]), "vector_op operation=fma");
}

TEST(Listing, arrays_have_addresses_that_operands_may_add_to) {
  const Listing listing = read_listing(
      ".input x address=0x40 type=bf16 shape=3x4   # rows of four\n"
      "\n"
      ".output y address=x+24 type=f32 shape=2\n"
      "load address=x+8 units=1 lines=1\n"
      "store address=y-x+x count=1\n"
      "halt");
  ASSERT_EQ(listing.arrays.size(), 2U);
  EXPECT_TRUE(listing.arrays[0].is_input);
  EXPECT_EQ(listing.arrays[0].bytes(), 24U);
  EXPECT_THAT(listing.arrays[0].shape, testing::ElementsAre(3, 4));
  EXPECT_FALSE(listing.arrays[1].is_input);
  EXPECT_EQ(listing.arrays[1].address, 0x40U + 24);
  EXPECT_EQ(decode<Load>(listing.program[0]).address, 0x48U);
  EXPECT_EQ(decode<Store>(listing.program[1]).address, 0x40U + 24);
  EXPECT_THAT(listing.lines, testing::ElementsAre(4, 5, 6));
}

TEST(Listing, refuses_arrays_that_are_none) {
  EXPECT_THAT(complaint(".inputs x"),
              HasSubstr("column 1: '.inputs': use .input, .output, .values or .expect"));
  EXPECT_THAT(complaint(".input"), HasSubstr("give the array a name"));
  EXPECT_THAT(complaint(".input 4x address=0 type=f32 shape=1"), HasSubstr("column 8: '4x'"));
  EXPECT_THAT(complaint(".input x address=0 shape=1"), HasSubstr("'x' lacks its type"));
  EXPECT_THAT(complaint(".input x address=0 type=fp8 shape=1"),
              HasSubstr("column 25: no type 'fp8': use bf16, f32, int8, int32, uint8"));
  EXPECT_THAT(complaint(".input x address=-1 type=f32 shape=1"), HasSubstr("address = -1"));
  EXPECT_THAT(complaint(".input x address=0 type=f32 shape=4x0"), HasSubstr("shape: '0'"));
  EXPECT_THAT(complaint(".input x address=0 type=f32 shape=65536x65537"), HasSubstr("2^32"));
  EXPECT_THAT(complaint(".input x address=0xFFFFFFFF type=f32 shape=1"), HasSubstr("4 GiB"));
  EXPECT_THAT(complaint(".input x address=0 type=f32 shape=1 pitch=4"),
              HasSubstr("an array has no 'pitch'; it has address, type, shape"));
  const std::string first = ".input x address=0 type=f32 shape=4\n";
  EXPECT_THAT(complaint(first + ".output x address=16 type=f32 shape=4"),
              HasSubstr("line 2, column 9: there is an array 'x' already"));
  EXPECT_THAT(complaint(first + ".input y address=12 type=f32 shape=4"),
              HasSubstr("'y' overlaps 'x' (line 1), which takes bytes 0 to 15"));
  EXPECT_EQ(complaint(first + ".output y address=0 type=f32 shape=4"), "accepted");
}

TEST(Listing, holds_values_of_inputs_and_expects_those_of_outputs) {
  const std::string arrays =
      ".input x address=0 type=bf16 shape=2x2\n.output y address=16 type=f32 shape=3\n"
      ".input w address=32 type=int8 shape=2\n";
  const Listing listing = read_listing(arrays +
                                       ".values x 1 -0   # the first row\n.values x inf -1e-3\n"
                                       ".expect y nan _ 0x3F800001\n.values w -128 127\n"
                                       ".expect cycles 76\n.expect stall_dram_cycles 1\nhalt");
  ASSERT_EQ(listing.arrays[0].values.size(), 4U);
  EXPECT_EQ(listing.arrays[0].values[1].bits, 0x8000'0000U);
  EXPECT_EQ(listing.arrays[0].values[2].bits, 0x7F80'0000U);
  ASSERT_EQ(listing.arrays[1].values.size(), 3U);
  EXPECT_EQ(listing.arrays[1].values[0].bits, 0x7FC0'0000U);
  EXPECT_TRUE(listing.arrays[1].values[1].any);
  EXPECT_EQ(listing.arrays[1].values[2].bits, 0x3F80'0001U);
  EXPECT_EQ(static_cast<std::int32_t>(listing.arrays[2].values[0].bits), -128);
  ASSERT_EQ(listing.counts.size(), 2U);
  EXPECT_EQ(listing.counts[0].name, "cycles");
  EXPECT_EQ(listing.counts[1].value, 1U);

  EXPECT_THAT(complaint(arrays + ".values x 1 2 3"),
              HasSubstr("'x' takes 4 values, the text has 3"));
  EXPECT_THAT(complaint(arrays + ".values x _ 2 3 4"),
              HasSubstr("column 11: '_' is no value of bf16: write 1,"));
  EXPECT_THAT(complaint(arrays + ".values w 128 0"), HasSubstr("'128' is no value of int8"));
  EXPECT_THAT(complaint(arrays + ".expect y 1,5"), HasSubstr("'1,5' is no value of f32"));
  EXPECT_THAT(complaint(arrays + ".expect y 0x"), HasSubstr("'0x' is no value of f32"));
  EXPECT_THAT(complaint(arrays + ".expect x 1 1 1 1"),
              HasSubstr("line 4, column 9: no output 'x' stands above this line, and no counter"));
  EXPECT_THAT(complaint(arrays + ".values y 1 1 1"), HasSubstr("no input 'y' stands above"));
  EXPECT_THAT(complaint(arrays + ".expect cycles 7.5"), HasSubstr("takes one whole number"));
  EXPECT_THAT(complaint(arrays + ".expect cycles 7 8"), HasSubstr("takes one whole number"));
  EXPECT_THAT(complaint(arrays + ".expect cycles"), HasSubstr("takes a name and values"));
}

TEST(Hex, is_the_instruction_most_significant_word_first) {
  const Instruction load = assemble("load address=0x12345678 log2_group=2 signal=compute");
  const std::string hex = to_hex(load);
  EXPECT_EQ(hex, "00000002" + std::string(40, '0') + "12345678" + "00004002");
  EXPECT_EQ(read_hex("// two\n" + hex + " // load\n\n" + to_hex(encode_halt()) + "\n"),
            (Program{load, encode_halt()}));
}

TEST(Hex, refuses_what_is_no_instruction) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      read_hex(text);
    } catch (const ListingError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string halt = to_hex(encode_halt());
  EXPECT_EQ(refusal(halt + "\n 12"), "line 2, column 2: '12' has 2 digits: an instruction has 64");
  EXPECT_THAT(refusal(halt + " " + halt), HasSubstr("line 1, column 66: one instruction per line"));
  EXPECT_THAT(refusal("g" + halt.substr(1)), HasSubstr("'g0000000' is no hexadecimal number"));
  EXPECT_THAT(refusal(halt.substr(0, 62) + "4d"), HasSubstr("no instruction has the opcode 77"));
  EXPECT_THAT(refusal("1" + halt.substr(1)), HasSubstr("bits set that no operand has"));
}

}  // namespace
}  // namespace triptych::mmu
