// SPDX-License-Identifier: Apache-2.0
#include "core/ops/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "core/ops/axes.h"

namespace triptych {
namespace {

void require_one_of(std::string_view attribute, const std::string& value,
                    std::initializer_list<std::string_view> allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
  throw_invalid("Resize", fmt::format("{} is '{}'; use one of {}", attribute, value,
                                      fmt::join(allowed, ", ")));
}

void check_attributes(const Resize& op, const Shape& x) {
  require_one_of("mode", op.mode, {"nearest", "linear", "cubic"});
  require_one_of(
      "coordinate_transformation_mode", op.coordinate_transformation_mode,
      {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"});
  require_one_of("nearest_mode", op.nearest_mode,
                 {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  if (op.scales.empty() == op.sizes.empty() && x.rank() > 0) {
    throw_invalid("Resize", "takes either scales or sizes");
  }
  const auto given = std::max(op.scales.size(), op.sizes.size());
  if (given != static_cast<std::size_t>(x.rank())) {
    throw_invalid("Resize",
                  fmt::format("{} scales or sizes for x of rank {}; give one per axis, 1 or x's "
                              "size for those that stay",
                              given, x.rank()));
  }
}

/// floor(size * scale) in float32, as exporters compute it.
std::int64_t scaled_size(std::int64_t size, float scale) {
  if (!(scale > 0) || !std::isfinite(scale)) {
    throw_invalid("Resize", fmt::format("scale {} is not a positive number", scale));
  }
  const float scaled = std::floor(static_cast<float>(size) * scale);
  if (scaled >= 0x1p62F) throw_invalid("Resize", fmt::format("scale {} overflows", scale));
  return static_cast<std::int64_t>(scaled);
}

Shape resized_shape(const Resize& op, const Shape& x) {
  check_attributes(op, x);
  Dims dims = op.sizes;
  for (std::size_t a = 0; a < op.scales.size(); ++a) {
    dims.push_back(scaled_size(x.dims()[a], op.scales[a]));
  }
  for (std::size_t a = 0; a < dims.size(); ++a) {
    if (x.dims()[a] != 0 || dims[a] == 0) continue;
    throw_invalid("Resize", fmt::format("axis {} of x {} is empty and cannot grow to {}", a,
                                        to_string(x), dims[a]));
  }
  Shape shape(std::move(dims));
  for (std::size_t a = 0; a < shape.dims().size(); ++a) {
    const bool stays = shape.dims()[a] == x.dims()[a] && shape.elements() > 0;
    if (!stays) require_listable("Resize", a, shape.dims()[a]);
  }
  return shape;
}

/// One axis as the coordinate rule sees it. The scale is `numerator` over `denominator`: of whole
/// sizes the coordinate then takes one rounding, so that ties are met exactly.
struct Axis {
  std::int64_t input = 0, output = 0;
  double numerator = 1, denominator = 1;
};

/// The place along x, in units of its elements, that output index `i` reads.
double coordinate(const std::string& rule, const Axis& axis, std::int64_t i) {
  const auto position = static_cast<double>(i);
  if (rule == "asymmetric") return position * axis.denominator / axis.numerator;
  if (rule == "tf_half_pixel_for_nn") return (position + 0.5) * axis.denominator / axis.numerator;
  if (rule != "half_pixel" && axis.output == 1) return 0;
  if (rule == "align_corners") {
    // ONNX counts the corners of the size before it is cut to a whole number.
    const auto whole = static_cast<double>(axis.input) * axis.numerator / axis.denominator;
    return position * static_cast<double>(axis.input - 1) / (whole - 1);
  }
  return (position + 0.5) * axis.denominator / axis.numerator - 0.5;
}

double round_nearest(const std::string& rule, double x) {
  if (rule == "floor") return std::floor(x);
  if (rule == "ceil") return std::ceil(x);
  return rule == "round_prefer_floor" ? std::ceil(x - 0.5) : std::floor(x + 0.5);
}

/// Every axis of `op` for input shape `x`.
std::vector<Axis> axes_of(const Resize& op, const Shape& x) {
  const Shape y = resized_shape(op, x);
  std::vector<Axis> axes;
  for (std::int64_t a = 0; a < x.rank(); ++a) {
    Axis axis{x[a], y[a], static_cast<double>(y[a]), static_cast<double>(x[a])};
    if (op.sizes.empty()) {
      axis.numerator = op.scales[static_cast<std::size_t>(a)];
      axis.denominator = 1;
    }
    axes.push_back(axis);
  }
  return axes;
}

/// The place cut to the input, and the part of it behind the element before.
std::pair<std::int64_t, double> cut(double place, const Axis& axis) {
  place = std::clamp(place, 0.0, static_cast<double>(axis.input - 1));
  const auto low = static_cast<std::int64_t>(place);
  return {low, place - static_cast<double>(low)};
}

void add_linear_taps(AxisTaps& list, double place, const Axis& axis) {
  const auto [low, rest] = cut(place, axis);
  const auto weight = static_cast<float>(rest);
  if (weight != 1) list.add(low, 1 - weight);
  if (weight != 0) list.add(std::min(low + 1, axis.input - 1), weight);
}

/// Absolute part of the error of cubic, which has negative weights: they make a sum smaller than
/// its terms.
constexpr double kCubicRounding = 1e-6;

/// Weights of the four neighbours of a place `rest` behind the second of them.
std::array<double, 4> cubic_weights(double rest, double a) {
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  return {far(1 + rest), near(rest), near(1 - rest), far(2 - rest)};
}

void add_cubic_taps(AxisTaps& list, const Resize& op, double place, const Axis& axis) {
  const double before = std::floor(place);
  auto weights = cubic_weights(place - before, op.cubic_coeff_a);
  const auto first = static_cast<std::int64_t>(before) - 1;
  double sum = 1;
  if (op.exclude_outside) {
    sum = 0;
    for (std::int64_t i = 0; i < 4; ++i) {
      auto& weight = weights[static_cast<std::size_t>(i)];
      if (first + i < 0 || first + i >= axis.input) weight = 0;
      sum += weight;
    }
  }
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto weight = static_cast<float>(weights[static_cast<std::size_t>(i)] / sum);
    const auto index = std::clamp<std::int64_t>(first + i, 0, axis.input - 1);
    if (weight != 0) list.add(index, weight);
  }
}

}  // namespace

std::vector<Dims> nearest_sources(const Resize& op, const Shape& x) {
  std::vector<Dims> sources;
  for (const auto& axis : axes_of(op, x)) {
    auto& list = sources.emplace_back();
    for (std::int64_t i = 0; i < axis.output; ++i) {
      const auto place = coordinate(op.coordinate_transformation_mode, axis, i);
      list.push_back(cut(round_nearest(op.nearest_mode, place), axis).first);
    }
  }
  return sources;
}

std::vector<AxisTaps> resize_taps(const Resize& op, const Shape& x) {
  std::vector<AxisTaps> taps;
  if (op.mode == "nearest") {
    for (const auto& sources : nearest_sources(op, x)) taps.push_back(copy_taps(sources));
    return taps;
  }
  for (const auto& axis : axes_of(op, x)) {
    auto& list = taps.emplace_back();
    for (std::int64_t i = 0; i < axis.output; ++i) {
      const auto place = coordinate(op.coordinate_transformation_mode, axis, i);
      if (op.mode == "linear") {
        add_linear_taps(list, place, axis);
      } else {
        add_cubic_taps(list, op, place, axis);
      }
      list.next();
    }
  }
  return taps;
}

std::vector<TensorSpec> Resize::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  const auto& x = inputs[0];
  if (mode != "nearest") require_dtype(kName, inputs, 0, DType::F32);
  return {{x.dtype, resized_shape(*this, x.shape)}};
}

std::vector<ValueId> Resize::gradient(const GradientContext& context) const {
  ResizeGradient back;
  back.input_shape = context.emitter.spec(context.inputs[0]).shape.dims();
  back.scales = scales;
  back.sizes = sizes;
  back.mode = mode;
  back.coordinate_transformation_mode = coordinate_transformation_mode;
  back.nearest_mode = nearest_mode;
  back.cubic_coeff_a = cubic_coeff_a;
  back.exclude_outside = exclude_outside;
  return {context.emitter.emit_one(make_op(back), {context.output_gradients[0]})};
}

void Resize::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const Shape& x = inputs[0].spec.shape;
  apply_taps(resize_taps(*this, x), x, inputs[0].values, outputs[0].values);
}

/// Each tap adds one rounding of its product and each axis one of the weight.
ErrorBound Resize::error_bound(Specs inputs) const {
  const Shape& x = inputs[0].shape;
  return {.terms = most_terms(resize_taps(*this, x)) + static_cast<double>(x.rank()),
          .absolute = mode == "cubic" ? kCubicRounding : 0};
}

Resize ResizeGradient::forward() const {
  Resize resize;
  resize.scales = scales;
  resize.sizes = sizes;
  resize.mode = mode;
  resize.coordinate_transformation_mode = coordinate_transformation_mode;
  resize.nearest_mode = nearest_mode;
  resize.cubic_coeff_a = cubic_coeff_a;
  resize.exclude_outside = exclude_outside;
  return resize;
}

std::vector<AxisTaps> ResizeGradient::taps() const {
  std::vector<AxisTaps> axes;
  for (const auto& taps : resize_taps(forward(), Shape(input_shape))) {
    axes.push_back(transposed(taps, input_shape[axes.size()]));
  }
  return axes;
}

std::vector<TensorSpec> ResizeGradient::infer(Specs inputs) const {
  require_inputs(kName, inputs, 1, 1);
  require_dtype(kName, inputs, 0, DType::F32);
  const Shape x(input_shape);
  require_shape(kName, inputs, 0, resized_shape(forward(), x));
  return {{DType::F32, x}};
}

void ResizeGradient::reference(std::span<const RefTensor> inputs,
                               std::span<RefTensor> outputs) const {
  const Shape& x = outputs[0].spec.shape;
  scatter_taps(resize_taps(forward(), x), x, inputs[0].values, outputs[0].values);
}

ErrorBound ResizeGradient::error_bound(Specs) const {
  return {.terms = most_terms(taps()) + static_cast<double>(input_shape.size()),
          .absolute = mode == "cubic" ? kCubicRounding : 0};
}

void add_resize_ops(OpList& list) {
  list.push_back(make_op(Resize{}));
  list.push_back(make_op(ResizeGradient{}));
}

}  // namespace triptych
