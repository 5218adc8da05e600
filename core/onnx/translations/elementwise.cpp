// Elementwise operators: functions of one value, and arithmetic of two that broadcast.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/onnx/node_import.h"
#include "core/onnx/translations/arithmetic.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"

namespace triptych::onnx {
namespace {

template <UnaryKind kind>
std::vector<ValueId> unary(NodeImport& n) {
  return {n.f.apply(kind, n.in(0))};
}

std::vector<ValueId> leaky_relu(NodeImport& n) {
  Unary op(UnaryKind::LeakyRelu);
  op.alpha = n.number("alpha", 0.01F);
  return {n.apply(make_op(op), {n.in(0)})};
}

std::vector<ValueId> gelu(NodeImport& n) {
  Unary op(UnaryKind::Gelu);
  op.approximate = n.text("approximate", "none");
  return {n.apply(make_op(op), {n.in(0)})};
}

ValueId elu_of(NodeImport& n, ValueId x, float alpha) {
  Unary op(UnaryKind::Elu);
  op.alpha = alpha;
  return n.apply(make_op(op), {x});
}

std::vector<ValueId> elu(NodeImport& n) { return {elu_of(n, n.in(0), n.number("alpha", 1))}; }

/// x > 0 ? x : alpha (e^(x / alpha) - 1).
std::vector<ValueId> celu(NodeImport& n) {
  const double alpha = n.number("alpha", 1);
  n.refuse_unless(alpha > 0, "attribute alpha that is not above 0");
  const auto x = n.in(0);
  const auto below = n.f.mul(elu_of(n, n.f.div(x, alpha), 1), alpha);
  return {n.f.select(n.f.apply(BinaryKind::Greater, x, 0.0), x, below)};
}

std::vector<ValueId> selu(NodeImport& n) {
  const auto alpha = n.number("alpha", 1.67326319217681884765625F);
  const double gamma = n.number("gamma", 1.05070102214813232421875F);
  return {n.f.mul(elu_of(n, n.in(0), alpha), gamma)};
}

std::vector<ValueId> thresholded_relu(NodeImport& n) {
  const double alpha = n.number("alpha", 1);
  const auto x = n.in(0);
  return {n.f.select(n.f.apply(BinaryKind::Greater, x, alpha), x, 0.0)};
}

ValueId clipped(NodeImport& n, ValueId x, float low, float high) {
  Unary op(UnaryKind::Clip);
  op.min = low;
  op.max = high;
  return n.apply(make_op(op), {x});
}

ValueId hard_sigmoid_of(NodeImport& n, ValueId x, double alpha, double beta) {
  return clipped(n, n.f.add(n.f.mul(x, alpha), beta), 0, 1);
}

std::vector<ValueId> hard_sigmoid(NodeImport& n) {
  const double alpha = n.number("alpha", 0.2F);
  const double beta = n.number("beta", 0.5F);
  return {hard_sigmoid_of(n, n.in(0), alpha, beta)};
}

std::vector<ValueId> hard_swish(NodeImport& n) {
  const auto x = n.in(0);
  return {n.f.mul(x, hard_sigmoid_of(n, x, 1.0F / 6, 0.5))};
}

/// x tanh(softplus(x)), and -0 for -inf. In float32 it is -0 below -104 and x above 20. There x is
/// bounded, because the gradient multiplies its product with dy, perhaps an infinity, by 0.
std::vector<ValueId> mish(NodeImport& n) {
  const auto x = n.in(0);
  const auto bounded = clipped(n, x, -104, 20);
  const auto y =
      n.f.mul(bounded, n.f.apply(UnaryKind::Tanh, n.f.apply(UnaryKind::Softplus, bounded)));
  return {n.f.select(n.f.apply(BinaryKind::Greater, x, 20.0), x, y)};
}

/// The slope broadcasts to x. One per channel stands for axis 1 in old operator sets.
std::vector<ValueId> prelu(NodeImport& n) {
  const auto x = n.in(0);
  auto slope = n.in(1);
  const auto shape = n.shape(1);
  if (n.opset < 7 && shape.rank() == 1 && n.rank(0) > 1) {
    Dims dims(static_cast<std::size_t>(n.rank(0)) - 1, 1);
    dims[0] = shape[0];
    slope = n.reshape(slope, std::move(dims));
  }
  return {n.f.select(n.f.apply(BinaryKind::Less, x, 0.0), n.f.mul(x, slope), x)};
}

template <BinaryKind kind>
std::vector<ValueId> binary(NodeImport& n) {
  return {arithmetic(n, kind, n.in(0), broadcast_as_of_old(n))};
}

template <BinaryKind kind>
std::vector<ValueId> comparison(NodeImport& n) {
  return {compare(n, kind, n.in(0), broadcast_as_of_old(n))};
}

std::vector<ValueId> exclusive_or(NodeImport& n) {
  const auto equal = compare(n, BinaryKind::Equal, n.in(0), broadcast_as_of_old(n));
  return {n.f.apply(UnaryKind::Not, equal)};
}

/// A power of whole numbers is exact (and wraps) where the exponent is whole, for every dtype of
/// it. For others it is computed in float32.
ValueId whole_pow(NodeImport& n, ValueId base, ValueId exponent) {
  const auto dtype = n.graph.spec(base).dtype;
  const auto whole = n.cast(exponent, dtype == DType::I64 ? DType::I64 : DType::I32);
  const auto exact =
      n.cast(n.f.apply(BinaryKind::Pow, n.cast(base, n.graph.spec(whole).dtype), whole), dtype);
  if (!is_floating(n.graph.spec(exponent).dtype)) return exact;
  const auto power = n.cast(exponent, DType::F32);
  const auto known = n.graph.known(power);
  const auto is_whole = [](float value) {
    return std::floor(value) == value && std::abs(value) < 0x1p31F;
  };
  if (known && std::ranges::all_of(known->as<float>(), is_whole)) return exact;
  const auto y = n.cast(n.f.apply(BinaryKind::Pow, n.cast(base, DType::F32), power), dtype);
  const auto back = n.cast(whole, DType::F32);
  return n.f.select(n.f.apply(BinaryKind::Equal, back, power), exact, y);
}

/// The result has the dtype of the base, independent of that of the exponent.
std::vector<ValueId> pow(NodeImport& n) {
  const auto base = n.dtype(0);
  auto exponent = broadcast_as_of_old(n);
  const auto power = n.graph.spec(exponent).dtype;
  if (!is_floating(base)) return {whole_pow(n, n.in(0), exponent)};
  if (base == power) return {arithmetic(n, BinaryKind::Pow, n.in(0), exponent)};
  const auto y =
      n.f.apply(BinaryKind::Pow, n.cast(n.in(0), DType::F32), n.cast(exponent, DType::F32));
  return {n.cast(y, base)};
}

ValueId folded(NodeImport& n, BinaryKind kind) {
  const auto values = n.all();
  if (values.empty()) n.broken("it has no input");
  auto result = values.front();
  for (std::size_t i = 1; i < values.size(); ++i) result = arithmetic(n, kind, result, values[i]);
  return result;
}

template <BinaryKind kind>
std::vector<ValueId> variadic(NodeImport& n) {
  return {folded(n, kind)};
}

std::vector<ValueId> mean(NodeImport& n) {
  return {n.f.div(folded(n, BinaryKind::Add), static_cast<double>(n.input_count()))};
}

std::vector<ValueId> clip(NodeImport& n) {
  auto x = n.in(0);
  if (n.opset < 11) {
    const Unary whole(UnaryKind::Clip);
    return {clipped(n, x, n.number("min", whole.min), n.number("max", whole.max))};
  }
  if (n.has(1)) x = arithmetic(n, BinaryKind::Max, x, n.in(1));
  if (n.has(2)) x = arithmetic(n, BinaryKind::Min, x, n.in(2));
  return {x};
}

}  // namespace

void add_elementwise_translations(TranslationList& list) {
  list.insert(list.end(), {{"Relu", unary<UnaryKind::Relu>},
                           {"Sigmoid", unary<UnaryKind::Sigmoid>},
                           {"Tanh", unary<UnaryKind::Tanh>},
                           {"Exp", unary<UnaryKind::Exp>},
                           {"Log", unary<UnaryKind::Log>},
                           {"Sqrt", unary<UnaryKind::Sqrt>},
                           {"Reciprocal", unary<UnaryKind::Reciprocal>},
                           {"Neg", unary<UnaryKind::Neg>},
                           {"Abs", unary<UnaryKind::Abs>},
                           {"Sign", unary<UnaryKind::Sign>},
                           {"Erf", unary<UnaryKind::Erf>},
                           {"Not", unary<UnaryKind::Not>},
                           {"LeakyRelu", leaky_relu},
                           {"Gelu", gelu},
                           {"Elu", elu},
                           {"Celu", celu},
                           {"Selu", selu},
                           {"ThresholdedRelu", thresholded_relu},
                           {"HardSigmoid", hard_sigmoid},
                           {"HardSwish", hard_swish},
                           {"Softplus", unary<UnaryKind::Softplus>},
                           {"Mish", mish},
                           {"Softsign", unary<UnaryKind::Softsign>},
                           {"PRelu", prelu},
                           {"Clip", clip},
                           {"Add", binary<BinaryKind::Add>},
                           {"Sub", binary<BinaryKind::Sub>},
                           {"Mul", binary<BinaryKind::Mul>},
                           {"Div", binary<BinaryKind::Div>},
                           {"Pow", pow},
                           {"And", binary<BinaryKind::And>},
                           {"Or", binary<BinaryKind::Or>},
                           {"Xor", exclusive_or},
                           {"Equal", comparison<BinaryKind::Equal>},
                           {"Less", comparison<BinaryKind::Less>},
                           {"LessOrEqual", comparison<BinaryKind::LessOrEqual>},
                           {"Greater", comparison<BinaryKind::Greater>},
                           {"GreaterOrEqual", comparison<BinaryKind::GreaterOrEqual>},
                           {"Sum", variadic<BinaryKind::Add>},
                           {"Max", variadic<BinaryKind::Max>},
                           {"Min", variadic<BinaryKind::Min>},
                           {"Mean", mean}});
}

}  // namespace triptych::onnx
