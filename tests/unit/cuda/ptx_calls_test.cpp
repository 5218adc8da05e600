// Inline PTX in small pieces of LLVM's assembly language.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/ptx_calls.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"

namespace triptych::kernels {
namespace {

/// Line 12 of a function with this call, and the metadata of its place.
std::string with(const std::string& call) {
  return "define void @f() !dbg !3 {\n  " + call + " #1, !dbg !4, !srcloc !5\n  ret void\n}\n" +
         "!3 = distinct !DISubprogram(name: \"f\", scope: !6, file: !6, line: 10)\n"
         "!4 = !DILocation(line: 12, column: 3, scope: !3)\n"
         "!6 = !DIFile(filename: \"my.cu\", directory: \"/home\")\n";
}

std::string result_of(const std::string& call) {
  try {
    return with_ptx_calls(with(call));
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

TEST(PtxCalls, replace_an_instruction_by_a_record_and_a_call) {
  const auto result =
      result_of(R"(%1 = call i32 asm "bfe.s32 $0, $1, 4, $2;", "=r,r,n,~{flags}"(i32 %0, i32 8))");
  EXPECT_TRUE(contains(result, "  %triptych_ptx_0_a0 = zext i32 %0 to i64, !dbg !4\n")) << result;
  EXPECT_TRUE(contains(result, "i64 %triptych_ptx_0_a0), !dbg !4\n")) << result;
  EXPECT_TRUE(contains(result, "  %1 = trunc i64 %triptych_ptx_0_w0 to i32, !dbg !4\n")) << result;
  EXPECT_TRUE(contains(result, "c\"my.cu\\00\"")) << result;
  // Line 12, one argument in slot 1, one instruction.
  EXPECT_TRUE(contains(result, "to i64), i64 12, i64 1, i64 1, i64 1, ")) << result;
  EXPECT_FALSE(contains(result, "asm"));
}

TEST(PtxCalls, pass_floats_and_pointers_as_bits) {
  const auto result = result_of(
      "%7 = call { float, float } asm sideeffect \"add.f32 $0, $2, $3; add.f32 $1, $2, "
      "$2;\", \"=f,=f,f,0,l\"(float %2, float %3, i8* %4)");
  EXPECT_TRUE(contains(result, "bitcast float %2 to i32")) << result;
  EXPECT_TRUE(contains(result, "ptrtoint i8* %4 to i64")) << result;
  EXPECT_TRUE(contains(result, "  %7 = insertvalue { float, float } %triptych_ptx_0_s0, float"))
      << result;
  // The value of the second argument begins in the register of result 0.
  EXPECT_TRUE(contains(result, "i64 12, i64 3, i64 2, i64 2, i64 0, i64 3, ")) << result;
}

TEST(PtxCalls, leave_the_assembly_of_this_processor_alone) {
  const auto text = with(R"(call void asm sideeffect "pause", "~{memory}"())");
  EXPECT_EQ(with_ptx_calls(text), text);
}

TEST(PtxCalls, refuse_what_is_not_emulated) {
  for (const std::string text :
       {"div.u32 $0, $1, 2;", "add.u16 $0, $1, $1;", "add.u32 $0, 1;", "bar.sync 1;", "foo;",
        "add.u32 $0, $1, x;", "cp.async.cg.shared.global [$0], [$1], 4;",
        "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {$0}, {$0}, {$0}, {$0};",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0}, [$1];", "cp.async.wait_group $1;"}) {
    const auto message = result_of("%1 = call i32 asm \"" + text + "\", \"=r,r\"(i32 %0)");
    EXPECT_TRUE(contains(message, "my.cu:12: the inline assembly")) << text << message;
  }
  EXPECT_TRUE(contains(result_of(R"(call void asm "st.global.u32 [$0], 1;", "=*m"(i32* %0))"),
                       "an operand is in memory"));
}

TEST(PtxCalls, tell_errors_of_operands_from_others) {
  const std::string own = "a.cu:5:19: error: invalid output constraint '=f' in asm\n",
                    other = "a.cu:7:1: error: unknown type name 'flaot'\n";
  EXPECT_TRUE(refuses_only_operands(own + "2 errors generated.\n"));
  EXPECT_TRUE(
      refuses_only_operands("fatal error: error in backend: Cannot pop empty stack!\nStack dump:\n"
                            "clang: error: clang frontend command failed with exit code 70 (use -v "
                            "to see invocation)\n"));
  EXPECT_FALSE(refuses_only_operands(own + other));
  EXPECT_FALSE(refuses_only_operands("a.cu:7:1: warning: unused\n"));
}

TEST(PtxCalls, see_inline_ptx_between_the_marks_of_the_compiler) {
  EXPECT_TRUE(has_inline_ptx("\tret\n\t#APP\n\tmov.u32 %eax, %laneid;\n\t#NO_APP\n"));
  EXPECT_FALSE(has_inline_ptx("\t#APP\n\tpause\n\t#NO_APP\n"));
}

}  // namespace
}  // namespace triptych::kernels
