// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/ops/elementwise.h"
#include "core/ops/formula.h"
#include "core/ops/sharding.h"

namespace triptych {
namespace {

enum class Family { Arithmetic, Comparison, Logic, Gradient };

struct Entry {
  BinaryKind kind;
  Family family;
  std::string_view name;
  std::string_view summary;
  double (*function)(double a, double b);
  double flops;     ///< per element
  double ulps;      ///< of the error bound
  double absolute;  ///< of the error bound, for a gradient dy of size 1
};

using enum BinaryKind;
using enum Family;

constexpr std::array kEntries = {
    Entry{Add, Arithmetic, "Add", "y = a + b", [](double a, double b) { return a + b; }, 1, 2, 0},
    Entry{Sub, Arithmetic, "Sub", "y = a - b", [](double a, double b) { return a - b; }, 1, 2, 0},
    Entry{Mul, Arithmetic, "Mul", "y = a b", [](double a, double b) { return a * b; }, 1, 2, 0},
    Entry{Div, Arithmetic, "Div", "y = a / b; integers truncate and x / 0 = 0",
          [](double a, double b) { return a / b; }, 1, 4, 0},
    Entry{Pow, Arithmetic, "Pow", "y = a^b", [](double a, double b) { return std::pow(a, b); }, 1,
          16, 0},
    Entry{Min, Arithmetic, "Min", "y = min(a, b)",
          [](double a, double b) { return b < a || std::isnan(b) ? b : a; }, 1, 0, 0},
    Entry{Max, Arithmetic, "Max", "y = max(a, b)",
          [](double a, double b) { return b > a || std::isnan(b) ? b : a; }, 1, 0, 0},
    Entry{Equal, Comparison, "Equal", "y = a == b",
          [](double a, double b) -> double { return a == b; }, 1, 0, 0},
    Entry{Less, Comparison, "Less", "y = a < b", [](double a, double b) -> double { return a < b; },
          1, 0, 0},
    Entry{LessOrEqual, Comparison, "LessOrEqual", "y = a <= b",
          [](double a, double b) -> double { return a <= b; }, 1, 0, 0},
    Entry{Greater, Comparison, "Greater", "y = a > b",
          [](double a, double b) -> double { return a > b; }, 1, 0, 0},
    Entry{GreaterOrEqual, Comparison, "GreaterOrEqual", "y = a >= b",
          [](double a, double b) -> double { return a >= b; }, 1, 0, 0},
    Entry{And, Logic, "And", "y = a and b",
          [](double a, double b) -> double { return a != 0 && b != 0; }, 0, 0, 0},
    Entry{Or, Logic, "Or", "y = a or b",
          [](double a, double b) -> double { return a != 0 || b != 0; }, 0, 0, 0},
    Entry{ReluGradient, Gradient, "ReluGradient", "dx = y > 0 ? dy : 0",
          [](double dy, double y) { return y > 0 ? dy : 0; }, 1, 0, 0},
    Entry{SigmoidGradient, Gradient, "SigmoidGradient", "dx = dy y (1 - y)",
          [](double dy, double y) { return dy * y * (1 - y); }, 3, 6, 0x1p-24},
    Entry{TanhGradient, Gradient, "TanhGradient", "dx = dy (1 - y^2)",
          [](double dy, double y) { return dy * (1 - y * y); }, 3, 6, 0x1p-22}};

constexpr auto kKinds = [] {
  std::array<BinaryKind, kEntries.size()> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = kEntries[i].kind;
  return kinds;
}();

static_assert(std::ranges::is_sorted(kKinds), "the table is indexed by the enum");

const Entry& entry(BinaryKind kind) { return kEntries[static_cast<std::size_t>(kind)]; }

constexpr DType kBoolOnly[] = {DType::Bool};
constexpr DType kF32Only[] = {DType::F32};
constexpr DType kNumbers[] = {DType::F32, DType::BF16, DType::F16, DType::I32, DType::I64};

std::span<const DType> dtypes(Family family) {
  if (family == Logic) return kBoolOnly;
  if (family == Gradient) return kF32Only;
  return kNumbers;
}

/// Wraps at 64 bits. A negative exponent truncates a^b to an integer.
std::int64_t integer_pow(std::int64_t a, std::int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  std::uint64_t result = 1;
  auto power = static_cast<std::uint64_t>(a);
  for (; b > 0; b /= 2, power *= power) {
    if (b % 2 == 1) result *= power;
  }
  return static_cast<std::int64_t>(result);
}

std::int64_t integer_arithmetic(BinaryKind kind, std::int64_t a, std::int64_t b) {
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  switch (kind) {
    case Add:
      return static_cast<std::int64_t>(ua + ub);
    case Sub:
      return static_cast<std::int64_t>(ua - ub);
    case Mul:
      return static_cast<std::int64_t>(ua * ub);
    case Div:
      if (b == -1) return static_cast<std::int64_t>(0 - ua);
      return b == 0 ? 0 : a / b;
    case Pow:
      return integer_pow(a, b);
    case Min:
      return std::min(a, b);
    default:
      return std::max(a, b);
  }
}

double apply(BinaryKind kind, DType dtype, double a, double b) {
  if (is_floating(dtype) || entry(kind).family != Arithmetic) return entry(kind).function(a, b);
  return wrap_integer(dtype, integer_arithmetic(kind, to_int64(a), to_int64(b)));
}

/// b a^(b - 1), and 0 for b = 0 and any a.
ValueId pow_slope_of_base(const Formula& f, ValueId a, ValueId b) {
  const auto lowered = f.select(f.apply(Equal, b, 0.0), 0.0, f.sub(b, 1.0));
  return f.mul(b, f.apply(Pow, a, lowered));
}

/// y log a, and 0 for a = 0 and b >= 0: y stays 0, or 1 for b = 0.
ValueId pow_slope_of_exponent(const Formula& f, ValueId a, ValueId b, ValueId y) {
  const auto stays = f.apply(And, f.apply(Equal, a, 0.0), f.apply(GreaterOrEqual, b, 0.0));
  return f.select(stays, 0.0, f.mul(y, f.apply(UnaryKind::Log, a)));
}

/// The gradient of operand 0 or 1 before it is summed over broadcast axes.
ValueId operand_gradient(BinaryKind kind, int operand, const Formula& f,
                         const GradientContext& context) {
  const auto a = context.inputs[0], b = context.inputs[1];
  const auto y = context.outputs[0], dy = context.output_gradients[0];
  const bool first = operand == 0;
  switch (kind) {
    case Add:
      return dy;
    case Sub:
      return first ? dy : f.apply(UnaryKind::Neg, dy);
    case Mul:
      return f.mul(dy, first ? b : a);
    case Div:
      return first ? f.div(dy, b) : f.apply(UnaryKind::Neg, f.div(f.mul(dy, y), b));
    case Pow:
      return f.mul(dy, first ? pow_slope_of_base(f, a, b) : pow_slope_of_exponent(f, a, b, y));
    case Min:
    case Max: {
      const auto mask = f.apply(kind == Min ? LessOrEqual : GreaterOrEqual, a, b);
      return first ? f.select(mask, dy, 0.0) : f.select(mask, 0.0, dy);
    }
    default:
      return {};
  }
}

}  // namespace

std::span<const BinaryKind> all_binary_kinds() { return kKinds; }

std::string_view Binary::name() const { return entry(kind).name; }
std::string_view Binary::summary() const { return entry(kind).summary; }

std::vector<TensorSpec> Binary::infer(Specs inputs) const {
  require_inputs(name(), inputs, 2, 2);
  const auto family = entry(kind).family;
  require_dtype_among(name(), inputs, 0, dtypes(family));
  require_same_dtype(name(), inputs, 0, 1);
  if (family == Gradient) require_shape(name(), inputs, 1, inputs[0].shape);
  auto shape =
      name_errors(name(), [&] { return broadcast_shapes(inputs[0].shape, inputs[1].shape); });
  return {{family == Comparison ? DType::Bool : inputs[0].dtype, std::move(shape)}};
}

bool Binary::differentiable() const { return entry(kind).family == Arithmetic; }

std::vector<ValueId> Binary::gradient(const GradientContext& context) const {
  std::vector<ValueId> gradients(2);
  if (!context.output_gradients[0].valid()) return gradients;
  const Formula f(context.emitter);
  for (const int operand : {0, 1}) {
    const auto i = static_cast<std::size_t>(operand);
    if (!context.wanted[i]) continue;
    const auto gradient = operand_gradient(kind, operand, f, context);
    gradients[i] = reduce_to_shape(context.emitter, gradient, f.shape(context.inputs[i]));
  }
  return gradients;
}

double Binary::flops(Specs, Specs outputs) const {
  const auto elements = static_cast<double>(outputs[0].shape.elements());
  return entry(kind).flops * elements;
}

std::vector<Sharding> Binary::shardings(Specs inputs, Specs outputs, std::int64_t) const {
  return elementwise_shardings(inputs, outputs);
}

void Binary::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const auto &a = inputs[0].values, &b = inputs[1].values;
  const auto dtype = inputs[0].spec.dtype;
  const auto& shape = outputs[0].spec.shape;
  const auto a_strides = broadcast_strides(inputs[0].spec.shape, shape);
  const auto b_strides = broadcast_strides(inputs[1].spec.shape, shape);
  std::size_t n = 0;
  for_each_index(shape, [&](const Dims& index) {
    outputs[0].values[n++] =
        apply(kind, dtype, a[static_cast<std::size_t>(flat_index(index, a_strides))],
              b[static_cast<std::size_t>(flat_index(index, b_strides))]);
  });
}

ErrorBound Binary::error_bound(Specs inputs) const {
  return elementwise_bound(inputs[0].dtype, entry(kind).ulps, entry(kind).absolute);
}

ValueId reduce_to_shape(OpEmitter& emitter, ValueId gradient, const Shape& shape) {
  const Formula f(emitter);
  const Shape from = f.shape(gradient);
  const auto leading = from.rank() - shape.rank();
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 0; axis < from.rank(); ++axis) {
    const bool broadcast = axis < leading || (shape[axis - leading] == 1 && from[axis] != 1);
    if (broadcast) axes.push_back(axis);
  }
  // Without axes a Reduce would sum over all of them.
  if (!axes.empty()) gradient = f.sum(gradient, axes);
  return f.reshape(gradient, shape);
}

void add_binary_ops(OpList& list) {
  for (const auto kind : all_binary_kinds()) list.push_back(make_op(Binary(kind)));
}

}  // namespace triptych
