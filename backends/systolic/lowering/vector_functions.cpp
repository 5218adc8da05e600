// The functions of VectorProgram: sequences of operations with the bits of core/base/exact_math.h.
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <limits>

#include "backends/systolic/lowering/vector_program.h"

namespace triptych::systolic {
namespace {

using mmu::VectorOperation;

constexpr std::uint32_t kSign = 0x80000000, kExponent = 0x7F800000, kOne = 0x3F800000;
constexpr std::uint32_t kNan = 0x7FC00000, kFraction = 0x007FFFFF, kLowestExponent = 0x00800000;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMinNormal = 0x1p-126F;

}  // namespace

void VectorProgram::keep_nans(VectorBlock x, VectorBlock y, VectorBlock scratch) {
  apply(VectorOperation::Equal, scratch, x, x);
  apply(VectorOperation::Select, y, y, VectorOperand::bits(kNan), scratch);
}

void VectorProgram::relu(VectorBlock x, VectorBlock y) {
  apply(VectorOperation::Greater, y, kMinNormal, x);
  apply(VectorOperation::Select, y, 0.0F, x, y);
}

void VectorProgram::negate(VectorBlock x, VectorBlock y) {
  apply(VectorOperation::Xor, y, x, VectorOperand::bits(kSign));
}
void VectorProgram::absolute(VectorBlock x, VectorBlock y) {
  apply(VectorOperation::And, y, x, VectorOperand::bits(~kSign));
}

void VectorProgram::exp(VectorBlock x, VectorBlock y) {
  const VectorBlock shifted = allocate(), r = allocate();
  // x = n ln 2 + r, with n in the low bits of `shifted`.
  fma(shifted, x, 1.44269504F, 12582912.0F);
  apply(VectorOperation::Subtract, y, shifted, 12582912.0F);
  fma(r, y, -0.693147182F, x);
  fma(r, y, 1.90465421e-9F, r);
  fma(y, r, 0.0013926184F, 0.00836317893F);
  for (const float coefficient : {0.0416665561F, 0.166665763F, 0.5F, 1.0F, 1.0F})
    fma(y, y, r, coefficient);
  apply(VectorOperation::ShiftLeft, shifted, shifted, VectorOperand::bits(23));
  apply(VectorOperation::AddInteger, y, y, shifted);
  apply(VectorOperation::Greater, shifted, x, 88.72283F);
  replace(y, shifted, kInfinity);
  apply(VectorOperation::Greater, shifted, -87.33654F, x);
  replace(y, shifted, 0.0F);
  keep_nans(x, y, shifted);
  release(r);
  release(shifted);
}

void VectorProgram::log(VectorBlock x, VectorBlock y) {
  const VectorBlock exponent = allocate(), f = allocate();
  // x = 2^e (1 + f) with 1 + f in [2/3, 4/3).
  apply(VectorOperation::SubtractInteger, exponent, x, VectorOperand::bits(0x3F2AAAAB));
  apply(VectorOperation::And, exponent, exponent, VectorOperand::bits(0xFF800000));
  apply(VectorOperation::SubtractInteger, f, x, exponent);
  apply(VectorOperation::Subtract, f, f, 1.0F);
  apply(VectorOperation::ToFloat, exponent, exponent);
  apply(VectorOperation::Multiply, exponent, exponent, 0x1p-23F);
  fma(y, f, -0.124222003F, 0.13748309F);
  for (const float coefficient : {-0.122887217F, 0.140558124F, -0.166733161F, 0.200072333F,
                                  -0.249999449F, 0.333332717F, -0.5F})
    fma(y, y, f, coefficient);
  const VectorBlock square = allocate();
  apply(VectorOperation::Multiply, square, f, f);
  fma(y, y, square, f);
  fma(y, exponent, 0.693147182F, y);
  apply(VectorOperation::Greater, square, kMinNormal, x);
  replace(y, square, -kInfinity);
  apply(VectorOperation::Equal, square, x, kInfinity);
  replace(y, square, kInfinity);
  apply(VectorOperation::Greater, square, x, -kMinNormal);
  apply(VectorOperation::Select, y, y, VectorOperand::bits(kNan), square);
  release(square);
  release(f);
  release(exponent);
}

void VectorProgram::invert_significand(VectorBlock m, VectorBlock y, VectorBlock scratch) {
  apply(VectorOperation::SubtractInteger, y, VectorOperand::bits(0x7EF311C7), m);
  apply(VectorOperation::Xor, m, m, VectorOperand::bits(kSign));
  // After four steps every y is rounded correctly, except that of the largest m.
  for (int step = 0; step < 4; ++step) {
    fma(scratch, m, y, 1.0F);
    fma(y, scratch, y, y);
  }
  apply(VectorOperation::Equal, scratch, m, VectorOperand::bits(0xBFFFFFFF));
  replace(y, scratch, VectorOperand::bits(0x3F000001));
}

void VectorProgram::reciprocal(VectorBlock x, VectorBlock y) {
  const VectorBlock minus_m = allocate(), scratch = allocate();
  apply(VectorOperation::And, minus_m, x, VectorOperand::bits(kFraction));
  apply(VectorOperation::Or, minus_m, minus_m, VectorOperand::bits(kOne));
  invert_significand(minus_m, y, scratch);
  // The exponent, beyond which results are infinite or flushed, and the sign.
  apply(VectorOperation::And, scratch, x, VectorOperand::bits(kExponent));
  apply(VectorOperation::SubtractInteger, y, y, scratch);
  apply(VectorOperation::AddInteger, y, y, VectorOperand::bits(kOne));
  apply(VectorOperation::And, minus_m, x, VectorOperand::bits(~kSign));
  apply(VectorOperation::Greater, scratch, kMinNormal, minus_m);
  replace(y, scratch, kInfinity);
  apply(VectorOperation::Greater, scratch, minus_m, 0x1p126F);
  replace(y, scratch, 0.0F);
  apply(VectorOperation::And, scratch, x, VectorOperand::bits(kSign));
  apply(VectorOperation::Or, y, y, scratch);
  keep_nans(x, y, scratch);
  release(scratch);
  release(minus_m);
}

void VectorProgram::square_root(VectorBlock x, VectorBlock y) {
  const VectorBlock m = allocate(), root = allocate(), half = allocate(), scratch = allocate();
  // x = 4^k m with m in [1, 4). y converges to 1 / sqrt(m).
  apply(VectorOperation::SubtractInteger, m, x, VectorOperand::bits(kOne));
  apply(VectorOperation::And, m, m, VectorOperand::bits(0xFF000000));
  apply(VectorOperation::SubtractInteger, m, x, m);
  apply(VectorOperation::ShiftRight, y, m, VectorOperand::bits(1));
  apply(VectorOperation::SubtractInteger, y, VectorOperand::bits(0x5F375A86), y);
  apply(VectorOperation::Multiply, half, m, -0.5F);
  for (int step = 0; step < 3; ++step) {
    apply(VectorOperation::Multiply, scratch, y, y);
    fma(scratch, half, scratch, 0.5F);
    fma(y, y, scratch, y);
  }
  // A correction by the remainder m - root^2 rounds the root of every m correctly.
  apply(VectorOperation::Multiply, root, m, y);
  apply(VectorOperation::Multiply, half, y, 0.5F);
  apply(VectorOperation::Xor, scratch, root, VectorOperand::bits(kSign));
  fma(scratch, scratch, root, m);
  fma(root, scratch, half, root);
  // Half of the exponent that m lacks. The sum's sign bit has no meaning.
  apply(VectorOperation::SubtractInteger, y, x, m);
  apply(VectorOperation::ShiftRight, y, y, VectorOperand::bits(1));
  apply(VectorOperation::AddInteger, y, root, y);
  apply(VectorOperation::And, y, y, VectorOperand::bits(~kSign));
  apply(VectorOperation::Equal, scratch, x, kInfinity);
  replace(y, scratch, kInfinity);
  apply(VectorOperation::Greater, scratch, kMinNormal, x);
  replace(y, scratch, VectorOperand::bits(kNan));
  apply(VectorOperation::Equal, scratch, x, 0.0F);
  apply(VectorOperation::And, root, x, VectorOperand::bits(kSign));
  apply(VectorOperation::Select, y, root, y, scratch);
  keep_nans(x, y, scratch);
  for (const VectorBlock block : {m, root, half, scratch}) release(block);
}

void VectorProgram::sigmoid(VectorBlock x, VectorBlock y) {
  const VectorBlock e = allocate();
  negate(x, y);
  exp(y, e);
  apply(VectorOperation::Add, e, e, 1.0F);
  reciprocal(e, y);
  apply(VectorOperation::Greater, e, -87.33654F, x);
  replace(y, e, 0.0F);
  release(e);
}

void VectorProgram::softplus_of_minus(VectorBlock x, VectorBlock y) {
  const VectorBlock e = allocate(), u = allocate();
  apply(VectorOperation::Or, u, x, VectorOperand::bits(kSign));
  exp(u, e);
  apply(VectorOperation::Add, u, e, 1.0F);
  // log(u) plus the part of e that u has lost, over u.
  apply(VectorOperation::Subtract, y, u, 1.0F);
  apply(VectorOperation::Subtract, e, e, y);
  const VectorDivisor divisor = prepare(u);
  divide(e, divisor, y);
  release(divisor);
  log(u, e);
  apply(VectorOperation::Add, y, e, y);
  release(u);
  release(e);
}

void VectorProgram::find_normal(VectorBlock x, VectorBlock normal, VectorBlock scratch) {
  absolute(x, scratch);
  apply(VectorOperation::Greater, normal, scratch, 0.0F);
  apply(VectorOperation::Greater, scratch, kInfinity, scratch);
  apply(VectorOperation::And, normal, normal, scratch);
}

VectorDivisor VectorProgram::prepare(VectorBlock divisor) {
  const VectorDivisor result{allocate(), allocate(), allocate(), allocate()};
  const auto& [minus_m, r, exponent, normal] = result;
  const VectorBlock sign = allocate();
  apply(VectorOperation::And, minus_m, divisor, VectorOperand::bits(kFraction));
  apply(VectorOperation::Or, minus_m, minus_m, VectorOperand::bits(kOne));
  invert_significand(minus_m, r, sign);
  find_normal(divisor, normal, sign);
  apply(VectorOperation::And, sign, divisor, VectorOperand::bits(kSign));
  apply(VectorOperation::Xor, minus_m, minus_m, sign);
  apply(VectorOperation::Or, r, r, sign);
  // The reciprocals of zeros and infinities are each other.
  apply(VectorOperation::And, exponent, divisor, VectorOperand::bits(kExponent));
  apply(VectorOperation::Xor, exponent, exponent, VectorOperand::bits(kExponent));
  apply(VectorOperation::Or, sign, sign, exponent);
  apply(VectorOperation::Select, r, r, sign, normal);
  apply(VectorOperation::Xor, exponent, exponent, VectorOperand::bits(kExponent));
  keep_nans(divisor, r, sign);
  release(sign);
  return result;
}

void VectorProgram::divide(VectorBlock a, const VectorDivisor& divisor, VectorBlock y) {
  const VectorBlock m = allocate(), s = allocate(), t = allocate();
  apply(VectorOperation::And, m, a, VectorOperand::bits(kSign | kFraction));
  apply(VectorOperation::Or, m, m, VectorOperand::bits(kOne));
  // The quotient of the significands. A step of correction makes it right within one unit, a second
  // one rounds it correctly (Markstein, 1990).
  apply(VectorOperation::Multiply, y, m, divisor.reciprocal);
  for (int step = 0; step < 2; ++step) {
    fma(t, divisor.minus_significand, y, m);
    fma(y, t, divisor.reciprocal, y);
  }
  // 2 to the difference of the exponents, in two factors: one may be out of range.
  apply(VectorOperation::And, t, a, VectorOperand::bits(kExponent));
  apply(VectorOperation::SubtractInteger, t, t, divisor.exponent);
  apply(VectorOperation::AddInteger, t, t, VectorOperand::bits(kExponent));
  apply(VectorOperation::ShiftRight, s, t, VectorOperand::bits(1));
  apply(VectorOperation::And, s, s, VectorOperand::bits(kExponent));
  apply(VectorOperation::SubtractInteger, t, t, s);
  apply(VectorOperation::SubtractInteger, t, t, VectorOperand::bits(kLowestExponent));
  apply(VectorOperation::Multiply, y, y, s);
  apply(VectorOperation::Multiply, y, y, t);
  // Zeros, infinities and NaNs on either side: a product has their rules.
  find_normal(a, s, t);
  apply(VectorOperation::Select, t, m, a, s);
  apply(VectorOperation::Multiply, t, t, divisor.reciprocal);
  apply(VectorOperation::And, s, s, divisor.normal);
  apply(VectorOperation::Select, y, y, t, s);
  for (const VectorBlock block : {m, s, t}) release(block);
}

void VectorProgram::release(const VectorDivisor& divisor) {
  for (const VectorBlock block :
       {divisor.minus_significand, divisor.reciprocal, divisor.exponent, divisor.normal})
    release(block);
}

void VectorProgram::divide(VectorBlock a, float number, VectorBlock y) {
  int exponent = 0;
  if (std::frexp(number, &exponent) == 0.5F && exponent > -125 && exponent < 125)
    return apply(VectorOperation::Multiply, y, a, 1 / number);
  const VectorBlock divisor = allocate();
  apply(VectorOperation::Fill, divisor, {}, number);
  const VectorDivisor prepared = prepare(divisor);
  divide(a, prepared, y);
  release(prepared);
  release(divisor);
}

}  // namespace triptych::systolic
