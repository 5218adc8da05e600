// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"
#include "core/ops/cast.h"
#include "core/ops/fused_elementwise.h"
#include "core/ops/unary.h"
#include "core/ops/where.h"
#include "tests/conformance/random/makers.h"

namespace triptych::conformance {
namespace {

const std::vector<DType> kFloats = {DType::F32, DType::F32, DType::F32,  DType::F32,
                                    DType::F32, DType::F32, DType::BF16, DType::F16};
const std::vector<DType> kIntegers = {DType::I32, DType::I64};
const std::vector<DType> kAnything(std::begin(kAllDTypes), std::end(kAllDTypes));

std::vector<DType> floats(const Grower& g) {
  return g.smooth() ? std::vector<DType>{DType::F32} : kFloats;
}

/// Mostly floats.
std::vector<DType> numbers(Grower& g) {
  return !g.smooth() && g.chance(0.2) ? kIntegers : floats(g);
}

void add_smooth_unary(Grower& g) {
  using enum UnaryKind;
  Unary op(g.one_of<UnaryKind>(
      {Sigmoid, Tanh, Gelu, Erf, Exp, Log, Sqrt, Reciprocal, Softplus, Softsign}));
  auto x = g.operand({.dtypes = floats(g), .limit = op.kind == Exp ? 4.0 : 32.0});
  if (op.kind == Log || op.kind == Sqrt) x = positive(g, x);
  if (op.kind == Reciprocal && g.smallest_magnitude(x) < 0.25) x = positive(g, x);
  if (op.kind == Gelu && g.chance(0.5)) op.approximate = "tanh";
  g.add(make_op(op), {x});
}

void add_kinked_unary(Grower& g) {
  using enum UnaryKind;
  Unary op(g.one_of<UnaryKind>({Relu, Relu, Relu, LeakyRelu, Elu, Neg, Abs, Sign, Clip}));
  op.alpha = g.one_of<float>({0.01F, 0.3F, -0.5F});
  op.min = g.one_of<float>({-1, -2, 0});
  op.max = g.one_of<float>({0.25F, 1, 3});
  const bool any_number = op.kind != LeakyRelu && op.kind != Elu;
  const auto x = g.operand({.dtypes = any_number ? numbers(g) : floats(g)});
  if (!is_floating(g.spec(x).dtype)) op.max = g.one_of<float>({1, 3});
  g.add(make_op(op), {x});
}

void add_arithmetic(Grower& g) {
  using enum BinaryKind;
  const Binary op(g.one_of<BinaryKind>({Add, Add, Add, Sub, Mul, Mul, Div, Min, Max}));
  auto a = g.operand({.dtypes = numbers(g)});
  auto b = g.partner(a);
  if (g.chance(0.5)) std::swap(a, b);
  const bool divides = op.kind == Div && is_floating(g.spec(b).dtype);
  if (divides && g.smallest_magnitude(b) < 0.25) b = positive(g, b);
  g.add(make_op(op), {a, b});
}

void add_pow(Grower& g) {
  auto base = g.operand({.limit = 4});
  auto exponent = g.operand_of(g.broadcast_variant(g.shape_of(base)), 3);
  if (g.chance(0.3)) {
    exponent = g.scalar(DType::F32, 2);
  } else {
    base = positive(g, base);
  }
  g.add(make_op(Binary(BinaryKind::Pow)), {base, exponent});
}

/// f(x) + x, or x under two functions that meet again.
void add_residual(Grower& g) {
  const auto x = g.operand();
  const auto left = g.add_one(make_op(Unary(UnaryKind::Tanh)), {x});
  const auto right = g.chance(0.5) ? x : g.add_one(make_op(Unary(UnaryKind::Relu)), {x});
  g.add(make_op(Binary(g.chance(0.7) ? BinaryKind::Add : BinaryKind::Mul)), {left, right});
}

void add_comparison(Grower& g) {
  using enum BinaryKind;
  const auto a = g.operand({.dtypes = numbers(g)});
  const auto b = g.partner(a);
  g.add(make_op(Binary(g.one_of<BinaryKind>({Equal, Less, LessOrEqual, Greater, GreaterOrEqual}))),
        {a, b});
}

void add_logic(Grower& g) {
  const auto a = g.operand({.dtypes = {DType::Bool}});
  if (g.chance(0.3)) {
    g.add(make_op(Unary(UnaryKind::Not)), {a});
    return;
  }
  const auto kind = g.chance(0.5) ? BinaryKind::And : BinaryKind::Or;
  g.add(make_op(Binary(kind)), {a, g.partner(a)});
}

void add_where(Grower& g) {
  const auto a = g.operand({.dtypes = g.smooth() ? floats(g) : kAnything});
  const auto b = g.partner(a);
  const Shape both = broadcast_shapes(g.shape_of(a), g.shape_of(b));
  const auto condition = g.operand_of({DType::Bool, g.broadcast_variant(both)});
  g.add(make_op(Where{}), {condition, a, b});
}

void add_activation_gradient(Grower& g) {
  using enum BinaryKind;
  const auto y = g.operand({.limit = 1});
  const auto dy = g.operand_of(g.shape_of(y), 1);
  g.add(make_op(Binary(g.one_of<BinaryKind>({ReluGradient, SigmoidGradient, TanhGradient}))),
        {dy, y});
}

/// Kinds without cancellation, for which the chain's bound holds.
void add_chain(Grower& g) {
  const auto x = g.operand({.max_rank = 3, .limit = 4});
  std::vector<ValueId> inputs = {x};
  std::vector<ChainStep> steps;
  for (auto count = g.between(1, 4); count > 0; --count) {
    if (g.chance(0.4)) {
      steps.push_back({.unary = Unary(g.smooth() ? UnaryKind::Neg : UnaryKind::Relu)});
      continue;
    }
    inputs.push_back(g.operand_of(g.shape_of(x), 4));
    ChainStep step = {.binary = g.one_of<BinaryKind>({BinaryKind::Mul, BinaryKind::Add})};
    (g.chance(0.5) ? step.a : step.b) = static_cast<int>(inputs.size()) - 1;
    steps.push_back(step);
  }
  FusedElementwise op;
  op.steps = to_string(steps);
  g.add(make_op(op), inputs);
}

void add_cast(Grower& g) {
  Cast op;
  op.to = to_string(g.one_of(kAnything));
  const auto y = g.add_one(make_op(op), {g.operand({.dtypes = kAnything})});
  if (g.chance(0.5)) g.add(make_op(Cast{}), {y});
}

}  // namespace

ValueId positive(Grower& g, ValueId x) {
  if (g.least(x) > 0.25) return x;
  const auto magnitude = g.add_one(make_op(Unary(UnaryKind::Abs)), {x});
  const auto offset = g.scalar(g.spec(x).dtype, 0.5);
  return g.add_one(make_op(Binary(BinaryKind::Add)), {magnitude, offset});
}

void add_elementwise_makers(std::vector<Maker>& makers) {
  makers.insert(makers.end(), {{add_smooth_unary, 3},
                               {add_kinked_unary, 3},
                               {add_arithmetic, 5},
                               {add_pow},
                               {add_residual, 2},
                               {add_comparison},
                               {add_logic, 1, false},
                               {add_where},
                               {add_activation_gradient, 1, false},
                               {add_chain, 2},
                               {add_cast, 1, false}});
}

}  // namespace triptych::conformance
