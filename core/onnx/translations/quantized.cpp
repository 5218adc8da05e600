// Quantised operators. Products of 8 bits are summed in int32, which is exact. Unsigned numbers are
// shifted into int8, and sums of the operands correct for zero points and padding. Requantisation
// is ONNX's, in float32.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/onnx/element_type.h"
#include "core/onnx/node_import.h"
#include "core/onnx/translations/rounding.h"
#include "core/onnx/translations/window.h"
#include "core/ops/expand.h"
#include "core/ops/quantized_conv.h"
#include "core/ops/reduce.h"

namespace triptych::onnx {
namespace {

bool is_small(DType dtype) { return dtype == DType::I8 || dtype == DType::U8; }

/// Throws IoError when a scale that is known is not finite and positive.
void require_scale(const NodeImport& n, std::size_t input) {
  const auto known = n.graph.known(n.in(input));
  if (known == nullptr) return;
  const auto sound = [](double scale) { return std::isfinite(scale) && scale > 0; };
  if (!std::ranges::all_of(to_doubles(*known), sound))
    n.broken("a scale is not finite and positive");
}

/// A scale or zero point, one number or one per index of `axis`, as it broadcasts to x.
ValueId along(const NodeImport& n, ValueId value, const Shape& x, std::int64_t axis) {
  const Shape shape = n.graph.spec(value).shape;
  if (shape.elements() == 1) return n.reshape(value, {});
  axis = normalize_axis(axis, x.rank());
  if (shape != Shape{x[axis]}) n.refuse("scales and zero points of other shapes");
  Dims dims(static_cast<std::size_t>(x.rank()), 1);
  dims[static_cast<std::size_t>(axis)] = x[axis];
  return n.reshape(value, std::move(dims));
}

/// x / scale, to the nearest whole number, + zero point, cut to the range of `dtype`.
ValueId quantized(const NodeImport& n, ValueId x, ValueId scale, ValueId zero, DType dtype) {
  auto y = round_to_even(n, n.f.div(x, scale));
  if (zero.valid()) y = n.f.add(y, n.cast(zero, DType::F32));
  Unary clip(UnaryKind::Clip);
  clip.min = dtype == DType::U8 ? 0 : -128;
  clip.max = dtype == DType::U8 ? 255 : 127;
  return n.cast(n.apply(make_op(clip), {y}), dtype);
}

std::vector<ValueId> quantize_linear(NodeImport& n) {
  const auto axis = n.integer("axis", 1);
  n.ignore("saturate");  // of 8-bit floats
  auto dtype = DType::U8;
  if (n.integer("output_dtype", 0) != 0) {
    dtype = require_element_type(n.integer("output_dtype", 0), "attribute output_dtype").dtype;
  }
  if (n.has(2)) dtype = n.dtype(2);
  n.refuse_unless(is_small(dtype), fmt::format("to {}", to_string(dtype)));
  require_scale(n, 1);
  const Shape x = n.shape(0);
  const auto scale = along(n, n.f32(1), x, axis);
  const auto zero = n.has(2) ? along(n, n.in(2), x, axis) : ValueId{};
  return {quantized(n, n.f32(0), scale, zero, dtype)};
}

std::vector<ValueId> dequantize_linear(NodeImport& n) {
  const auto axis = n.integer("axis", 1);
  require_scale(n, 1);
  const Shape shape = n.shape(0);
  auto x = n.cast(n.in(0), DType::I32);
  if (n.has(2)) x = n.f.sub(x, n.cast(along(n, n.in(2), shape, axis), DType::I32));
  const auto y = n.f.mul(n.cast(x, DType::F32), along(n, n.f32(1), shape, axis));
  return {n.like(1, y)};
}

/// The range of x with 0 in it becomes 0 to 255.
std::vector<ValueId> dynamic_quantize_linear(NodeImport& n) {
  const auto x = n.f32(0);
  const auto bound = [&](ReduceKind kind, BinaryKind with) {
    return n.f.apply(with, n.apply(make_op(Reduce(kind, {}, false)), {x}), 0.0);
  };
  const auto low = bound(ReduceKind::Min, BinaryKind::Min);
  const auto high = bound(ReduceKind::Max, BinaryKind::Max);
  const auto scale = n.f.div(n.f.sub(high, low), 255.0);
  const auto zero = quantized(n, n.f.apply(UnaryKind::Neg, low), scale, {}, DType::U8);
  return {quantized(n, x, scale, zero, DType::U8), scale, zero};
}

/// An operand of 8 bits as int8, and its zero point there as int32. None: it is 0.
struct Shifted {
  ValueId value, zero;
};

Shifted shifted(const NodeImport& n, ValueId value, ValueId zero) {
  const auto dtype = n.graph.spec(value).dtype;
  n.refuse_unless(is_small(dtype), "operands that are not of 8 bits");
  const double offset = dtype == DType::U8 ? 128 : 0;
  Shifted result{value, {}};
  if (offset != 0) {
    result.value = n.cast(n.f.sub(n.cast(value, DType::I32), offset), DType::I8);
  }
  if (zero.valid()) result.zero = n.cast(zero, DType::I32);
  if (!result.zero.valid() && offset != 0) result.zero = n.filled({DType::I32, Shape{}}, 0);
  if (offset != 0) result.zero = n.f.sub(result.zero, offset);
  const auto known = result.zero.valid() ? n.graph.known(result.zero) : nullptr;
  if (known != nullptr &&
      std::ranges::all_of(to_doubles(*known), [](double z) { return z == 0; })) {
    result.zero = {};
  }
  return result;
}

/// Sums of (x - its zero point) (w - its zero points, one or [O, 1, 1]). Padding counts for
/// nothing.
ValueId integer_sums(const NodeImport& n, const QuantizedConv& op, const Shifted& x,
                     const Shifted& w) {
  const auto convolve = [&](ValueId a, ValueId b) { return n.apply(make_op(op), {a, b}); };
  Dims x_shape = n.graph.spec(x.value).shape.dims();
  const Dims w_shape = n.graph.spec(w.value).shape.dims();
  x_shape[0] = 1;
  const auto ones_x = [&] { return n.filled({DType::I8, Shape(x_shape)}, 1); };
  const auto ones_w = [&] { return n.filled({DType::I8, Shape(w_shape)}, 1); };
  auto sums = convolve(x.value, w.value);
  if (x.zero.valid()) sums = n.f.sub(sums, n.f.mul(x.zero, convolve(ones_x(), w.value)));
  if (w.zero.valid()) sums = n.f.sub(sums, n.f.mul(w.zero, convolve(x.value, ones_w())));
  if (x.zero.valid() && w.zero.valid()) {
    sums = n.f.add(sums, n.f.mul(n.f.mul(x.zero, w.zero), convolve(ones_x(), ones_w())));
  }
  return sums;
}

/// A zero point or scale of one number, or of one per output channel: [O, 1, 1].
ValueId per_channel(const NodeImport& n, ValueId value, std::int64_t channels) {
  const Shape shape = n.graph.spec(value).shape;
  if (shape.elements() == 1) return n.reshape(value, {});
  if (shape != Shape{channels}) n.refuse("scales and zero points of other shapes");
  return n.reshape(value, {channels, 1, 1});
}

ValueId optional(const NodeImport& n, std::size_t input) {
  return n.has(input) ? n.in(input) : ValueId{};
}

QuantizedConv conv_of(NodeImport& n, std::size_t x, std::size_t w) {
  QuantizedConv op;
  static_cast<WindowAttributes&>(op) = window_attributes(n);
  op.group = n.integer("group", 1);
  n.refuse_unless(n.rank(x) == 4 && n.rank(w) == 4, "what is no image");
  if (n.shape(x).elements() == 0 || n.shape(w).elements() == 0) n.broken("an operand is empty");
  return op;
}

std::vector<ValueId> conv_integer(NodeImport& n) {
  const auto op = conv_of(n, 0, 1);
  const auto zero = n.has(3) ? per_channel(n, n.in(3), n.shape(1)[0]) : ValueId{};
  const auto x_zero = n.has(2) ? per_channel(n, n.in(2), 1) : ValueId{};
  return {integer_sums(n, op, shifted(n, n.in(0), x_zero), shifted(n, n.in(1), zero))};
}

/// sums * (a's scale * b's scale / y's scale) in ONNX's output type.
ValueId requantized(const NodeImport& n, ValueId sums, ValueId scale, std::size_t y_scale,
                    std::size_t y_zero) {
  const auto factor = n.f.div(scale, n.reshape(n.f32(y_scale), {}));
  const auto zero = n.reshape(n.in(y_zero), {});
  const auto one = n.filled({DType::F32, Shape{}}, 1);
  n.refuse_unless(is_small(n.dtype(y_zero)), "a result that is not of 8 bits");
  return quantized(n, n.f.mul(n.cast(sums, DType::F32), factor), one, zero, n.dtype(y_zero));
}

std::vector<ValueId> qlinear_conv(NodeImport& n) {
  const auto op = conv_of(n, 0, 3);
  for (const std::size_t scale : {1, 4, 6}) require_scale(n, scale);
  const auto channels = n.shape(3)[0];
  const auto x = shifted(n, n.in(0), n.reshape(n.in(2), {}));
  const auto w = shifted(n, n.in(3), per_channel(n, n.in(5), channels));
  auto sums = integer_sums(n, op, x, w);
  if (const auto bias = optional(n, 8); bias.valid())
    sums = n.f.add(sums, per_channel(n, bias, channels));
  const auto scale = n.f.mul(n.reshape(n.f32(1), {}), per_channel(n, n.f32(4), channels));
  return {requantized(n, sums, scale, 6, 7)};
}

/// Products of matrices as convolutions of 1 x 1: a's rows are pixels, the sum runs over channels.
/// A stack of b's matrices is as many groups.
ValueId integer_product(const NodeImport& n, const Shifted& a, const Shifted& b) {
  const Shape s = n.graph.spec(a.value).shape, t = n.graph.spec(b.value).shape;
  if (s.rank() < 2 || t.rank() < 2 || s.elements() == 0 || t.elements() == 0 ||
      s.dim(-1) != t.dim(-2)) {
    n.broken("its operands do not fit");
  }
  const auto rows = s.dim(-2), k = s.dim(-1), columns = t.dim(-1);
  const auto stack = s.elements() / (rows * k), matrices = t.elements() / (k * columns);
  n.refuse_unless(matrices == 1 || matrices == stack, "operands that broadcast");
  QuantizedConv op;
  op.group = matrices;
  const auto pixels = n.transpose(n.reshape(a.value, {stack, rows, k}), {0, 2, 1});
  const auto weights = n.transpose(n.reshape(b.value, {matrices, k, columns}), {0, 2, 1});
  const auto sums =
      integer_sums(n, op, {n.reshape(pixels, {stack / matrices, matrices * k, rows, 1}), a.zero},
                   {n.reshape(weights, {matrices * columns, k, 1, 1}), b.zero});
  Dims dims = s.rank() >= t.rank() ? s.dims() : t.dims();
  dims[dims.size() - 2] = rows;
  dims.back() = columns;
  return n.reshape(n.transpose(n.reshape(sums, {stack, columns, rows}), {0, 2, 1}), dims);
}

ValueId one_zero(const NodeImport& n, std::size_t input) {
  if (!n.has(input)) return {};
  n.refuse_unless(n.shape(input).elements() == 1, "zero points of rows and columns");
  return n.reshape(n.in(input), {});
}

std::vector<ValueId> matmul_integer(NodeImport& n) {
  return {
      integer_product(n, shifted(n, n.in(0), one_zero(n, 2)), shifted(n, n.in(1), one_zero(n, 3)))};
}

std::vector<ValueId> qlinear_matmul(NodeImport& n) {
  for (const std::size_t scale : {1, 4, 6}) require_scale(n, scale);
  const auto a = shifted(n, n.in(0), one_zero(n, 2)), b = shifted(n, n.in(3), one_zero(n, 5));
  const auto one = [&](std::size_t input) {
    n.refuse_unless(n.shape(input).elements() == 1, "scales of rows and columns");
    return n.reshape(n.f32(input), {});
  };
  return {requantized(n, integer_product(n, a, b), n.f.mul(one(1), one(4)), 6, 7)};
}

}  // namespace

void add_quantized_translations(TranslationList& list) {
  list.insert(list.end(), {{"QuantizeLinear", quantize_linear},
                           {"DequantizeLinear", dequantize_linear},
                           {"DynamicQuantizeLinear", dynamic_quantize_linear},
                           {"ConvInteger", conv_integer},
                           {"QLinearConv", qlinear_conv},
                           {"MatMulInteger", matmul_integer},
                           {"QLinearMatMul", qlinear_matmul}});
}

}  // namespace triptych::onnx
