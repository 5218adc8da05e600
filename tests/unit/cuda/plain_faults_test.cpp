// Mistakes in plain CUDA, one in each kernel of plain/faults.cu: each is found, and named by its
// line, its thread and in words.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cuda/plain_kernels.h"

namespace triptych::cuda {
namespace {

using testing::HasSubstr;

struct Mistake {
  std::string kernel;
  FaultKind kind;
  std::string comment;  ///< at the end of its line
  std::string says;
  unsigned thread;
  kernels::KernelRunRequest request;
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.kernel; }

using Arguments = std::vector<std::string>;

kernels::KernelRunRequest on(Arguments arguments, std::int64_t block = 64, std::int64_t grid = 1,
                             std::int64_t shared = 0) {
  return {
      .arguments = std::move(arguments), .grid = {grid}, .block = {block}, .shared_bytes = shared};
}

std::vector<Mistake> mistakes() {
  using enum FaultKind;
  return {
      {"shared_race", Race, "", "another thread reads byte 128 of the shared variable tile", 32,
       on({"f32:64=1", "f32:64"})},
      {"overwritten", Race, "", "of the shared variable tile at line", 0,
       on({"f32:65=1", "f32:64"})},
      {"global_race", Race, "", "another thread of the block reads element 1 of argument 1", 1,
       on({"f32:64"})},
      {"between_blocks", Race, "between blocks", "nothing orders the blocks", 0,
       on({"f32:1=0"}, 32, 2)},
      {"lost_update", Race, "lost update", "element 0 of argument 1", 1, on({"i32:1=0"})},
      {"null_pointer", OutOfBounds, "null pointer", "reads 4 bytes through a null pointer", 0,
       on({"null", "f32:64"})},
      {"wild_pointer", OutOfBounds, "wild pointer", "0x123456789000", 0, on({"f32:64"})},
      {"beyond_array", OutOfBounds, "beyond array", "reads element 100 of argument 1", 36,
       on({"f32:100=1", "f32:128", "100"}, 64, 2)},
      {"beyond_tile", OutOfBounds, "beyond tile", "index 32 of an array 'float [32]'", 0,
       on({"f32:1=1", "f32:1"}, 1)},
      {"beyond_dynamic", OutOfBounds, "beyond dynamic", "bytes 128 to 131 of the launch's 128", 32,
       on({"f32:64"}, 64, 1, 128)},
      {"uninitialised", Uninitialised, "uninitialised",
       "of the shared variable tile was not written", 63, on({"f32:64"})},
      {"divergent_barrier", DivergentBarrier, "divergent barrier", "15 more that have ended", 16,
       on({"f32:64"})},
      {"two_barriers", DivergentBarrier, "two barriers", "at the barrier of line", 32,
       on({"f32:64"})},
      {"missing_lane", MissingLane, "missing lane", "lane 16, which has ended", 0,
       on({"f32:32"}, 32)},
      {"endless", Endless, "endless: without memory", "has not ended after", 0, on({"i32:1"}, 32)},
      {"endless_read", Endless, "endless read", "has not ended after", 0,
       on({"i32:1=0", "i32:1"}, 1)},
      {"division", Division, "division", "divided by zero", 0, on({"i32:32=0", "i32:32"}, 32)},
      {"stack_overflow", StackOverflow, "", "more than", 0, on({"i32:2=100000", "i32:1"}, 1)},
      {"misaligned", Misaligned, "misaligned", "no multiple of 16", 1,
       on({"f32:64=0", "f32:32x4"}, 8)},
      {"asserted", Assertion, "asserted", "x[threadIdx.x] > 0", 0, on({"i32:8=0"}, 8)},
      {"constant_written", OutOfBounds, "constant written", "constant memory", 0,
       on({"i32:1=0"}, 1)},
      {"without_fence", Race, "without fence", "nothing orders the blocks", 0,
       on({"f32:2=1", "f32:2", "f32:1"}, 1, 2)},
      {"beyond_local", OutOfBounds, "beyond local", "index 4 of an array 'int [4]'", 0,
       on({"i32:1=4", "i32:1"}, 1)},
      {"not_zeroed", Uninitialised, "not zeroed",
       "reads element 1 of argument 2 (f32:4), which nothing has written", 1,
       on({"f32:4=1", "f32:4"}, 4)},
      {"counted", Uninitialised, "counted", "changes element 0 of argument 1 (i32:1)", 0,
       on({"i32:1"}, 4)},
      {"exits", Assertion, "exits", "the kernel calls exit", 3, on({"f32:8"}, 8)},
      {"aborts", Assertion, "aborts", "the kernel calls abort", 3, on({"f32:8"}, 8)},
      {"throws", Assertion, "throws", "the kernel throws an exception", 3, on({"f32:8"}, 8)},
      {"allocates", Assertion, "allocates", "not emulated without a main", 0, on({"f32:8"}, 8)},
      {"with_a_vector", Assertion, "", "not emulated without a main", 0, on({"f32:8"}, 8)},
      {"large_local", StackOverflow, "", "more than", 0, on({"f32:8=1", "f32:8"}, 8)},
      // So many threads wait that the array would lie on the stacks of others.
      {"large_callee", StackOverflow, "", "more than", 0, on({"f32:256=1", "f32:256"}, 256)},
  };
}

class PlainFaults : public testing::TestWithParam<Mistake> {};
INSTANTIATE_TEST_SUITE_P(Each, PlainFaults, testing::ValuesIn(mistakes()),
                         [](const auto& each) { return each.param.kernel; });

TEST_P(PlainFaults, is_named_by_line_thread_and_reason) {
  auto request = GetParam().request;
  request.kernel = GetParam().kernel;
  request.most_steps = 1 << 20;
  const auto run = kernels::run_kernel(plain_library("faults"), request);
  ASSERT_TRUE(run.fault);
  const auto& place = run.fault->place();
  EXPECT_EQ(to_string(run.fault->kind()), to_string(GetParam().kind)) << run.fault->what();
  EXPECT_THAT(run.fault->reason(), HasSubstr(GetParam().says));
  EXPECT_THAT(place.file, testing::EndsWith("faults.cu"));
  EXPECT_EQ(place.thread.x, GetParam().thread);
  if (!GetParam().comment.empty()) {
    EXPECT_EQ(place.line, line_with("faults", GetParam().comment));
  }
}

TEST(PlainFault, of_two_accesses_that_race_both_lines_are_named) {
  auto request = on({"f32:64=1", "f32:64"});
  request.kernel = "shared_race";
  const auto run = kernels::run_kernel(plain_library("faults"), request);
  ASSERT_TRUE(run.fault);
  const auto read = line_with("faults", "shared race");
  EXPECT_EQ(run.fault->place().line, read - 1);
  EXPECT_THAT(run.fault->reason(), HasSubstr("at line " + std::to_string(read)));
}

TEST(PlainFault, a_run_after_a_fault_is_as_if_there_had_been_none) {
  auto request = on({"null", "f32:64"});
  request.kernel = "null_pointer";
  EXPECT_TRUE(kernels::run_kernel(plain_library("faults"), request).fault);
  request.arguments[0] = "f32:64=3";
  const auto run = kernels::run_kernel(plain_library("faults"), request);
  EXPECT_FALSE(run.fault);
  EXPECT_EQ(run.outputs.at(0).tensor.as<float>()[63], 3);
}

/// The message of an argument that does not fit.
std::string refusal(const std::string& file, const std::string& kernel,
                    kernels::KernelRunRequest request) {
  request.kernel = kernel;
  try {
    kernels::run_kernel(plain_library(file), request);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  ADD_FAILURE() << "was not refused";
  return "";
}

TEST(PlainArguments, that_do_not_fit_are_named) {
  EXPECT_THAT(refusal("memory", "copi", on({})),
              testing::AllOf(HasSubstr("no kernel \"copi\""), HasSubstr("\"copy\"")));
  EXPECT_THAT(refusal("memory", "", on({})), HasSubstr("several kernels"));
  EXPECT_THAT(refusal("memory", "copy", on({"f32:64"})),
              HasSubstr("copy(const float*, float*) takes 2 arguments, and 1 were given"));
  EXPECT_THAT(
      refusal("memory", "copy", on({"i32:64", "f32:64"})),
      testing::AllOf(HasSubstr("argument 1"), HasSubstr("const float*"), HasSubstr("i32[64]")));
  EXPECT_THAT(refusal("memory", "copy", on({"64", "f32:64"})), HasSubstr("give an array"));
  EXPECT_THAT(refusal("memory", "copy", on({"f16:0", "f32:64"})), HasSubstr("give an array"));
  EXPECT_THAT(refusal("memory", "copy", on({"f99:64", "f32:64"})), HasSubstr("f99"));
  EXPECT_THAT(refusal("memory", "copy", on({"f32:64=much", "f32:64"})), HasSubstr("much"));
  EXPECT_THAT(refusal("memory", "stride", on({"f32:64", "f32:64", "1.5"})),
              testing::AllOf(HasSubstr("argument 3"), HasSubstr("whole number")));
  EXPECT_THAT(refusal("memory", "stride", on({"f32:64", "f32:64", "4000000000"})),
              HasSubstr("whole number"));
  EXPECT_THAT(refusal("memory", "vectors", on({"f32:63", "f32:64"})), HasSubstr("multiple of 16"));
}

TEST(PlainArguments, a_grid_that_no_gpu_takes_is_refused) {
  EXPECT_THAT(refusal("memory", "copy", on({"f32:4096=0", "f32:4096"}, 2048)),
              HasSubstr("beyond what a GPU takes: 1 to 1024 threads in a block"));
  auto request = on({"f32:4096=0", "f32:4096"});
  request.grid = {1, 2, 3, 4};
  EXPECT_THAT(refusal("memory", "copy", request), HasSubstr("one to three sizes"));
}

}  // namespace
}  // namespace triptych::cuda
