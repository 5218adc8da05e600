// The text of inline PTX as words.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/ptx_text.h"

#include <gtest/gtest.h>

#include "backends/cuda/plain/ptx.h"
#include "experiments/kernels/ptx_names.h"

namespace triptych::kernels {
namespace {

using cuda::plain::PtxKind;
using cuda::plain::PtxOperation;

constexpr std::size_t kHead = 8;  ///< words of an instruction in front of its operands
constexpr std::size_t kGuard = 4, kCount = 7;

PtxWords read(std::string_view text, std::size_t operands = 4) {
  return read_ptx(text, std::vector<std::optional<std::int64_t>>(operands));
}

TEST(PtxNames, are_numbers_and_types) {
  EXPECT_EQ(ptx_integer("-12"), -12);
  EXPECT_EQ(ptx_integer("0x1F"), 31);
  EXPECT_EQ(ptx_integer("0f3F800000"), 0x3F800000);
  EXPECT_EQ(ptx_integer("r1"), std::nullopt);
  const auto pair = ptx_type("f16x2");
  ASSERT_TRUE(pair);
  EXPECT_TRUE(pair->is_pair);
  EXPECT_EQ(pair->bytes, 2);  // of an element
  EXPECT_EQ(ptx_type("f128"), std::nullopt);
}

TEST(PtxText, has_a_slot_for_each_declared_register) {
  const auto ptx =
      read("{ .reg .pred p; .reg .b32 x<2>; setp.ne.b32 p, $0, 0; @!p mov.b32 x1, $1; }");
  ASSERT_EQ(ptx.refusal, "");
  ASSERT_EQ(ptx.instructions, 2);
  EXPECT_EQ(ptx.words[0], static_cast<std::int64_t>(PtxOperation::Compare));
  EXPECT_EQ(ptx.words[kHead + 1], 4);  // p is behind the four operands
  const auto second = kHead + 3 * 3;
  EXPECT_EQ(ptx.words[second + kGuard], static_cast<std::int64_t>(PtxKind::Negated));
  EXPECT_EQ(ptx.words[second + kGuard + 1], 4);
  EXPECT_EQ(ptx.words[second + kHead + 1], 6);  // x1
}

TEST(PtxText, takes_constants_and_offsets_of_addresses) {
  const std::vector<std::optional<std::int64_t>> numbers = {{}, {}, 16};
  const auto ptx = read_ptx("cp.async.cg.shared.global [$0 + 32], [$1+$2], $2;\n // end", numbers);
  ASSERT_EQ(ptx.refusal, "");
  EXPECT_EQ(ptx.words[kCount], 4);  // the source size is the size
  EXPECT_EQ(ptx.words[kHead + 2], 32);
  EXPECT_EQ(ptx.words[kHead + 3 + 2], 16);
  EXPECT_EQ(ptx.words[kHead + 9 + 1], 16);
}

TEST(PtxText, knows_the_registers_of_each_shape) {
  EXPECT_EQ(read("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {$0,$0,$0,$0}, {$1,$1,$1,$1}, "
                 "{$2,$2}, {$3,$3,$3,$3};")
                .refusal,
            "");
  EXPECT_NE(read("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0,$0,$0,$0}, {$1,$1,$1,$1}, "
                 "{$2,$2}, {$3,$3,$3,$3};")
                .refusal,
            "");
  EXPECT_EQ(read("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {$0,$0,$0,$0}, {$1,$1}, {$2}, "
                 "{$3,$3,$3,$3};")
                .refusal,
            "");
}

TEST(PtxText, quotes_the_statement_that_it_does_not_know) {
  EXPECT_EQ(read("mov.u32 $0, %laneid; wgmma.fence.sync.aligned;").refusal,
            "\"wgmma.fence.sync.aligned\"");
}

}  // namespace
}  // namespace triptych::kernels
