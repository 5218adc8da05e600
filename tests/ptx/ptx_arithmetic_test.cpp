// The interpreter's arithmetic: rounding, fusing and flushing, bit by bit. Every expected word was
// worked out by hand or follows from IEEE 754 and the PTX ISA.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>

#include "tests/ptx/bench.h"

namespace triptych::ptx {
namespace {

/// Result of one instruction on operands in bits, in one thread.
std::uint32_t result32(const std::string& instruction, const std::vector<std::uint32_t>& operands) {
  std::string body = "ld.param.u64 %rd0, [out];\n", list = "%f0";
  for (std::size_t i = 0; i < operands.size(); ++i) {
    body += fmt::format("mov.b32 %f{}, {};\n", i + 1, operands[i]);
    list += fmt::format(", %f{}", i + 1);
  }
  body += fmt::format("{} {};\nst.global.f32 [%rd0], %f0;", instruction, list);
  return Bench(body).run(1, 1).front();
}

std::uint64_t result64(const std::string& instruction, const std::vector<double>& operands) {
  std::string body = "ld.param.u64 %rd0, [out];\n", list = "%d0";
  for (std::size_t i = 0; i < operands.size(); ++i) {
    body +=
        fmt::format("mov.f64 %d{}, 0d{:016X};\n", i + 1, std::bit_cast<std::uint64_t>(operands[i]));
    list += fmt::format(", %d{}", i + 1);
  }
  body += fmt::format("{} {};\nst.global.f64 [%rd0], %d0;", instruction, list);
  const auto words = Bench(body).run(1, 2);
  return std::uint64_t{words[1]} << 32 | words[0];
}

constexpr std::uint32_t kOne = 0x3F800000, kNegativeZero = 0x80000000, kNan = 0x7FFFFFFF;
constexpr std::uint32_t kInfinity = 0x7F800000, kLeastNormal = 0x00800000;

TEST(PtxFma, rounds_once) {
  // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24: a rounded product loses it.
  EXPECT_EQ(result32("fma.rn.ftz.f32", {0x3F800800, 0x3F800800, 0xBF801000}), 0x33800000U);
  EXPECT_EQ(result32("fma.rn.f32", {0x3F800800, 0x3F800800, 0xBF801000}), 0x33800000U);
  EXPECT_EQ(result32("mul.rn.ftz.f32", {0x3F800800, 0x3F800800}), 0x3F801000U);
  // 1 + 2^-24 is a tie that goes to the even 1. With a little more it goes up.
  EXPECT_EQ(result32("fma.rn.ftz.f32", {0x39800000, 0x39800000, kOne}), kOne);
  EXPECT_EQ(result32("fma.rn.ftz.f32", {0x39800001, 0x39800000, kOne}), 0x3F800001U);
  // In f64, too.
  const double x = 1 + 0x1p-30;
  EXPECT_EQ(result64("fma.rn.f64", {x, x, -(1 + 0x1p-29)}), std::bit_cast<std::uint64_t>(0x1p-60));
}

TEST(PtxRounding, follows_the_mode_of_each_instruction) {
  const std::vector<std::uint32_t> tie = {kOne, 0x33800000};  // 1 + 2^-24
  EXPECT_EQ(result32("add.rn.f32", tie), kOne);
  EXPECT_EQ(result32("add.rz.f32", tie), kOne);
  EXPECT_EQ(result32("add.rm.f32", tie), kOne);
  EXPECT_EQ(result32("add.rp.f32", tie), 0x3F800001U);
  EXPECT_EQ(result32("add.rm.f32", {kOne, 0xB2800000}), 0x3F7FFFFFU);  // 1 - 2^-26
  EXPECT_EQ(result32("div.rn.f32", {kOne, 0x40400000}), 0x3EAAAAABU);  // 1 / 3
  EXPECT_EQ(result32("rcp.rn.ftz.f32", {0x40400000}), 0x3EAAAAABU);
  EXPECT_EQ(result32("sqrt.rn.ftz.f32", {0x40000000}), 0x3FB504F3U);
}

TEST(PtxFlush, makes_zeros_of_the_same_sign_of_operands_and_results) {
  const std::uint32_t least = 1, negative = 0x807FFFFF;
  EXPECT_EQ(result32("add.rn.ftz.f32", {least, 0}), 0U);
  EXPECT_EQ(result32("add.rn.f32", {least, 0}), least);
  EXPECT_EQ(result32("add.rn.ftz.f32", {negative, kNegativeZero}), kNegativeZero);
  EXPECT_EQ(result32("mul.rn.ftz.f32", {negative, kOne}), kNegativeZero);
  EXPECT_EQ(result32("mul.rn.f32", {negative, kOne}), negative);
  // A normal product of 2^-63 and 2^-64 is subnormal.
  EXPECT_EQ(result32("mul.rn.ftz.f32", {0x20000000, 0x9F800000}), kNegativeZero);
  EXPECT_EQ(result32("mul.rn.f32", {0x20000000, 0x9F800000}), 0x80400000U);
  EXPECT_EQ(result32("fma.rn.ftz.f32", {kOne, negative, 0}), 0U);  // -0 + 0
  EXPECT_EQ(result32("sub.rn.ftz.f32", {kLeastNormal, 0x00800001}), kNegativeZero);
  EXPECT_EQ(result32("div.rn.ftz.f32", {kLeastNormal, 0x40000000}), 0U);
  EXPECT_EQ(result32("min.ftz.f32", {negative, kOne}), kNegativeZero);
  EXPECT_EQ(result32("max.f32", {least, negative}), least);
  EXPECT_EQ(result32("neg.ftz.f32", {least}), kNegativeZero);
  EXPECT_EQ(result32("neg.f32", {least}), 0x80000001U);
  EXPECT_EQ(result32("abs.ftz.f32", {negative}), 0U);
}

TEST(PtxFlush, takes_what_rounds_up_to_the_least_normal_number_as_normal) {
  // 2^-126 (1 - 2^-24) fits 24 bits below the least normal number: flushed. Half of that distance
  // rounds to the least normal number itself: kept. (As on x86. PTX does not specify it.)
  EXPECT_EQ(result32("mul.rn.ftz.f32", {0x3F7FFFFF, kLeastNormal}), 0U);
  EXPECT_EQ(result32("mul.rn.f32", {0x3F7FFFFF, kLeastNormal}), kLeastNormal);
  // (2^-63 (1 + 2^-23)) (2^-63 (1 - 2^-23)) = 2^-126 (1 - 2^-46).
  EXPECT_EQ(result32("mul.rn.ftz.f32", {0x20000001, 0x1FFFFFFE}), kLeastNormal);
}

TEST(PtxFlush, leaves_f64_alone) {
  const double least = 0x1p-1074;
  EXPECT_EQ(result64("add.rn.f64", {least, 0.0}), 1U);
  EXPECT_EQ(result64("mul.rn.f64", {0x1p-1000, 0x1p-74}), 1U);
}

TEST(PtxNan, has_one_pattern_as_a_result_and_survives_a_move) {
  EXPECT_EQ(result32("add.rn.ftz.f32", {0x7FC12345, kOne}), kNan);
  EXPECT_EQ(result32("sub.rn.ftz.f32", {kInfinity, kInfinity}), kNan);
  EXPECT_EQ(result32("mul.rn.ftz.f32", {kInfinity, 0}), kNan);
  EXPECT_EQ(result32("fma.rn.ftz.f32", {0xFFC00001, kOne, kOne}), kNan);
  EXPECT_EQ(result32("sqrt.rn.ftz.f32", {0xBF800000}), kNan);
  EXPECT_EQ(result32("mov.f32", {0xFFC12345}), 0xFFC12345U);
  EXPECT_EQ(result32("min.ftz.f32", {kNan, kOne}), kOne);
  EXPECT_EQ(result32("max.ftz.f32", {kOne, 0xFFC00000}), kOne);
  EXPECT_EQ(result32("max.ftz.f32", {kNan, 0xFFC00000}), kNan);
}

TEST(PtxExtremes, take_minus_zero_for_the_smaller) {
  EXPECT_EQ(result32("min.ftz.f32", {0, kNegativeZero}), kNegativeZero);
  EXPECT_EQ(result32("min.ftz.f32", {kNegativeZero, 0}), kNegativeZero);
  EXPECT_EQ(result32("max.ftz.f32", {kNegativeZero, 0}), 0U);
  EXPECT_EQ(result32("max.f32", {0, kNegativeZero}), 0U);
}

/// Words that a body stores at [%rd0].
std::vector<std::uint32_t> words(const std::string& body, std::size_t count) {
  return Bench("ld.param.u64 %rd0, [out];\n" + body).run(1, count);
}

TEST(PtxComparison, knows_what_is_no_number_and_flushes) {
  const auto compared = [](const std::string& how, std::uint32_t a, std::uint32_t b) {
    return words(fmt::format("mov.b32 %f1, {}; mov.b32 %f2, {}; setp.{} %p1, %f1, %f2;"
                             "selp.u32 %r1, 1, 0, %p1; st.global.u32 [%rd0], %r1;",
                             a, b, how),
                 1)[0] == 1;
  };
  EXPECT_TRUE(compared("eq.ftz.f32", 1, kNegativeZero));
  EXPECT_FALSE(compared("eq.f32", 1, kNegativeZero));
  EXPECT_TRUE(compared("gt.f32", 1, 0));
  EXPECT_FALSE(compared("gt.ftz.f32", 1, 0));
  EXPECT_FALSE(compared("ne.ftz.f32", kNan, kOne));
  EXPECT_TRUE(compared("neu.ftz.f32", kNan, kOne));
  EXPECT_FALSE(compared("ge.ftz.f32", kNan, kNan));
  EXPECT_TRUE(compared("geu.ftz.f32", kNan, kNan));
  EXPECT_TRUE(compared("nan.ftz.f32", kNan, kOne));
  EXPECT_FALSE(compared("num.ftz.f32", kNan, kOne));
  EXPECT_TRUE(compared("lt.s32", 0xFFFFFFFF, 0));
  EXPECT_FALSE(compared("lt.u32", 0xFFFFFFFF, 0));
}

TEST(PtxConversion, rounds_saturates_and_extends) {
  const auto converted = [](const std::string& types, std::uint32_t bits) {
    return words(
        fmt::format("mov.b32 %f1, {}; cvt.{} %r1, %f1; st.global.u32 [%rd0], %r1;", bits, types),
        1)[0];
  };
  EXPECT_EQ(converted("rzi.ftz.s32.f32", 0xC0200000), 0xFFFFFFFEU);  // -2.5
  EXPECT_EQ(converted("rni.ftz.s32.f32", 0x40200000), 2U);           // 2.5, to even
  EXPECT_EQ(converted("rzi.ftz.u32.f32", 0xBF800000), 0U);
  EXPECT_EQ(converted("rzi.ftz.s32.f32", 0x4F000000), 0x7FFFFFFFU);  // 2^31
  EXPECT_EQ(converted("rzi.ftz.s32.f32", kNan), 0U);
  EXPECT_EQ(converted("rni.f32.f32", 0x3FC00000), 0x40000000U);  // 1.5
  EXPECT_EQ(
      words("mov.u32 %r1, 16777217; cvt.rn.f32.u32 %f1, %r1; st.global.f32 [%rd0], %f1;", 1)[0],
      0x4B800000U);
  EXPECT_EQ(words("mov.u16 %rs1, 0x80FF; cvt.s32.s8 %r1, %rs1; st.global.u32 [%rd0], %r1;", 1)[0],
            0xFFFFFFFFU);
  EXPECT_EQ(words("mov.u16 %rs1, 0x80FF; cvt.u32.u16 %r1, %rs1; st.global.u32 [%rd0], %r1;", 1)[0],
            0x80FFU);
  // A double that is subnormal as f32 is flushed with .ftz and rounded without it.
  const std::string tiny = "mov.f64 %d1, 0d37E0000000000000;";  // 2^-129
  EXPECT_EQ(words(tiny + "cvt.rn.ftz.f32.f64 %f1, %d1; st.global.f32 [%rd0], %f1;", 1)[0], 0U);
  EXPECT_EQ(words(tiny + "cvt.rn.f32.f64 %f1, %d1; st.global.f32 [%rd0], %f1;", 1)[0], 0x00100000U);
  EXPECT_EQ(words("mov.b32 %f1, 0x3F808000; mov.b32 %f2, 0x3F818000;"
                  "cvt.rn.bf16x2.f32 %r1, %f2, %f1; st.global.u32 [%rd0], %r1;",
                  1)[0],
            0x3F823F80U);  // ties to even
}

TEST(PtxIntegers, wrap_divide_and_shift_as_the_isa_says) {
  const auto of = [](const std::string& line) {
    return words(line + " st.global.u32 [%rd0], %r1;", 1)[0];
  };
  EXPECT_EQ(of("mul.hi.s32 %r1, -2, 3;"), 0xFFFFFFFFU);
  EXPECT_EQ(of("mul.hi.u32 %r1, -2, 3;"), 2U);
  EXPECT_EQ(of("mad.lo.s32 %r1, 65537, 65537, -1;"), 0x00020000U);
  EXPECT_EQ(of("div.s32 %r1, -7, 2;"), 0xFFFFFFFDU);
  EXPECT_EQ(of("rem.s32 %r1, -7, 2;"), 0xFFFFFFFFU);
  EXPECT_EQ(of("div.u32 %r1, 7, 0;"), 0xFFFFFFFFU);
  EXPECT_EQ(of("shl.b32 %r1, 1, 32;"), 0U);
  EXPECT_EQ(of("shr.s32 %r1, -8, 40;"), 0xFFFFFFFFU);
  EXPECT_EQ(of("shr.u32 %r1, -8, 29;"), 7U);
  EXPECT_EQ(of("shf.l.wrap.b32 %r1, 0x80000000, 1, 33;"), 3U);
  EXPECT_EQ(of("prmt.b32 %r1, 0x33221100, 0x77665588, 0x7C04;"), 0x77FF0088U);
  EXPECT_EQ(of("bfi.b32 %r1, 0xFFF, 0x11111111, 8, 8;"), 0x1111FF11U);
  EXPECT_EQ(of("bfi.b32 %r1, -1, 0, 24, 32;"), 0xFF000000U);
  EXPECT_EQ(of("bfi.b32 %r1, -1, 7, 32, 8;"), 7U);
  EXPECT_EQ(of("popc.b32 %r1, 0xF0F0;"), 8U);
  EXPECT_EQ(of("clz.b32 %r1, 1;"), 31U);
  EXPECT_EQ(words("mul.wide.s32 %rd1, -1, 2; st.global.u64 [%rd0], %rd1;", 2)[1], 0xFFFFFFFFU);
  EXPECT_EQ(words("mov.u32 %r1, 7; mov.u32 %r2, 9; mov.b64 %rd1, {%r1, %r2};"
                  "mov.b64 {%r3, %r4}, %rd1; st.global.v2.u32 [%rd0], {%r4, %r3};",
                  2),
            (std::vector<std::uint32_t>{9, 7}));
}

}  // namespace
}  // namespace triptych::ptx
