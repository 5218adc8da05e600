// The activations of VectorProgram: sequences of operations with the bits of
// core/base/exact_activations.h, core/base/exact_math.h and core/ops/scalar_math.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/vector_program.h"

namespace triptych::systolic {

using mmu::VectorOperation;

void VectorProgram::polynomial(VectorBlock x, std::initializer_list<float> coefficients,
                               VectorBlock y) {
  const float* c = coefficients.begin();
  fma(y, x, c[0], c[1]);
  for (std::size_t i = 2; i < coefficients.size(); ++i) fma(y, y, x, c[i]);
}

void VectorProgram::join(VectorBlock x, float border, VectorBlock large, VectorBlock y) {
  const VectorBlock scratch = allocate();
  absolute(large, large);
  apply(VectorOperation::And, scratch, x, -0.0F);  // the sign bit
  apply(VectorOperation::Or, large, large, scratch);
  absolute(x, scratch);
  apply(VectorOperation::Greater, scratch, border, scratch);
  apply(VectorOperation::Select, y, y, large, scratch);
  keep_nans(x, y, scratch);
  release(scratch);
}

void VectorProgram::tanh(VectorBlock x, VectorBlock y) {
  const VectorBlock square = allocate(), large = allocate();
  // 1 - 2 / (e^2|x| + 1).
  absolute(x, y);
  apply(VectorOperation::Multiply, y, y, 2.0F);
  exp(y, large);
  apply(VectorOperation::Add, large, large, 1.0F);
  apply(VectorOperation::Fill, square, {}, 2.0F);
  const VectorDivisor divisor = prepare(large);
  divide(square, divisor, large);
  release(divisor);
  apply(VectorOperation::Subtract, large, 1.0F, large);
  apply(VectorOperation::Multiply, square, x, x);
  polynomial(square, {-0.00626911968F, 0.0211109594F, -0.0538739488F, 0.133329153F, -0.333333313F},
             y);
  apply(VectorOperation::Multiply, y, y, square);
  fma(y, y, x, x);
  join(x, 0.6F, large, y);
  release(large);
  release(square);
}

void VectorProgram::erf(VectorBlock x, VectorBlock y) {
  const VectorBlock t = allocate(), large = allocate();
  // 1 - e^-(t + t q(t)).
  absolute(x, t);
  apply(VectorOperation::Smaller, t, t, 3.95F);
  polynomial(t,
             {-9.69442908e-07F, 3.30596522e-05F, -0.00048922014F, 0.00426638313F, -0.0250550155F,
              0.107745104F, 0.634225428F, 0.12888059F},
             y);
  fma(y, y, t, t);
  negate(y, t);
  exp(t, large);
  apply(VectorOperation::Subtract, large, 1.0F, large);
  apply(VectorOperation::Multiply, t, x, x);
  polynomial(t,
             {8.33471859e-05F, -0.000813470921F, 0.00520036882F, -0.0268591512F, 0.112836912F,
              -0.376126349F, 0.128379166F},
             y);
  fma(y, y, x, x);
  join(x, 0.92F, large, y);
  release(large);
  release(t);
}

void VectorProgram::sign(VectorBlock x, VectorBlock y) {
  const VectorBlock below = allocate();
  apply(VectorOperation::Greater, y, x, 0.0F);
  apply(VectorOperation::And, y, y, 1.0F);
  apply(VectorOperation::Greater, below, 0.0F, x);
  apply(VectorOperation::And, below, below, 1.0F);
  apply(VectorOperation::Subtract, y, y, below);
  keep_nans(x, y, below);
  release(below);
}

void VectorProgram::softplus(VectorBlock x, VectorBlock y) {
  softplus_of_minus(x, y);
  const VectorBlock linear = allocate();
  apply(VectorOperation::Greater, linear, x, 0.0F);
  apply(VectorOperation::Select, linear, x, 0.0F, linear);
  apply(VectorOperation::Add, y, linear, y);
  release(linear);
}

void VectorProgram::softsign(VectorBlock x, VectorBlock y) {
  absolute(x, y);
  apply(VectorOperation::Add, y, y, 1.0F);
  const VectorDivisor divisor = prepare(y);
  divide(x, divisor, y);
  release(divisor);
}

void VectorProgram::expm1_of_negative(VectorBlock x, VectorBlock y) {
  const VectorBlock power = allocate(), r = allocate(), square = allocate();
  // x = n ln 2 + r as in exp: e^x - 1 = 2^n (e^r - 1) + (2^n - 1).
  apply(VectorOperation::Larger, r, x, -25.0F);
  fma(power, r, 1.44269504F, 12582912.0F);
  apply(VectorOperation::Subtract, y, power, 12582912.0F);
  fma(r, y, -0.693147182F, r);
  fma(r, y, 1.90465421e-9F, r);
  polynomial(r, {0.0013926184F, 0.00836317893F, 0.0416665561F, 0.166665763F, 0.5F}, y);
  apply(VectorOperation::Multiply, square, r, r);
  fma(y, y, square, r);
  apply(VectorOperation::ShiftLeft, power, power, VectorOperand::bits(23));
  apply(VectorOperation::AddInteger, power, power, 1.0F);  // its bits
  apply(VectorOperation::Subtract, square, power, 1.0F);
  fma(y, power, y, square);
  keep_nans(x, y, square);
  for (const VectorBlock block : {power, r, square}) release(block);
}

void VectorProgram::gelu(VectorBlock x, VectorBlock y) {
  const VectorBlock scaled = allocate();
  apply(VectorOperation::Multiply, scaled, x, 0.707106781F);
  erf(scaled, y);
  apply(VectorOperation::Add, y, y, 1.0F);
  apply(VectorOperation::Multiply, scaled, x, 0.5F);
  apply(VectorOperation::Multiply, y, scaled, y);
  release(scaled);
}

void VectorProgram::gelu_tanh(VectorBlock x, VectorBlock y) {
  const VectorBlock cubic = allocate();
  apply(VectorOperation::Multiply, cubic, x, 0.044715F);
  apply(VectorOperation::Multiply, cubic, cubic, x);
  fma(cubic, cubic, x, x);
  apply(VectorOperation::Multiply, cubic, cubic, 1.59576912F);
  sigmoid(cubic, y);
  apply(VectorOperation::Multiply, y, x, y);
  release(cubic);
}

void VectorProgram::extreme(bool larger, VectorBlock a, VectorBlock b, VectorBlock y) {
  const VectorBlock replaces = allocate(), nan = allocate();
  apply(VectorOperation::Equal, nan, b, b);
  apply(VectorOperation::Xor, nan, nan, VectorOperand::bits(~0U));
  apply(VectorOperation::Greater, replaces, larger ? b : a, larger ? a : b);
  apply(VectorOperation::Or, replaces, replaces, nan);
  apply(VectorOperation::Select, y, b, a, replaces);
  release(nan);
  release(replaces);
}

}  // namespace triptych::systolic
