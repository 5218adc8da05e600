// Calls at the beginning of lines, in small pieces of assembly.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/line_calls.h"

#include <gtest/gtest.h>

#include <string>

namespace triptych::kernels {
namespace {

const std::string kCall = "\tcall triptych_line\n",
                  kPiece = "\tcallq\t__sanitizer_cov_trace_pc@PLT\n";

std::string line(const std::string& place) { return "\t.loc\t" + place + "\n"; }

TEST(LineCalls, begin_each_line_behind_the_stores_of_parameters) {
  const auto head = "work:\n" + line("1 2 0") + "\t.cfi_startproc\n\tpushq\t%rbp\n" +
                    line("1 2 0 prologue_end") + kPiece + "\tmovl\t%edi, -4(%rbp)\n";
  EXPECT_EQ(with_line_calls(head + line("1 3 5") + line("1 3 9") + line("1 4 3")),
            head + line("1 3 5") + kCall + line("1 3 9") + line("1 4 3") + kCall);
}

TEST(LineCalls, leave_out_parts_of_statements_and_code_without_a_line) {
  const auto text = kPiece + line("1 3 5 is_stmt 0") + line("1 0 5");
  EXPECT_EQ(with_line_calls(text), text);
}

TEST(LineCalls, are_repeated_where_a_jump_comes_to_the_line) {
  const auto head = kPiece + line("1 3 5") + kCall;
  EXPECT_EQ(with_line_calls(kPiece + line("1 3 5") + ".LBB0_1:\n" + line("1 3 9")),
            head + ".LBB0_1:\n" + line("1 3 9") + kCall);
  EXPECT_EQ(with_line_calls(kPiece + line("1 3 5") + ".Ltmp7:\n" + line("1 3 9")),
            head + ".Ltmp7:\n" + line("1 3 9"));
}

TEST(LineCalls, stop_at_the_end_of_a_function) {
  const auto next = "\t.cfi_endproc\nnext:\n" + line("1 9 0");
  EXPECT_EQ(with_line_calls(kPiece + line("1 3 5") + next), kPiece + line("1 3 5") + kCall + next);
}

}  // namespace
}  // namespace triptych::kernels
