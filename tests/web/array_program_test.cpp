// A program's text on the array of the page: its results, the product's memory, refused programs.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/all_backends.h"
#include "core/ops/matmul.h"
#include "experiments/web/array_run.h"
#include "systolic/driver/listed_data.h"

namespace triptych::web {
namespace {

constexpr const char* kText = R"(.input  x address=0  type=bf16 shape=2x2
.input  w address=32 type=bf16 shape=2x2
.output y address=64 type=f32  shape=2x2
.values x  1 2   3 4
.values w  1 -1  0.5 2

load        signal=compute address=x pitch=4 buffer_pitch=1 units=1 lines=2 log2_group=1
set_stream  in_height=1 in_width=2 out_height=1 out_width=2 stride_x=1 step_x=1
set_taps    channels=2 kernel_width=1 log2_group=1
set_output  out_height=1 out_width=2 step_x=8
weight_load address=w pitch=4 rows=2 columns=2
matmul      wait=load signal=store count=2 rows_left=1 columns_left=2
store       wait=compute address=y count=2 columns=2 rows_left=1 columns_left=2
halt
)";

ArrayRun product() {
  ArrayProblem problem{make_op(MatMul{}), {}};
  problem.inputs.emplace_back(Shape{3, 4}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3});
  problem.inputs.emplace_back(Shape{4, 4},
                              std::vector<float>{1, 0, 0, 2, 0, 1, 3, 0, 0, 0, 1, 0, 1, 1, 1, 1});
  return run_on_array(find_backend("systolic"), problem, "mmu4", [](const mmu::PeStep&) {});
}

ArrayRun run(const std::string& text) {
  return run_listing(mmu::read_listing(text), product(), [](const mmu::PeStep&) {});
}

std::string changed(std::string text, const std::string& before, const std::string& after) {
  return text.replace(text.find(before), before.size(), after);
}

std::string refusal(const std::string& text) {
  try {
    run(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ArrayProgram, has_the_results_of_its_text_and_every_step_of_the_array) {
  const auto listing = mmu::read_listing(kText);
  std::size_t steps = 0;
  const auto run = run_listing(listing, product(), [&](const mmu::PeStep&) { ++steps; });
  std::vector<std::string> y;
  for (std::size_t i = 0; i < 4; ++i)
    y.push_back(
        mmu::value_text(mmu::ElementType::F32, mmu::value_bits(listing.arrays[2], run.after, i)));
  EXPECT_THAT(y, testing::ElementsAre("2", "3", "5", "5"));
  EXPECT_EQ(steps, run.report.counters.macs);
  EXPECT_EQ(run.report.times.size(), listing.program.size());
  EXPECT_FALSE(run.report.stalls.empty());
}

TEST(ArrayProgram, without_arrays_finds_the_memory_of_the_product) {
  const auto whole = product();
  std::string text;
  for (const auto& instruction : whole.program) text += mmu::disassemble(instruction) + "\n";
  const auto again = run(text);
  EXPECT_EQ(again.before, whole.before);
  EXPECT_EQ(again.after, whole.after);
  EXPECT_EQ(again.report.counters, whole.report.counters);
}

TEST(ArrayProgram, is_refused_with_the_line_or_the_instruction) {
  EXPECT_THAT(refusal(changed(kText, ".values w  1 -1  0.5 2\n", "")),
              testing::StartsWith("line 2: the input 'w' has no values; add lines .values w"));
  EXPECT_THAT(refusal(changed(kText, "address=64", "address=4000000000")),
              testing::AllOf(testing::StartsWith("line 3: 'y' takes bytes 4000000000 to"),
                             testing::HasSubstr("the DRAM of mmu4 has")));
  EXPECT_THAT(refusal(changed(kText, "wait=load ", "")),
              testing::StartsWith("instruction 5 (matmul"));
  EXPECT_THAT(refusal(changed(kText, "rows=2", "rows=9")),
              testing::StartsWith("instruction 4 (weight_load"));
}

TEST(ListedData, states_every_value_so_that_it_can_be_read_again) {
  const auto listing = mmu::read_listing(
      ".input a address=0 type=bf16 shape=4\n.values a 0.1 -inf nan -0\n"
      ".input b address=8 type=int8 shape=3\n.values b -128 127 0\n"
      ".input c address=16 type=uint8 shape=1\n.values c 255\n");
  std::vector<std::byte> dram(20);
  for (const auto& array : listing.arrays) mmu::put_values(array, dram);
  const auto texts = [&](std::size_t a) {
    std::vector<std::string> list;
    for (std::size_t i = 0; i < listing.arrays[a].values.size(); ++i)
      list.push_back(
          mmu::value_text(listing.arrays[a].type, mmu::value_bits(listing.arrays[a], dram, i)));
    return list;
  };
  EXPECT_THAT(texts(0), testing::ElementsAre("0.100097656", "-inf", "0x7FC00000", "-0"));
  EXPECT_THAT(texts(1), testing::ElementsAre("-128", "127", "0"));
  EXPECT_THAT(texts(2), testing::ElementsAre("255"));
}

}  // namespace
}  // namespace triptych::web
