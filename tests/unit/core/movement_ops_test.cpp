// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/ops/concat.h"
#include "core/ops/expand.h"
#include "core/ops/gather.h"
#include "core/ops/pad.h"
#include "core/ops/reshape.h"
#include "core/ops/resize.h"
#include "core/ops/slice.h"
#include "core/ops/transpose.h"

namespace triptych {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;
using testing::ThrowsMessage;

using Numbers = std::vector<double>;

constexpr auto kEndless = std::numeric_limits<std::int64_t>::max();

RefTensor tensor(Shape shape, Numbers values) {
  return {{DType::F32, std::move(shape)}, std::move(values)};
}

/// 1, 2, 3, ... under `shape`.
RefTensor counted(Shape shape) {
  Numbers values(static_cast<std::size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 1.0);
  return tensor(std::move(shape), std::move(values));
}

/// A vector of i64.
RefTensor indices(Numbers values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return {{DType::I64, Shape({count})}, std::move(values)};
}

RefTensor run(const Op& op, const std::vector<RefTensor>& inputs) {
  std::vector<TensorSpec> specs(inputs.size());
  std::ranges::transform(inputs, specs.begin(), &RefTensor::spec);
  RefTensor y{op.infer(specs).front(), {}};
  y.values.assign(static_cast<std::size_t>(y.spec.shape.elements()), -99.0);
  op.reference(inputs, {&y, 1});
  return y;
}

/// Expects that `op` refuses f32 inputs of these shapes with a message about `what`.
void expect_refused(const Op& op, const std::vector<Shape>& shapes, const std::string& what) {
  std::vector<TensorSpec> specs(shapes.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) specs[i].shape = shapes[i];
  EXPECT_THAT([&] { op.infer(specs); }, ThrowsMessage<InvalidArgument>(HasSubstr(what)));
}

Reshape reshape(Dims shape) {
  Reshape op;
  op.shape = std::move(shape);
  return op;
}

TEST(Reshape, resolves_0_and_minus_1) {
  EXPECT_EQ(run(reshape({0, -1}), {counted({2, 3, 4})}).spec.shape, (Shape{2, 12}));
  EXPECT_EQ(run(reshape({-1, 0}), {counted({4, 3})}).spec.shape, (Shape{4, 3}));
}

TEST(Reshape, refuses_shapes_that_do_not_fit) {
  expect_refused(reshape({5}), {{2, 3}}, "[Reshape]");
  expect_refused(reshape({-1, 4}), {{2, 3}}, "do not divide");
  expect_refused(reshape({-1, -1}), {{2, 3}}, "more than one -1");
  expect_refused(reshape({-2, 3}), {{2, 3}}, "size -2");
  expect_refused(reshape({6, 1, 0}), {{2, 3}}, "allowzero");
  expect_refused(reshape({-1, 0}), {{3, 0}}, "anything");
  expect_refused(reshape({kEndless, kEndless}), {{2, 3}}, "overflow");
}

TEST(Squeeze, refuses_axes_that_are_not_1_or_come_twice) {
  Squeeze op;
  op.axes = {1};
  expect_refused(op, {{1, 3}}, "axis 1");
  op.axes = {0, -2};
  expect_refused(op, {{1, 3}}, "twice");
  op.axes = {2};
  expect_refused(op, {{1, 3}}, "outside [-2, 1]");
}

TEST(Transpose, moves_axes) {
  Transpose op;
  EXPECT_THAT(run(op, {counted({2, 3})}).values, ElementsAre(1, 4, 2, 5, 3, 6));
  op.perm = {1, 2, 0};
  EXPECT_EQ(run(op, {counted({2, 3, 4})}).spec.shape, (Shape{3, 4, 2}));
  op.perm = {0, 0, 1};
  expect_refused(op, {{2, 3, 4}}, "twice");
  op.perm = {0, 1};
  expect_refused(op, {{2, 3, 4}}, "rank 3");
}

TEST(Concat, joins_along_the_axis) {
  Concat op;
  op.axis = 1;
  EXPECT_THAT(run(op, {counted({2, 1}), counted({2, 2})}).values, ElementsAre(1, 1, 2, 2, 3, 4));
  expect_refused(op, {{2, 1}, {3, 1}}, "input 1");
  expect_refused(op, {}, "at least 1");
}

TEST(Split, refuses_sizes_that_do_not_add_up) {
  Split op;
  op.split = {1, 1};
  expect_refused(op, {{3}}, "adds up to 2");
  op.split = {};
  expect_refused(op, {{3}}, "num_outputs");
  op.num_outputs = 4;
  expect_refused(op, {{3}}, "too short");
}

Slice slice(std::int64_t start, std::int64_t end, std::int64_t step) {
  Slice op;
  op.starts = {start};
  op.ends = {end};
  op.steps = {step};
  return op;
}

TEST(Slice, clamps_as_numpy_does) {
  const auto x = counted({5});
  EXPECT_THAT(run(slice(-3, 99, 1), {x}).values, ElementsAre(3, 4, 5));
  EXPECT_THAT(run(slice(-99, -1, 2), {x}).values, ElementsAre(1, 3));
  EXPECT_THAT(run(slice(99, -99, -2), {x}).values, ElementsAre(5, 3, 1));
  EXPECT_THAT(run(slice(-2, 0, -1), {x}).values, ElementsAre(4, 3, 2));
  EXPECT_THAT(run(slice(2, 2, 1), {x}).values, ElementsAre());
  EXPECT_THAT(run(slice(1, 3, -1), {x}).values, ElementsAre());
}

TEST(Slice, survives_extreme_numbers) {
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(run(slice(lowest, kEndless, kEndless), {counted({5})}).values, ElementsAre(1));
  EXPECT_THAT(run(slice(kEndless, lowest, lowest), {counted({5})}).values, ElementsAre(5));
}

TEST(Slice, refuses_step_0_and_uneven_lists) {
  expect_refused(slice(0, 1, 0), {{5}}, "step is 0");
  auto uneven = slice(0, 1, 1);
  uneven.ends = {1, 2};
  expect_refused(uneven, {{5, 5}}, "equally many");
}

TEST(SliceGradient, puts_back_what_slice_took) {
  SliceGradient op;
  op.input_shape = {5};
  op.starts = {-1};
  op.ends = {0};
  op.steps = {-2};
  EXPECT_THAT(run(op, {counted({2})}).values, ElementsAre(0, 0, 2, 0, 1));
  expect_refused(op, {{3}}, "must be [2]");
}

Pad pad(std::int64_t before, std::int64_t after, std::string mode) {
  Pad op;
  op.pads = {before, after};
  op.mode = std::move(mode);
  op.value = 9;
  return op;
}

TEST(Pad, knows_three_modes_and_crops) {
  const auto x = counted({3});
  EXPECT_THAT(run(pad(1, 2, "constant"), {x}).values, ElementsAre(9, 1, 2, 3, 9, 9));
  EXPECT_THAT(run(pad(2, 1, "reflect"), {x}).values, ElementsAre(3, 2, 1, 2, 3, 2));
  EXPECT_THAT(run(pad(2, 1, "edge"), {x}).values, ElementsAre(1, 1, 1, 2, 3, 3));
  EXPECT_THAT(run(pad(-1, 1, "constant"), {x}).values, ElementsAre(2, 3, 9));
  EXPECT_THAT(run(pad(5, 0, "reflect"), {x}).values, ElementsAre(2, 1, 2, 3, 2, 1, 2, 3));
}

TEST(Pad, refuses_what_does_not_fit) {
  expect_refused(pad(1, 1, "wrap"), {{3}}, "mode 'wrap'");
  expect_refused(pad(1, 1, "edge"), {{0}}, "nothing to repeat");
  expect_refused(pad(-2, -2, "constant"), {{3}}, "crop more");
  expect_refused(pad(1, 1, "constant"), {{3, 3}}, "needs 4");
  Pad op;
  op.pads = {0, 0, 0, std::int64_t{1} << 31};
  expect_refused(op, {{0, 1}}, "axis 1 is 2147483649 long");
}

TEST(PadGradient, adds_up_the_copies) {
  PadGradient op;
  op.input_shape = {3};
  op.pads = {2, 1};
  op.mode = "reflect";
  EXPECT_THAT(run(op, {counted({6})}).values, ElementsAre(3, 2 + 4 + 6, 1 + 5));
}

TEST(Expand, broadcasts_both_ways) {
  Expand op;
  op.shape = {2, 1};
  EXPECT_THAT(run(op, {counted({3})}).values, ElementsAre(1, 2, 3, 1, 2, 3));
  expect_refused(op, {{3, 3}}, "[Expand]");
}

TEST(Gather, takes_negative_indices_from_the_end) {
  Gather op;
  op.axis = 1;
  EXPECT_THAT(run(op, {counted({2, 3}), indices({-1, 0})}).values, ElementsAre(3, 1, 6, 4));
  expect_refused(op, {{2, 3}, {2}}, "i32 or i64");
}

TEST(Gather, names_the_index_that_is_out_of_range) {
  const Tensor wrong({3}, std::vector<std::int64_t>{0, -5, 5});
  EXPECT_THAT([&] { check_indices("Gather", wrong, 5); },
              ThrowsMessage<InvalidArgument>(HasSubstr("index 5 at position 2")));
}

TEST(GatherGradient, adds_up_repeated_indices) {
  GatherGradient op;
  op.input_shape = {3};
  EXPECT_THAT(run(op, {counted({4}), indices({2, 0, -1, 2})}).values, ElementsAre(2, 0, 1 + 3 + 4));
}

Resize resize(std::string mode, std::string coordinates, std::string nearest = "floor") {
  Resize op;
  op.mode = std::move(mode);
  op.coordinate_transformation_mode = std::move(coordinates);
  op.nearest_mode = std::move(nearest);
  return op;
}

// The expected numbers are those of ONNX's own node tests for Resize.
TEST(Resize, interpolates_as_onnx_does) {
  auto op = resize("linear", "half_pixel");
  op.scales = {2, 2};
  EXPECT_THAT(
      run(op, {counted({2, 2})}).values,
      ElementsAre(1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4));
  op.scales = {0.6F, 0.6F};
  EXPECT_THAT(run(op, {counted({2, 4})}).values,
              Pointwise(DoubleNear(1e-6), {2.6666665, 4.3333331}));
  op.coordinate_transformation_mode = "align_corners";
  EXPECT_THAT(run(op, {counted({2, 4})}).values, Pointwise(DoubleNear(1e-6), {1.0, 22.0 / 7}));
}

TEST(Resize, cubic_takes_four_neighbours_as_onnx_does) {
  auto op = resize("cubic", "half_pixel");
  op.scales = {0.8F, 0.8F};
  EXPECT_THAT(run(op, {counted({4, 4})}).values,
              Pointwise(DoubleNear(1e-5), {1.47119141, 2.78125, 4.08251953, 6.71142578, 8.02148438,
                                           9.32275391, 11.91650391, 13.2265625, 14.52783203}));
}

TEST(Resize, takes_the_nearest_as_onnx_does) {
  auto op = resize("nearest", "align_corners", "floor");
  op.sizes = {8};
  EXPECT_THAT(run(op, {counted({4})}).values, ElementsAre(1, 1, 1, 2, 2, 3, 3, 4));
  op = resize("nearest", "half_pixel", "ceil");
  op.sizes = {8};
  EXPECT_THAT(run(op, {counted({4})}).values, ElementsAre(1, 2, 2, 3, 3, 4, 4, 4));
  op = resize("nearest", "asymmetric", "round_prefer_ceil");
  op.sizes = {8};
  EXPECT_THAT(run(op, {counted({4})}).values, ElementsAre(1, 2, 2, 3, 3, 4, 4, 4));
  op = resize("nearest", "half_pixel", "round_prefer_floor");
  op.sizes = {7};
  EXPECT_THAT(run(op, {counted({2})}).values, ElementsAre(1, 1, 1, 1, 2, 2, 2));
}

TEST(Resize, takes_the_first_element_for_one_output_where_the_mode_says_so) {
  auto op = resize("linear", "pytorch_half_pixel");
  op.sizes = {1};
  EXPECT_THAT(run(op, {counted({4})}).values, ElementsAre(1));
  op.coordinate_transformation_mode = "half_pixel";
  EXPECT_THAT(run(op, {counted({4})}).values, ElementsAre(2.5));
}

TEST(Resize, refuses_what_does_not_fit) {
  auto op = resize("quintic", "half_pixel");
  op.scales = {2};
  expect_refused(op, {{4}}, "mode is 'quintic'");
  op.mode = "nearest";
  expect_refused(op, {{4, 4}}, "one per axis");
  op.scales = {-1};
  expect_refused(op, {{4}}, "positive");
  op.scales = {std::numeric_limits<float>::max()};
  expect_refused(op, {{4}}, "overflows");
  op.sizes = {2};
  expect_refused(op, {{4}}, "either scales or sizes");
  op.scales = {};
  expect_refused(op, {{0}}, "empty");
  op.sizes = {0, std::int64_t{1} << 31};
  expect_refused(op, {{4, 1}}, "axis 1 is 2147483648 long");
  expect_refused(op, {{0, std::int64_t{1} << 31}}, "axis 1 is");
}

TEST(ResizeGradient, adds_up_the_weights_of_each_element) {
  ResizeGradient op;
  op.input_shape = {2};
  op.scales = {2};
  op.mode = "linear";
  EXPECT_THAT(run(op, {tensor({4}, {1, 1, 1, 1})}).values, ElementsAre(2, 2));
  EXPECT_THAT(run(op, {tensor({4}, {0, 1, 0, 0})}).values, ElementsAre(0.75, 0.25));
}

}  // namespace
}  // namespace triptych
