// SPDX-License-Identifier: Apache-2.0
#include "core/ops/unary.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/ops/elementwise.h"
#include "core/ops/formula.h"
#include "core/ops/sharding.h"

namespace triptych {
namespace {

constexpr double kTanhCubic = 0.044715;  // Hendrycks and Gimpel, 2016
const double kTanhScale = std::sqrt(2 * std::numbers::inv_pi);

double gelu(double x, const Unary& op) {
  if (op.approximate == "none") return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  return 0.5 * x * (1 + std::tanh(kTanhScale * (x + kTanhCubic * x * x * x)));
}

double softplus(double x, const Unary&) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

struct Entry {
  UnaryKind kind;
  std::string_view name;
  std::string_view summary;
  double (*function)(double x, const Unary& op);
  double flops;     ///< per element. Exp, log, tanh, erf, sqrt and a division count 1
  double ulps;      ///< of the error bound
  double absolute;  ///< of the error bound: where a formula cancels near 0
};

using enum UnaryKind;

constexpr std::array kEntries = {
    Entry{Relu, "Relu", "y = max(x, 0)", [](double x, const Unary&) { return x < 0 ? 0 : x; }, 1, 0,
          0},
    Entry{LeakyRelu, "LeakyRelu", "y = x > 0 ? x : alpha x",
          [](double x, const Unary& op) { return x > 0 ? x : double{op.alpha} * x; }, 1, 2, 0},
    Entry{Sigmoid, "Sigmoid", "y = 1 / (1 + exp(-x))",
          [](double x, const Unary&) { return 1 / (1 + std::exp(-x)); }, 4, 8, 0x1p-24},
    Entry{Tanh, "Tanh", "y = tanh x", [](double x, const Unary&) { return std::tanh(x); }, 1, 8,
          0x1p-23},
    Entry{Gelu, "Gelu",
          "y = x / 2 (1 + erf(x / sqrt(2))), or with approximate=tanh "
          "y = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))",
          gelu, 5, 8, 0x1p-21},
    Entry{Exp, "Exp", "y = e^x", [](double x, const Unary&) { return std::exp(x); }, 1, 8, 0},
    Entry{Log, "Log", "y = natural logarithm of x",
          [](double x, const Unary&) { return std::log(x); }, 1, 8, 0x1p-24},
    Entry{Sqrt, "Sqrt", "y = square root of x", [](double x, const Unary&) { return std::sqrt(x); },
          1, 4, 0},
    Entry{Reciprocal, "Reciprocal", "y = 1 / x", [](double x, const Unary&) { return 1 / x; }, 1, 4,
          0},
    Entry{Neg, "Neg", "y = -x", [](double x, const Unary&) { return -x; }, 1, 0, 0},
    Entry{Abs, "Abs", "y = |x|", [](double x, const Unary&) { return std::abs(x); }, 1, 0, 0},
    Entry{Sign, "Sign", "y = the sign of x: -1, 0, 1 or NaN",
          [](double x, const Unary&) { return std::isnan(x) ? x : (x > 0) - (x < 0); }, 1, 0, 0},
    Entry{Erf, "Erf", "y = 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x",
          [](double x, const Unary&) { return std::erf(x); }, 1, 8, 0x1p-23},
    Entry{Clip, "Clip", "y = min(max(x, min), max)",
          [](double x,
             const Unary& op) { return std::min(std::max(x, double{op.min}), double{op.max}); },
          2, 2, 0},
    Entry{Elu, "Elu", "y = x > 0 ? x : alpha (e^x - 1)",
          [](double x, const Unary& op) { return x > 0 ? x : double{op.alpha} * std::expm1(x); }, 3,
          8, 0},
    Entry{Softplus, "Softplus", "y = log(1 + e^x)", softplus, 3, 8, 0},
    Entry{Softsign, "Softsign", "y = x / (1 + |x|)",
          [](double x, const Unary&) { return x / (1 + std::abs(x)); }, 2, 4, 0},
    Entry{Not, "Not", "y = not x", [](double x, const Unary&) -> double { return x == 0; }, 0, 0,
          0}};

constexpr auto kKinds = [] {
  std::array<UnaryKind, kEntries.size()> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = kEntries[i].kind;
  return kinds;
}();

static_assert(std::ranges::is_sorted(kKinds), "the table is indexed by the enum");

const Entry& entry(UnaryKind kind) { return kEntries[static_cast<std::size_t>(kind)]; }

bool takes_integers(UnaryKind kind) {
  return kind == Neg || kind == Abs || kind == Sign || kind == Relu || kind == Clip;
}

constexpr DType kBoolOnly[] = {DType::Bool};
constexpr DType kFloats[] = {DType::F32, DType::BF16, DType::F16};
constexpr DType kNumbers[] = {DType::F32, DType::BF16, DType::F16,
                              DType::I8,  DType::I32,  DType::I64};

std::span<const DType> dtypes(UnaryKind kind) {
  if (kind == Not) return kBoolOnly;
  if (takes_integers(kind)) return kNumbers;
  return kFloats;
}

/// -2^63 has no positive partner in i64: its negation wraps to itself.
std::int64_t wrap_int64(double value) {
  return value >= 0x1p63 ? std::numeric_limits<std::int64_t>::min()
                         : static_cast<std::int64_t>(value);
}

/// d gelu / dx = Phi(x) + x phi(x), the normal distribution and its density.
ValueId gelu_slope(const Formula& f, ValueId x) {
  const auto erf = f.apply(Erf, f.mul(x, 1 / std::numbers::sqrt2));
  const auto distribution = f.mul(f.add(erf, 1.0), 0.5);
  const auto bell = f.apply(Exp, f.mul(f.mul(x, x), -0.5));
  const auto density = f.mul(bell, 0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
  return f.add(distribution, f.mul(x, density));
}

/// With t = tanh(u): (1 + t) / 2 + x / 2 (1 - t^2) du/dx. Beyond |x| = 100, where 1 - t^2 is 0, the
/// square is bounded: 0 times infinity would be NaN.
ValueId gelu_tanh_slope(const Formula& f, ValueId x) {
  const auto square = f.apply(BinaryKind::Min, f.mul(x, x), 1e4);
  const auto inner = f.mul(x, f.add(f.mul(square, kTanhScale * kTanhCubic), kTanhScale));
  const auto t = f.apply(Tanh, inner);
  const auto inner_slope = f.add(f.mul(square, 3 * kTanhScale * kTanhCubic), kTanhScale);
  const auto tanh_slope = f.sub(1.0, f.mul(t, t));
  const auto rise = f.mul(f.mul(f.mul(x, 0.5), tanh_slope), inner_slope);
  return f.add(f.mul(f.add(t, 1.0), 0.5), rise);
}

ValueId inside_mask(const Unary& op, const Formula& f, ValueId x) {
  return f.apply(BinaryKind::And, f.apply(BinaryKind::GreaterOrEqual, x, double{op.min}),
                 f.apply(BinaryKind::LessOrEqual, x, double{op.max}));
}

/// alpha e^x for x <= 0. Above 0 it is bounded: its infinity would make NaN of the 0 that it meets.
ValueId elu_slope_below(const Unary& op, const Formula& f, ValueId x) {
  return f.mul(f.apply(Exp, f.apply(BinaryKind::Min, x, 0.0)), double{op.alpha});
}

/// 1 / (1 + |x|)^2.
ValueId softsign_slope(const Formula& f, ValueId x) {
  const auto root = f.apply(Reciprocal, f.add(f.apply(Abs, x), 1.0));
  return f.mul(root, root);
}

ValueId input_gradient(const Unary& op, const Formula& f, ValueId x, ValueId y, ValueId dy) {
  switch (op.kind) {
    case Relu:
      return f.apply(BinaryKind::ReluGradient, dy, y);
    case LeakyRelu:
      return f.select(f.apply(BinaryKind::Greater, x, 0.0), dy, f.mul(dy, double{op.alpha}));
    case Sigmoid:
      return f.apply(BinaryKind::SigmoidGradient, dy, y);
    case Tanh:
      return f.apply(BinaryKind::TanhGradient, dy, y);
    case Gelu:
      return f.mul(dy, op.approximate == "none" ? gelu_slope(f, x) : gelu_tanh_slope(f, x));
    case Exp:
      return f.mul(dy, y);
    case Log:
      return f.div(dy, x);
    case Sqrt:
      return f.div(f.mul(dy, 0.5), y);
    case Reciprocal:
      return f.apply(Neg, f.mul(dy, f.mul(y, y)));
    case Neg:
      return f.apply(Neg, dy);
    case Abs:
      return f.mul(dy, f.apply(Sign, x));
    case Erf:
      return f.mul(dy,
                   f.mul(f.apply(Exp, f.apply(Neg, f.mul(x, x))), 2 * std::numbers::inv_sqrtpi));
    case Clip:
      return f.select(inside_mask(op, f, x), dy, 0.0);
    case Elu:
      return f.select(f.apply(BinaryKind::Greater, x, 0.0), dy,
                      f.mul(dy, elu_slope_below(op, f, x)));
    case Softplus:
      return f.mul(dy, f.apply(Sigmoid, x));
    case Softsign:
      return f.mul(dy, softsign_slope(f, x));
    case Sign:
    case Not:
      break;
  }
  return {};
}

}  // namespace

std::span<const UnaryKind> all_unary_kinds() { return kKinds; }

std::string_view Unary::name() const { return entry(kind).name; }
std::string_view Unary::summary() const { return entry(kind).summary; }

std::vector<TensorSpec> Unary::infer(Specs inputs) const {
  require_inputs(name(), inputs, 1, 1);
  require_dtype_among(name(), inputs, 0, dtypes(kind));
  if (kind == Gelu && approximate != "none" && approximate != "tanh") {
    throw_invalid(name(), fmt::format("approximate is \"{}\"; use none or tanh", approximate));
  }
  const bool whole = std::floor(min) == min && std::floor(max) == max;
  if (kind == Clip && !is_floating(inputs[0].dtype) && !whole) {
    throw_invalid(name(), fmt::format("min {} and max {} must be whole numbers for {}", min, max,
                                      to_string(inputs[0].dtype)));
  }
  return {inputs[0]};
}

bool Unary::differentiable() const { return kind != Not; }

std::vector<ValueId> Unary::gradient(const GradientContext& context) const {
  const auto dy = context.output_gradients[0];
  if (!context.wanted[0] || !dy.valid()) return {ValueId{}};
  return {
      input_gradient(*this, Formula(context.emitter), context.inputs[0], context.outputs[0], dy)};
}

double Unary::flops(Specs, Specs outputs) const {
  const auto elements = static_cast<double>(outputs[0].shape.elements());
  return entry(kind).flops * elements;
}

std::vector<Sharding> Unary::shardings(Specs inputs, Specs outputs, std::int64_t) const {
  return elementwise_shardings(inputs, outputs);
}

void Unary::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto& [spec, x] = inputs[0];
  auto& y = outputs[0].values;
  const bool wraps = !is_floating(spec.dtype) && (kind == Neg || kind == Abs);
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = entry(kind).function(x[i], *this);
    if (wraps) y[i] = wrap_integer(spec.dtype, wrap_int64(y[i]));
  }
}

ErrorBound Unary::error_bound(Specs inputs) const {
  return elementwise_bound(inputs[0].dtype, entry(kind).ulps, entry(kind).absolute);
}

void add_unary_ops(OpList& list) {
  for (const auto kind : all_unary_kinds()) list.push_back(make_op(Unary(kind)));
}

}  // namespace triptych
