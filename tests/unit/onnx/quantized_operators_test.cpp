// Operators of 8 bits from ONNX files: every combination of types and zero points against sums
// that are written out, and the operands that are refused.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/onnx/evaluate_model.h"

namespace triptych::onnx {
namespace {

using test::expect_refused;
using test::kFloat;
using test::kInt32;
using test::kInt8;
using test::kUint8;
using test::output_of;
using test::Sample;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

using Values = std::vector<double>;

void add_constant(Sample& sample, const std::string& name, const test::Integers& sizes, int type,
                  const Values& values) {
  auto& tensor = sample.initializer(name, sizes, type);
  for (const auto value : values) {
    if (type == kFloat) {
      tensor.add_float_data(static_cast<float>(value));
    } else {
      tensor.add_int32_data(static_cast<int>(value));
    }
  }
}

/// QuantizeLinear of [2, 3] to `type`, with a scale and, unless it is empty, a zero point.
Sample quantize(int type, const Values& scale, const Values& zero) {
  Sample sample(21);
  const auto sizes = [](const Values& values) {
    return values.size() == 1 ? test::Integers{} : test::Integers{std::ssize(values)};
  };
  sample.input("x", {2, 3});
  test::Names inputs = {"x", "scale"};
  add_constant(sample, "scale", sizes(scale), kFloat, scale);
  if (!zero.empty()) {
    add_constant(sample, "zero", sizes(zero), type, zero);
    inputs.emplace_back("zero");
  }
  sample.node("QuantizeLinear", inputs, {"y"}).output("y", type);
  return sample;
}

// Quotients are whole: references do not round to float32, on which the rounding of ties rests.
TEST(QuantizeLinear, counts_from_the_zero_point_and_cuts_to_the_range_of_its_type) {
  const Values x = {-1000, -3, 0.5, 1.5, 2.5, 1000};
  EXPECT_THAT(output_of(quantize(kUint8, {0.5}, {}), {{"x", x}}), ElementsAre(0, 0, 1, 3, 5, 255));
  EXPECT_THAT(output_of(quantize(kUint8, {0.5}, {7}), {{"x", x}}),
              ElementsAre(0, 1, 8, 10, 12, 255));
  EXPECT_THAT(output_of(quantize(kInt8, {0.5}, {-3}), {{"x", x}}),
              ElementsAre(-128, -9, -2, 0, 2, 127));
  auto named = quantize(kInt8, {0.5}, {});
  named.integer("output_dtype", kInt8);
  EXPECT_THAT(output_of(named, {{"x", x}}), ElementsAre(-128, -6, 1, 3, 5, 127));
}

TEST(QuantizeLinear, has_scales_along_an_axis) {
  const Values x = {2, 4, 6, 8, 10, 12};
  EXPECT_THAT(output_of(quantize(kUint8, {1, 2, 3}, {0, 1, 2}), {{"x", x}}),
              ElementsAre(2, 3, 4, 8, 6, 6));
  auto rows = quantize(kUint8, {1, 2}, {0, 1});
  rows.integer("axis", -2);
  EXPECT_THAT(output_of(rows, {{"x", x}}), ElementsAre(2, 4, 6, 5, 6, 7));
}

TEST(QuantizeLinear, refuses_scales_and_types_that_make_no_sense) {
  for (const double scale : std::initializer_list<double>{0, -1, INFINITY, NAN})
    expect_refused(quantize(kUint8, {scale}, {}), "a scale is not finite and positive");
  expect_refused(quantize(kUint8, {1, 2}, {}), "scales and zero points of other shapes");
  expect_refused(quantize(kInt32, {1}, {0}), "to i32");
}

Sample dequantize(int type, const Values& zero) {
  Sample sample(13);
  sample.input("x", {3}, type);
  add_constant(sample, "scale", {}, kFloat, {0.5});
  test::Names inputs = {"x", "scale"};
  if (!zero.empty()) {
    add_constant(sample, "zero", {}, type, zero);
    inputs.emplace_back("zero");
  }
  sample.node("DequantizeLinear", inputs, {"y"}).output("y");
  return sample.integer("axis", 0);
}

TEST(DequantizeLinear, takes_off_the_zero_point_if_there_is_one) {
  EXPECT_THAT(output_of(dequantize(kUint8, {128}), {{"x", {0, 128, 255}}}),
              ElementsAre(-64, 0, 63.5));
  EXPECT_THAT(output_of(dequantize(kInt8, {}), {{"x", {-128, 3, 127}}}),
              ElementsAre(-64, 1.5, 63.5));
}

/// An operand of 8 bits: its zero points, none when there is no such input.
struct Operand {
  int type = kInt8;
  Values zero;
  bool constant_zero = true;

  double zero_of(std::size_t channel) const {
    return zero.empty() ? 0 : zero[zero.size() == 1 ? 0 : channel];
  }
};

void add_zero(Sample& sample, const std::string& name, const Operand& operand) {
  const auto count = std::ssize(operand.zero);
  const auto sizes = count == 1 ? test::Integers{} : test::Integers{count};
  if (operand.constant_zero) {
    add_constant(sample, name, sizes, operand.type, operand.zero);
  } else {
    sample.input(name, sizes, operand.type);
  }
}

const Values kX = {10, 8, 9, 11, 7, 12}, kW = {3, 1, 4, 1, 5, 9, 2, 6};

/// Sums of a kernel of 2 x 2 over an image of 2 x 3 with a row of padding above it.
Values convolved(const Operand& x, const Operand& w) {
  Values sums;
  for (std::size_t channel = 0; channel < 2; ++channel) {
    for (int row = -1; row < 1; ++row) {
      for (int column = 0; column < 2; ++column) {
        double sum = 0;
        for (int tap = 0; tap < 4; ++tap) {
          const int at = row + tap / 2;
          if (at < 0) continue;
          const auto pixel = kX[static_cast<std::size_t>(3 * at + column + tap % 2)];
          const auto weight = kW[4 * channel + static_cast<std::size_t>(tap)];
          sum += (pixel - x.zero_of(0)) * (weight - w.zero_of(channel));
        }
        sums.push_back(sum);
      }
    }
  }
  return sums;
}

Sample conv_integer(const Operand& x, const Operand& w) {
  Sample sample;
  sample.input("x", {1, 1, 2, 3}, x.type);
  add_constant(sample, "w", {2, 1, 2, 2}, w.type, kW);
  test::Names inputs = {"x", "w", x.zero.empty() ? "" : "x_zero", w.zero.empty() ? "" : "w_zero"};
  if (!x.zero.empty()) add_zero(sample, "x_zero", x);
  if (!w.zero.empty()) add_zero(sample, "w_zero", w);
  while (inputs.back().empty()) inputs.pop_back();
  sample.node("ConvInteger", inputs, {"y"}).output("y", kInt32);
  return sample.integers("pads", {1, 0, 0, 0});
}

TEST(ConvInteger, sums_what_lies_above_the_zero_points) {
  const std::vector<Operand> operands = {{kInt8, {}},  {kInt8, {0}},    {kInt8, {-5}},
                                         {kUint8, {}}, {kUint8, {128}}, {kUint8, {9}}};
  for (const auto& x : operands) {
    for (const auto& w : operands) {
      EXPECT_THAT(output_of(conv_integer(x, w), {{"x", kX}}), ElementsAreArray(convolved(x, w)));
    }
    const Operand channels{kInt8, {4, -7}};
    EXPECT_THAT(output_of(conv_integer(x, channels), {{"x", kX}}),
                ElementsAreArray(convolved(x, channels)));
  }
}

TEST(ConvInteger, takes_zero_points_that_are_known_only_when_it_runs) {
  const Operand x{kUint8, {9}, false}, w{kInt8, {-5}};
  EXPECT_THAT(output_of(conv_integer(x, w), {{"x", kX}, {"x_zero", {9}}}),
              ElementsAreArray(convolved(x, w)));
}

TEST(ConvInteger, refuses_operands_that_it_cannot_sum) {
  expect_refused(conv_integer({kInt32, {}}, {kInt8, {}}), "operands that are not of 8 bits");
  expect_refused(conv_integer({kInt8, {}}, {kInt8, {1, 2, 3}}),
                 "scales and zero points of other shapes");
  const auto of_shapes = [](const test::Integers& x, const test::Integers& w) {
    Sample sample;
    sample.input("x", x, kInt8).input("w", w, kInt8);
    return sample.node("ConvInteger", {"x", "w"}, {"y"}).output("y", kInt32);
  };
  expect_refused(of_shapes({1, 1, 4}, {1, 1, 2}), "what is no image");
  expect_refused(of_shapes({1, 1, 4}, {1, 1, 2, 2}), "what is no image");
  expect_refused(of_shapes({1, 1, 4, 4}, {1, 1, 2}), "what is no image");
  expect_refused(of_shapes({0, 1, 4, 4}, {1, 1, 2, 2}), "an operand is empty");
  expect_refused(of_shapes({1, 1, 4, 4}, {0, 1, 2, 2}), "an operand is empty");
}

/// sum * factor, from the zero point on, cut to the range of `type`.
Values requantized(Values sums, const Values& factors, int type, double zero) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto factor = factors[i / (sums.size() / factors.size())];
    const auto value = sums[i] * factor + zero;
    sums[i] = std::clamp<double>(value, type == kUint8 ? 0 : -128, type == kUint8 ? 255 : 127);
  }
  return sums;
}

Sample qlinear_conv(const Operand& x, const Operand& w, const Values& w_scale, const Operand& y,
                    const Values& bias) {
  Sample sample;
  sample.input("x", {1, 1, 2, 3}, x.type);
  add_constant(sample, "x_scale", {}, kFloat, {0.5});
  add_zero(sample, "x_zero", x);
  add_constant(sample, "w", {2, 1, 2, 2}, w.type, kW);
  add_constant(sample, "w_scale", {std::ssize(w_scale)}, kFloat, w_scale);
  add_zero(sample, "w_zero", w);
  add_constant(sample, "y_scale", {}, kFloat, {0.125});
  add_zero(sample, "y_zero", y);
  test::Names inputs = {"x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "y_zero"};
  if (!bias.empty()) {
    add_constant(sample, "bias", {2}, kInt32, bias);
    inputs.emplace_back("bias");
  }
  sample.node("QLinearConv", inputs, {"y"}).output("y", y.type);
  return sample.integers("pads", {1, 0, 0, 0});
}

TEST(QLinearConv, scales_sums_to_its_own_type) {
  const Operand x{kUint8, {9}}, w{kInt8, {4, -7}};
  for (const Operand& y : {Operand{kUint8, {30}}, Operand{kInt8, {-20}}}) {
    for (const bool biased : {false, true}) {
      auto sums = convolved(x, w);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += biased ? (i < 4 ? 50 : -90) : 0;
      const auto bias = biased ? Values{50, -90} : Values{};
      EXPECT_THAT(output_of(qlinear_conv(x, w, {0.25, 0.5}, y, bias), {{"x", kX}}),
                  ElementsAreArray(requantized(sums, {1, 2}, y.type, y.zero[0])));
    }
  }
}

TEST(QLinearConv, refuses_scales_and_results_that_make_no_sense) {
  const Operand x{kUint8, {9}}, w{kInt8, {4}};
  expect_refused(qlinear_conv(x, w, {0}, {kInt8, {0}}, {}), "a scale is not finite and positive");
  expect_refused(qlinear_conv(x, w, {1, 2, 3}, {kInt8, {0}}, {}),
                 "scales and zero points of other shapes");
  expect_refused(qlinear_conv(x, w, {1}, {kInt32, {0}}, {}), "a result that is not of 8 bits");
}

/// MatMulInteger with the zero points 2 of a and 1 of b.
Sample matmul_integer(const test::Integers& a, const test::Integers& b) {
  Sample sample;
  sample.input("a", a, kInt8).input("b", b, kUint8);
  add_constant(sample, "a_zero", {}, kInt8, {2});
  add_constant(sample, "b_zero", {1}, kUint8, {1});
  sample.node("MatMulInteger", {"a", "b", "a_zero", "b_zero"}, {"y"}).output("y", kInt32);
  return sample;
}

TEST(MatMulInteger, multiplies_stacks_by_one_matrix_or_one_each) {
  const Values a = {3, 4, 5, 6}, twice = {3, 4, 5, 6, 2, 3, 2, 4};
  const Values b = {2, 1, 1, 3}, both = {2, 1, 1, 3, 1, 2, 3, 1};
  EXPECT_THAT(output_of(matmul_integer({2, 2}, {2, 2}), {{"a", a}, {"b", b}}),
              ElementsAre(1, 4, 3, 8));
  EXPECT_THAT(output_of(matmul_integer({2, 2, 2}, {2, 2}), {{"a", twice}, {"b", b}}),
              ElementsAre(1, 4, 3, 8, 0, 2, 0, 4));
  EXPECT_THAT(output_of(matmul_integer({2, 2, 2}, {2, 2, 2}), {{"a", twice}, {"b", both}}),
              ElementsAre(1, 4, 3, 8, 2, 0, 4, 0));
  const auto lifted = test::outputs_of(matmul_integer({2, 2}, {1, 2, 2}), {{"a", a}, {"b", b}});
  EXPECT_EQ(lifted.front().spec.shape, (Shape{1, 2, 2}));
  EXPECT_THAT(lifted.front().values, ElementsAre(1, 4, 3, 8));
}

TEST(MatMulInteger, works_without_zero_points) {
  Sample sample;
  sample.input("a", {1, 2}, kInt8).input("b", {2, 1}, kInt8);
  sample.node("MatMulInteger", {"a", "b"}, {"y"}).output("y", kInt32);
  EXPECT_THAT(output_of(sample, {{"a", {3, -4}}, {"b", {5, 6}}}), ElementsAre(-9));
}

TEST(MatMulInteger, refuses_operands_that_do_not_fit) {
  const char* message = "its operands do not fit";
  expect_refused(matmul_integer({2}, {2, 2}), message);
  expect_refused(matmul_integer({2, 2}, {2}), message);
  expect_refused(matmul_integer({0, 2}, {2, 2}), message);
  expect_refused(matmul_integer({2, 2}, {2, 0}), message);
  expect_refused(matmul_integer({2, 3}, {2, 2}), message);
  expect_refused(matmul_integer({2, 2}, {2, 2, 2}), "operands that broadcast");
  auto rows = matmul_integer({2, 2}, {2, 2});
  auto& zero = *rows.graph().mutable_initializer(0);
  zero.add_dims(2);
  zero.add_int32_data(3);
  expect_refused(rows, "zero points of rows and columns");
}

Sample qlinear_matmul(int type, const test::Integers& scale_sizes) {
  Sample sample;
  sample.input("a", {2, 2}, kInt8).input("b", {2, 2}, kUint8);
  const Values scales(scale_sizes.empty() ? 1 : 2, 0.5);
  add_constant(sample, "a_scale", scale_sizes, kFloat, scales);
  add_constant(sample, "a_zero", {}, kInt8, {2});
  add_constant(sample, "b_scale", {}, kFloat, {0.25});
  add_constant(sample, "b_zero", {}, kUint8, {1});
  add_constant(sample, "y_scale", {}, kFloat, {0.0625});
  add_constant(sample, "y_zero", {}, type, {3});
  sample.node("QLinearMatMul",
              {"a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"}, {"y"});
  return sample.output("y", type);
}

TEST(QLinearMatMul, scales_sums_to_its_own_type) {
  const Values a = {3, 4, 5, -40}, b = {2, 1, 1, 3};
  EXPECT_THAT(output_of(qlinear_matmul(kInt8, {}), {{"a", a}, {"b", b}}),
              ElementsAre(5, 11, 9, -128));
  EXPECT_THAT(output_of(qlinear_matmul(kUint8, {}), {{"a", a}, {"b", b}}),
              ElementsAre(5, 11, 9, 0));
  expect_refused(qlinear_matmul(kInt8, {2}), "scales of rows and columns");
}

}  // namespace
}  // namespace triptych::onnx
