// SPDX-License-Identifier: Apache-2.0
#include "systolic/driver/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "systolic/isa/check.h"
#include "tests/systolic/twin/product.h"

namespace triptych::mmu {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

DramArray input(std::uint32_t bytes) {
  return {.name = "x", .type = ElementType::Uint8, .shape = {bytes}};
}
DramArray output(std::uint32_t address, std::uint32_t rows, std::uint32_t columns) {
  return {.name = "y", .is_input = false, .address = address, .shape = {rows, columns}};
}

/// Complaint about a legal program with inputs in the first 64 bytes of the DRAM.
std::string complaint(const Program& program, const std::vector<DramArray>& outputs = {}) {
  const MachineConfig machine = find_machine("mmu4");
  check_program(program, machine);
  std::vector<DramArray> arrays = {input(64)};
  arrays.insert(arrays.end(), outputs.begin(), outputs.end());
  try {
    check_order(program, machine, arrays);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}
std::string complaint(const std::string& text) { return complaint(assemble_program(text)); }

constexpr const char* kSetup =
    "set_stream in_height=1 in_width=4 out_height=1 out_width=4 stride_x=1 step_x=1\n"
    "set_taps channels=4 kernel_width=1 log2_group=2\n"
    "set_output out_height=1 out_width=4 step_x=16\n"
    "weight_load address=32 pitch=8 rows=4 columns=4\n";
constexpr const char* kLoad = "load pitch=8 buffer_pitch=1 units=1 lines=4 log2_group=2 ";
constexpr const char* kMatmul = "matmul count=4 rows_left=1 columns_left=4 ";
constexpr const char* kStore = "store address=64 count=4 columns=4 rows_left=1 columns_left=4 ";

std::string lines(const std::vector<std::string>& instructions) {
  std::string text = kSetup;
  for (const std::string& line : instructions) text += line + "\n";
  return text + "halt";
}
const std::string kOrderedLoad = std::string(kLoad) + "signal=compute";
const std::string kOrderedMatmul = std::string(kMatmul) + "wait=load signal=store";
const std::string kOrderedStore = std::string(kStore) + "wait=compute";

TEST(Order, accepts_products_whose_tokens_are_there) {
  EXPECT_EQ(complaint(lines({kOrderedLoad, kOrderedMatmul, kOrderedStore})), "accepted");
  const MachineConfig machine = find_machine("mmu4");
  for (const Product product : {Product{3, 4, 4}, Product{9, 14, 11}, Product{20, 3, 9}}) {
    const DramArray arrays[] = {input(1 << 17), output(product.y, product.m, product.n)};
    EXPECT_NO_THROW(check_order(product.program(machine), machine, arrays));
  }
}

TEST(Order, names_both_instructions_that_no_token_orders) {
  EXPECT_THAT(complaint(lines({kLoad, kMatmul})),
              AllOf(HasSubstr("instruction 5 (matmul "),
                    HasSubstr("reads buffer row 0, which instruction 4 (load "),
                    HasSubstr("give signal=compute to that one"), HasSubstr("wait=load to this")));
  EXPECT_THAT(complaint(lines({kOrderedLoad, std::string(kMatmul) + "wait=load", kStore})),
              AllOf(HasSubstr("reads accumulator row 0"), HasSubstr("signal=store to that one")));
  // The next picture into the rows that a matmul may still read.
  EXPECT_THAT(complaint(lines({kOrderedLoad, kOrderedMatmul, kLoad})),
              AllOf(HasSubstr("instruction 6 (load"), HasSubstr("writes buffer row 0"),
                    HasSubstr("which instruction 5 (matmul"), HasSubstr("signal=load")));
  // A result that goes into the DRAM which the load may still read.
  EXPECT_THAT(
      complaint(lines({kLoad, "store address=0 count=1 columns=1 rows_left=1 columns_left=1"})),
      AllOf(HasSubstr("writes DRAM byte 0, which instruction 4 (load"), HasSubstr("wait=load")));
  EXPECT_THAT(complaint(lines({kOrderedLoad, kOrderedMatmul,
                               "store address=32 count=4 columns=4 rows_left=1 columns_left=4 "
                               "wait=compute"})),
              AllOf(HasSubstr("writes DRAM byte 32"), HasSubstr("(weight_load"),
                    HasSubstr("signal=store")));
}

TEST(Order, says_which_token_is_missing_where_some_are_there) {
  // Both stores follow both products, which have sums in the same rows: the first store uses the
  // token of the first matmul.
  EXPECT_THAT(
      complaint(lines({kOrderedLoad, kOrderedMatmul, std::string(kMatmul) + "keep=1 signal=store",
                       kOrderedStore, kOrderedStore})),
      AllOf(HasSubstr("instruction 7 (store"),
            HasSubstr("reads accumulator row 0, which instruction 6 (matmul"),
            HasSubstr("the token of compute that it takes is that of instruction 5 (matmul"),
            HasSubstr("or let them touch different places")));
  EXPECT_THAT(complaint(lines({kOrderedLoad, kOrderedMatmul, kStore})),
              EndsWith("no token makes it wait for that: give wait=compute to this one; the token "
                       "is there"));
  EXPECT_THAT(
      complaint(lines({kOrderedLoad, kOrderedMatmul, std::string(kMatmul) + "keep=1", kStore})),
      AllOf(HasSubstr("give signal=store to that one and wait=compute to this one; but first the "
                      "token of instruction 5 (matmul"),
            EndsWith("must be taken, or not be given")));
}

TEST(Order, follows_chains_of_tokens) {
  // load -> compute -> store -> load: the second load comes after the first matmul.
  EXPECT_EQ(complaint(lines({kOrderedLoad, kOrderedMatmul, kOrderedStore + " signal=load",
                             std::string(kLoad) + "wait=store"})),
            "accepted");
  // The token that a matmul gives the load unit says that it has read, not that its sums are there.
  EXPECT_THAT(complaint(lines({kOrderedLoad, std::string(kMatmul) + "wait=load signal=load",
                               "load units=1 lines=1 wait=compute signal=store",
                               std::string(kStore) + "wait=load"})),
              HasSubstr("reads accumulator row 0"));
}

TEST(Order, names_what_nobody_has_written) {
  EXPECT_THAT(complaint(lines({std::string(kLoad) + "address=40"})),
              HasSubstr("reads DRAM byte 64, which no input holds and no store has written"));
  EXPECT_THAT(
      complaint(lines({"load units=1 lines=1 log2_group=2 signal=compute", kOrderedMatmul})),
      HasSubstr("reads buffer row 1, which no load and no store has written"));
  EXPECT_THAT(complaint(lines({kOrderedLoad, std::string(kMatmul) + "accumulate=1 wait=load"})),
              HasSubstr("adds to 4 columns of accumulator row 0, of which matmuls have written 0"));
  const Program product = assemble_program(lines({kOrderedLoad, kOrderedMatmul, kOrderedStore}));
  EXPECT_EQ(complaint(product, {output(64, 4, 4)}), "accepted");
  EXPECT_EQ(complaint(product, {output(64, 5, 4)}),
            "no store writes y[4][0], which is DRAM byte 128");
}

TEST(Order, orders_a_layer_behind_the_store_that_fills_the_buffer_for_it) {
  const std::string one = "count=1 rows_left=1 columns_left=1 ";
  const std::string fill =
      "store buffer=1 narrow=1 log2_group=2 columns=4 address=200 wait=compute " + one;
  const std::string next = "matmul keep=1 address=200 accumulator=8 " + one;
  EXPECT_EQ(complaint(lines(
                {kOrderedLoad, kOrderedMatmul, fill + "signal=compute", next + "wait=store"})),
            "accepted");
  EXPECT_THAT(complaint(lines({kOrderedLoad, kOrderedMatmul, fill, next})),
              AllOf(HasSubstr("reads buffer row 200, which instruction 6 (store"),
                    HasSubstr("wait=store")));
  // Into rows that the load may still write: no token of the matmul tells of the last ones.
  EXPECT_THAT(
      complaint(lines({kOrderedLoad, kOrderedMatmul, std::string(kLoad) + "buffer_row=198", fill})),
      AllOf(HasSubstr("writes buffer row 200, which instruction 6 (load"), HasSubstr("wait=load")));
}

TEST(Order, knows_what_a_store_has_written) {
  const std::string back = kOrderedStore + " signal=load,weights";
  EXPECT_EQ(complaint(lines({kOrderedLoad, kOrderedMatmul, back,
                             std::string(kLoad) + "address=64 wait=store buffer_row=8"})),
            "accepted");
  EXPECT_EQ(complaint(lines({kOrderedLoad, kOrderedMatmul, back,
                             "weight_load address=100 pitch=4 rows=2 columns=2 wait=store"})),
            "accepted");
  EXPECT_THAT(
      complaint(lines({kOrderedLoad, kOrderedMatmul, kOrderedStore,
                       "weight_load address=100 pitch=4 rows=2 columns=2"})),
      AllOf(HasSubstr("reads DRAM byte 100, which instruction 6 (store"), HasSubstr("wait=store")));
}

}  // namespace
}  // namespace triptych::mmu
