// Inline PTX in small pieces of assembly.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/ptx_calls.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"

namespace triptych::kernels {
namespace {

/// A function of line 12 with this inline assembly.
std::string with(const std::string& text) {
  return "\t.file\t1 \"/home\" \"my.cu\"\n\t.loc\t1 12 3\n\t#APP\n\t" + text +
         "\n\t#NO_APP\n\tret\n";
}

std::string message_of(const std::string& text) {
  try {
    return with_ptx_calls(with(text));
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST(PtxCalls, replace_an_instruction_by_a_record_and_a_call) {
  const auto result = with_ptx_calls(with("bfe.s32 %eax, %r10d, 4, $8;"));
  EXPECT_NE(result.find("\tleaq .Ltriptych_ptx_0(%rip), %rdi\n\tcallq triptych_ptx\n"),
            result.npos);
  EXPECT_NE(result.find("\t.long 12\n"), result.npos) << result;
  // rax, r10 and two numbers.
  EXPECT_NE(result.find("\t.byte 0,0,1,1,1,1,1,1\n\t.quad 0,10,4,8,0\n"), result.npos) << result;
  EXPECT_EQ(result.find("bfe"), result.npos);
}

TEST(PtxCalls, know_special_registers_addresses_and_types) {
  EXPECT_NE(message_of("mov.u64 %rdx, %clock64;").find("\t.byte 0,8,0,0\n"), std::string::npos);
  EXPECT_NE(message_of("// first\n ld.global.u32 %ecx, [%rsi];").find("\t.quad 1,6,0,0,0\n"),
            std::string::npos);
}

TEST(PtxCalls, leave_the_assembly_of_this_processor_alone) {
  const auto text = with("pause");
  EXPECT_NE(with_ptx_calls(text).find("\tpause\n"), std::string::npos);
  EXPECT_EQ(with_ptx_calls(text).find("triptych_ptx"), std::string::npos);
}

TEST(PtxCalls, refuse_what_is_not_emulated) {
  for (const auto* text : {"div.u32 %eax, %eax, 2;", "add.u16 %ax, %ax, %ax;", "add.u32 %eax, 1;",
                           "bar.sync 1;", "ld.global.u32 %eax, [%rsi+4];", "foo;"}) {
    EXPECT_NE(message_of(text).find("my.cu:12: the inline assembly"), std::string::npos) << text;
  }
  EXPECT_NE(
      message_of("add.u32 %eax, %eax, 1; not.b32 %eax, %eax;").find("one instruction per asm"),
      std::string::npos);
}

}  // namespace
}  // namespace triptych::kernels
