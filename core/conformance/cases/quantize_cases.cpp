// Quantisation, and what the quantised convolutions have beside the problems of the floating ones.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantize.h"

#include <limits>

#include "core/conformance/op_case.h"
#include "core/ops/quantized_conv.h"

namespace triptych::conformance {
namespace {

constexpr double kLowest = std::numeric_limits<std::int32_t>::min();
constexpr double kHighest = std::numeric_limits<std::int32_t>::max();

void add_quantize_linear(std::vector<OpCase>& cases) {
  const auto op = make_op(QuantizeLinear{});
  const auto scale = [](double value) { return exactly(DType::F32, {}, {value}); };
  cases.push_back({"image", op, {f32({2, 3, 17, 19}, -3, 3), scale(0.021)}, false});
  cases.push_back({"scalar", op, {f32({}, -3, 3), scale(0.5)}, false});
  cases.push_back({"empty", op, {f32({0, 3}), scale(1)}, false});
  cases.push_back({"constant_scale", op, {f32({33}, -300, 300), scale(2.5)}, false});
  cases.back().inputs[1].constant = true;
  const auto infinity = std::numeric_limits<double>::infinity();
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  cases.push_back({"ties_to_even",
                   op,
                   {exactly(DType::F32, {12},
                            {0.25, 0.75, 1.25, -0.25, -0.75, -1.25, 63.25, 63.75, -63.75, -64.25,
                             0.2499, 0.2501}),
                    scale(0.5)},
                   false});
  cases.push_back(
      {"saturates",
       op,
       {exactly(DType::F32, {10},
                {127.4, 127.5, 128, -128.4, -128.6, 1e30, -1e30, infinity, -infinity, nan}),
        scale(1)},
       false});
}

void add_dequantize_linear(std::vector<OpCase>& cases) {
  DequantizeLinear op;
  const auto x = of(DType::I8, {2, 5, 3, 7}, -128, 127);
  const auto sums = of(DType::I32, {2, 5, 3, 7}, kLowest, kHighest);
  cases.push_back({"i8", make_op(op), {x, f32({}, 0.01, 0.02)}, false});
  cases.push_back({"i32", make_op(op), {sums, f32({}, 1e-9, 2e-9)}, false});
  cases.push_back({"i8_per_channel", make_op(op), {x, f32({5}, 0.01, 0.02)}, false});
  cases.push_back({"i32_per_channel", make_op(op), {sums, f32({5}, 1e-9, 2e-9)}, false});
  for (const std::int64_t axis : {0, -1}) {
    op.axis = axis;
    const Shape scales = {axis == 0 ? 2 : 7};
    cases.push_back(
        {axis == 0 ? "axis_0" : "last_axis", make_op(op), {sums, f32(scales, 1e-9, 2e-9)}, false});
  }
}

InputRule words(std::vector<double> values) {
  const auto count = std::ssize(values);
  return exactly(DType::I32, {count}, std::move(values));
}

/// 1x1 products whose sums, multipliers and shifts lie at the ends of their ranges.
template <class Op>
void add_extremes(std::vector<OpCase>& cases) {
  const Shape weights = {6, 6, 1, 1};
  const std::vector<InputRule> products = {of(DType::I8, {1, 6, 3, 5}, -128, 127),
                                           of(DType::I8, weights, -128, 127)};
  const auto with = [&](std::vector<InputRule> more, const std::string& activation = "") {
    Op op;
    op.activation = activation;
    auto inputs = products;
    inputs.insert(inputs.end(), more.begin(), more.end());
    return OpCase{"", make_op(op), std::move(inputs), false};
  };
  const auto bias = words({kHighest, kLowest, kHighest - 50000, 0, 7, kLowest + 50000});
  const auto multiplier = words({kHighest, kLowest, 1, 0, -5, 0x40000000});
  const auto shift = words({62, 31, 1, 17, 40, 35});
  const auto add = [&](const std::string& name, OpCase test) {
    test.name = name;
    cases.push_back(std::move(test));
  };
  add("sums_wrap", with({bias}));
  add("sums_wrap_relu", with({bias}, "relu"));
  add("extremes", with({bias, multiplier, shift}));
  add("extremes_relu", with({bias, multiplier, shift}, "relu"));
  add("shift_is_cut", with({words({0, 1, -1, 5, -5, 100}), words({1, 1, 1, 1, 3, 0x7FFFFFFF}),
                            words({0, -7, 63, 1000, kLowest, kHighest})}));
  // Halves go up, whatever the sign.
  add("halves",
      with({words({0, 1, 2, 3, 4, 5}), words({1, 1, 1, 1, 1, 1}), words({1, 1, 2, 3, 4, 8})}));
}

}  // namespace

void add_quantize_cases(std::vector<OpCase>& cases) {
  add_quantize_linear(cases);
  add_dequantize_linear(cases);
  add_extremes<QuantizedConv>(cases);
  add_extremes<QuantizedConvTranspose>(cases);
}

std::vector<InputRule> requantization(std::int64_t channels) {
  return {of(DType::I32, {channels}, -20000, 20000),
          of(DType::I32, {channels}, 0x40000000, 0x7FFFFFFF), of(DType::I32, {channels}, 37, 42)};
}

}  // namespace triptych::conformance
