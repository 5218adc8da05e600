// The debugger's record of plain/debugged.cu against values by hand.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/debugger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "backends/cuda/plain/debug_info.h"
#include "experiments/kernels/debug_value.h"
#include "tests/unit/cuda/plain_kernels.h"

#if defined(__x86_64__)

namespace triptych::kernels {
namespace {

using cuda::line_with;
using cuda::plain_file;
using cuda::plain::DebugType;
using cuda::plain::KernelLibrary;
using cuda::plain::LineTrace;

const KernelLibrary& library() {
  static const TemporaryFolder folder("debugged");
  static const auto opened = [] {
    const auto file = folder.path() / "debugged.so";
    compile_kernels({.file = plain_file("debugged"), .debugs = true}, file);
    return std::make_unique<KernelLibrary>(file);
  }();
  return *opened;
}

const LineTrace& trace() {
  static std::unique_ptr<LineTrace> trace;
  if (trace) return *trace;
  const auto run = run_kernel(
      library(), {.arguments = {"f32:32=count", "f32:32=5"},
                  .block = {32},
                  .watch = [&](const KernelLibrary& opened, const cuda::plain::Launch& launch) {
                    trace = std::make_unique<LineTrace>(opened, launch, cuda::plain::WarpChoice{});
                    return trace.get();
                  }});
  EXPECT_FALSE(run.fault);
  trace->finish();
  return *trace;
}

std::string line_of(const char* comment) { return std::to_string(line_with("debugged", comment)); }

Debugger stopped_at(const char* comment) {
  Debugger debugger(trace());
  debugger.add_breakpoint(line_of(comment));
  EXPECT_TRUE(debugger.resume());
  return debugger;
}

std::string value(const Debugger& debugger, unsigned lane, const char* expression) {
  const auto view = debugger.view(lane);
  return view.text(view.evaluate(expression));
}

constexpr std::uint32_t lanes_with(bool (*chosen)(unsigned lane)) {
  std::uint32_t mask = 0;
  for (unsigned lane = 0; lane < 32; ++lane) mask |= (chosen(lane) ? 1U : 0U) << lane;
  return mask;
}

TEST(DebugInfo, has_functions_with_variables_and_their_types) {
  const auto info = library().debug_info();
  const auto function =
      std::ranges::find(info.functions, "debugged", &cuda::plain::DebugFunction::name);
  ASSERT_NE(function, info.functions.end());
  const auto pair =
      std::ranges::find(function->variables, "pair", &cuda::plain::DebugVariable::name);
  ASSERT_NE(pair, function->variables.end());
  const auto& type = info.types[pair->type];
  EXPECT_EQ(type.name, "Pair");
  EXPECT_EQ(type.bytes, 12U);
  ASSERT_EQ(type.members.size(), 2U);
  EXPECT_EQ(type.members[1].offset, 4U);
  EXPECT_EQ(info.types[type.members[1].type].kind, DebugType::Kind::Array);
  EXPECT_EQ(info.types[type.members[1].type].count, 2U);
}

TEST(Debugger, lanes_leave_a_loop_one_after_another) {
  auto debugger = stopped_at("adds");
  EXPECT_EQ(debugger.here().mask, lanes_with([](unsigned lane) { return lane % 3 > 0; }));
  EXPECT_EQ(value(debugger, 1, "k"), "0");
  EXPECT_EQ(debugger.lane(0).state, DebugLane::State::Waiting);
  ASSERT_TRUE(debugger.resume());
  EXPECT_EQ(debugger.here().mask, lanes_with([](unsigned lane) { return lane % 3 == 2; }));
  EXPECT_EQ(value(debugger, 2, "k"), "1");
  EXPECT_EQ(value(debugger, 2, "sum"), "0.5");
  EXPECT_FALSE(debugger.resume());
  EXPECT_TRUE(debugger.at_end());
}

TEST(Debugger, steps_into_functions_and_over_them) {
  auto debugger = stopped_at("halves");
  EXPECT_EQ(debugger.here().depth, 1U);
  EXPECT_EQ(value(debugger, 1, "v"), "1");
  EXPECT_EQ(value(debugger, 1, "from"), "&argument 1 (f32:32=count)");
  EXPECT_EQ(value(debugger, 1, "from[k]"), "1");
  auto over = stopped_at("adds");
  ASSERT_TRUE(over.next());
  EXPECT_EQ(over.here().depth, 0U);
  ASSERT_TRUE(over.back());
  EXPECT_EQ(over.here().depth, 1U);
}

TEST(Debugger, shows_members_elements_and_memory_before_the_line) {
  auto debugger = stopped_at("stores");
  EXPECT_EQ(debugger.here().mask, ~0U);
  EXPECT_EQ(value(debugger, 17, "pair"), "{a=17, b={17, -17}}");
  EXPECT_EQ(value(debugger, 17, "pair.b[1]"), "-17");
  EXPECT_EQ(value(debugger, 17, "sum"), "-17");
  EXPECT_EQ(value(debugger, 5, "sum"), "1.5");
  EXPECT_EQ(value(debugger, 5, "y[17]"), "5");
  ASSERT_TRUE(debugger.step());
  EXPECT_EQ(value(debugger, 5, "y[17]"), "-17");
  EXPECT_THROW(value(debugger, 5, "k"), InvalidArgument);
}

TEST(Debugger, refuses_lines_without_code) {
  Debugger debugger(trace());
  EXPECT_THROW(debugger.add_breakpoint("1"), InvalidArgument);
  EXPECT_THROW(debugger.add_breakpoint("other.cu:" + line_of("adds")), InvalidArgument);
  EXPECT_NO_THROW(debugger.add_breakpoint("debugged.cu:" + line_of("adds")));
}

}  // namespace
}  // namespace triptych::kernels

#endif
