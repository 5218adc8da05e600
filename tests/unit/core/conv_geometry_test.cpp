// How strides, pads, dilations and auto_pad resolve to windows and sizes, and the messages of
// refusals.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv_geometry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/pool.h"

namespace triptych {
namespace {

using testing::HasSubstr;

/// The message of the InvalidArgument that `action` throws.
template <class Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing was refused";
}

TensorSpec f32(Shape shape) { return {DType::F32, std::move(shape)}; }

Shape output_of(const Op& op, const std::vector<Shape>& inputs) {
  std::vector<TensorSpec> specs;
  for (const auto& shape : inputs) specs.push_back(f32(shape));
  return op.infer(specs).front().shape;
}

std::string refusal_of(const Op& op, const std::vector<Shape>& inputs) {
  return refusal([&] { output_of(op, inputs); });
}

TEST(Window, a_line_is_lifted_to_an_image_of_height_one) {
  WindowAttributes attributes{.strides = {2}, .pads = {1, 2}, .dilations = {3}};
  const auto w = resolve_window("Op", attributes, {10}, {2});
  EXPECT_EQ(w.in[0], 1);
  EXPECT_EQ(w.kernel[0], 1);
  EXPECT_EQ(w.out[0], 1);
  EXPECT_EQ(w.in[1], 10);
  EXPECT_EQ(w.pad_begin[1], 1);
  EXPECT_EQ(w.pad_end[1], 2);
  EXPECT_EQ(w.extent(1), 4);
  EXPECT_EQ(w.out[1], (10 + 3 - 4) / 2 + 1);
}

TEST(Window, same_puts_the_odd_padding_at_the_end_or_the_begin) {
  const auto upper = resolve_window("Op", {.auto_pad = "SAME_UPPER"}, {5, 5}, {2, 4});
  EXPECT_EQ(upper.out[0], 5);
  EXPECT_EQ(upper.pad_begin[0], 0);
  EXPECT_EQ(upper.pad_end[0], 1);
  EXPECT_EQ(upper.pad_begin[1], 1);
  EXPECT_EQ(upper.pad_end[1], 2);
  const auto lower = resolve_window("Op", {.auto_pad = "SAME_LOWER"}, {5, 5}, {2, 4});
  EXPECT_EQ(lower.pad_begin[0], 1);
  EXPECT_EQ(lower.pad_end[0], 0);
  EXPECT_EQ(lower.pad_begin[1], 2);
  EXPECT_EQ(lower.pad_end[1], 1);
}

TEST(Window, same_with_a_stride_gives_the_input_divided_upwards) {
  const auto w =
      resolve_window("Op", {.strides = {2, 3}, .auto_pad = "SAME_UPPER"}, {8, 8}, {1, 5});
  EXPECT_EQ(w.out[0], 4);
  EXPECT_EQ(w.pad_begin[0] + w.pad_end[0], 0) << "a window below the stride needs no padding";
  EXPECT_EQ(w.out[1], 3);
  EXPECT_EQ(w.pad_begin[1] + w.pad_end[1], 2 * 3 + 5 - 8);
}

TEST(Window, ceil_mode_adds_a_last_window_only_if_it_starts_inside) {
  const WindowAttributes plain{.strides = {2}};
  EXPECT_EQ(resolve_window("Op", plain, {6}, {3}, false).out[1], 2);
  EXPECT_EQ(resolve_window("Op", plain, {6}, {3}, true).out[1], 3);
  EXPECT_EQ(resolve_window("Op", plain, {7}, {3}, true).out[1], 3);
  const WindowAttributes padded{.strides = {3}, .pads = {1, 1}};
  EXPECT_EQ(resolve_window("Op", padded, {3}, {2}, false).out[1], 2);
  EXPECT_EQ(resolve_window("Op", {.strides = {3}, .pads = {0, 1}}, {3}, {2}, true).out[1], 1)
      << "the second window would start in the end padding";
  for (const char* auto_pad : {"NOTSET", "VALID"}) {
    const WindowAttributes attributes{.strides = {2}, .auto_pad = auto_pad};
    EXPECT_EQ(resolve_window("Op", attributes, {6}, {3}, true).out[1], auto_pad[0] == 'N' ? 3 : 2)
        << "VALID counts whole windows only";
  }
}

TEST(Window, is_pointwise_or_makes_tiles_when_nothing_overlaps) {
  const auto window = [](const WindowAttributes& attributes, std::int64_t size,
                         std::vector<std::int64_t> kernel) {
    return resolve_window("Op", attributes, {size, 4}, kernel);
  };
  EXPECT_TRUE(window({}, 4, {1, 1}).is_pointwise());
  EXPECT_FALSE(window({}, 4, {2, 1}).is_pointwise());
  EXPECT_FALSE(window({.strides = {1, 2}}, 4, {1, 1}).is_pointwise());
  EXPECT_FALSE(window({.pads = {0, 1, 0, 0}}, 4, {1, 1}).is_pointwise());
  EXPECT_FALSE(window({.pads = {0, 0, 1, 0}}, 4, {1, 1}).is_pointwise());
  EXPECT_TRUE(window({.strides = {2, 2}}, 4, {2, 2}).makes_tiles());
  EXPECT_TRUE(window({.strides = {2, 1}}, 4, {2, 1}).makes_tiles());
  EXPECT_FALSE(window({}, 4, {1, 1}).makes_tiles()) << "a tile has several positions";
  EXPECT_FALSE(window({.strides = {2, 1}}, 4, {2, 2}).makes_tiles());
  EXPECT_FALSE(window({.strides = {2, 2}}, 5, {2, 2}).makes_tiles()) << "a row is left over";
  EXPECT_FALSE(window({.strides = {2, 2}, .pads = {1, 0, 1, 0}}, 4, {2, 2}).makes_tiles());
  EXPECT_FALSE(window({.strides = {2, 2}, .dilations = {2, 1}}, 5, {2, 2}).makes_tiles());
}

TEST(Window, explicit_attributes_resolve_to_the_same_window) {
  const WindowAttributes same{.strides = {2, 3}, .dilations = {2, 1}, .auto_pad = "SAME_LOWER"};
  const auto w = resolve_window("Op", same, {9, 8}, {3, 2});
  const auto attributes = explicit_attributes(w, 4);
  EXPECT_EQ(attributes.auto_pad, "NOTSET");
  const auto again = resolve_window("Op", attributes, {9, 8}, attributes.kernel_shape);
  for (int axis = 0; axis < 2; ++axis) {
    EXPECT_EQ(again.out[axis], w.out[axis]);
    EXPECT_EQ(again.pad_begin[axis], w.pad_begin[axis]);
    EXPECT_EQ(again.pad_end[axis], w.pad_end[axis]);
  }
}

TEST(Window, taps_come_in_row_major_order_and_skip_the_padding) {
  const auto w = resolve_window("Op", {.pads = {1, 0}}, {3}, {2});
  std::vector<std::vector<std::int64_t>> visits;
  for_each_tap(w, [&](auto p, auto q, auto t) { visits.push_back({p, q, t}); });
  const std::vector<std::vector<std::int64_t>> expected = {
      {0, 0, 1}, {1, 0, 0}, {1, 1, 1}, {2, 1, 0}, {2, 2, 1}};
  EXPECT_EQ(visits, expected);
}

TEST(Window, refuses_attributes_that_make_no_sense) {
  const auto message = [](const WindowAttributes& attributes) {
    return refusal([&] { resolve_window("Op", attributes, {5, 5}, {3, 3}); });
  };
  EXPECT_EQ(message({.strides = {0, 1}}), "[Op] strides [0, 1] must lie between 1 and 2147483647");
  EXPECT_THAT(message({.pads = {0, -1, 0, 0}}), HasSubstr("pads [0, -1, 0, 0] must lie"));
  EXPECT_THAT(message({.dilations = {1, std::int64_t{1} << 40}}), HasSubstr("dilations"));
  EXPECT_THAT(message({.strides = {1}}), HasSubstr("strides [1] has 1 entries"));
  EXPECT_THAT(message({.pads = {1, 1}}), HasSubstr("pads [1, 1] has 2 entries"));
  EXPECT_THAT(message({.auto_pad = "SAME"}), HasSubstr("auto_pad is \"SAME\"; it must be NOTSET"));
  EXPECT_THAT(message({.pads = {1, 1, 1, 1}, .auto_pad = "VALID"}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(message({.dilations = {1, 3}}),
              HasSubstr("the window spans 7 positions of axis width, the padded input has 5"));
}

TEST(Conv, output_size_follows_stride_pads_and_dilation) {
  Conv op;
  EXPECT_EQ(output_of(op, {{2, 3, 8, 9}, {4, 3, 3, 3}}), Shape({2, 4, 6, 7}));
  EXPECT_EQ(output_of(op, {{2, 3, 9}, {4, 3, 3}}), Shape({2, 4, 7}));
  op.strides = {2, 1};
  op.pads = {1, 0, 2, 0};
  op.dilations = {1, 2};
  EXPECT_EQ(output_of(op, {{2, 3, 8, 9}, {4, 3, 3, 3}}), Shape({2, 4, 5, 5}));
}

TEST(Conv, refuses_operands_that_do_not_fit) {
  Conv op;
  EXPECT_EQ(refusal_of(op, {{1, 4, 5, 5}, {2, 3, 3, 3}}),
            "[Conv] w has 3 input channels per group, x has 4 channels in 1 groups");
  EXPECT_EQ(refusal_of(op, {{1, 3, 5, 5}, {2, 3, 3, 3}, {3}}),
            "[Conv] input 2 is f32[3]; its shape must be [2]");
  EXPECT_THAT(refusal_of(op, {{3, 5}, {2, 3}}), HasSubstr("1 or 2 axes behind its first two"));
  EXPECT_THAT(refusal_of(op, {{1, 3, 5, 5}, {2, 3, 3}}), HasSubstr("their ranks differ"));
  EXPECT_THAT(refusal_of(op, {{0, 3, 5, 5}, {2, 3, 3, 3}}), HasSubstr("no size may be 0"));
  op.kernel_shape = {3, 2};
  EXPECT_THAT(refusal_of(op, {{1, 3, 5, 5}, {2, 3, 3, 3}}), HasSubstr("kernel_shape is [3, 2]"));
  op.kernel_shape = {};
  op.group = 2;
  EXPECT_THAT(refusal_of(op, {{1, 6, 5, 5}, {3, 3, 3, 3}}), HasSubstr("group 2 does not divide"));
  op.group = 1;
  op.activation = "gelu";
  EXPECT_THAT(refusal_of(op, {{1, 3, 5, 5}, {2, 3, 3, 3}}), HasSubstr("activation is \"gelu\""));
}

TEST(ConvWeightGradient, has_the_weight_shape_and_checks_dy) {
  ConvWeightGradient op;
  op.kernel_shape = {3, 2};
  op.group = 2;
  EXPECT_EQ(output_of(op, {{1, 6, 5, 5}, {1, 4, 3, 4}}), Shape({4, 3, 3, 2}));
  EXPECT_EQ(refusal_of(op, {{1, 6, 5, 5}, {1, 4, 4, 4}}),
            "[ConvWeightGradient] dy is [1, 4, 4, 4]; for x [1, 6, 5, 5] it must be [1, 4, 3, 4]");
  op.kernel_shape = {};
  EXPECT_THAT(refusal_of(op, {{1, 6, 5, 5}, {1, 4, 3, 4}}), HasSubstr("must have 2 entries"));
}

TEST(ConvTranspose, output_size_inverts_the_convolution) {
  ConvTranspose op;
  op.strides = {2, 2};
  EXPECT_EQ(output_of(op, {{1, 6, 5, 4}, {6, 3, 2, 2}}), Shape({1, 3, 10, 8}));
  op.pads = {1, 1, 1, 0};
  op.output_padding = {1, 0};
  EXPECT_EQ(output_of(op, {{1, 6, 5, 4}, {6, 3, 3, 3}}), Shape({1, 3, 10, 8}));
}

TEST(ConvTranspose, geometry_is_the_convolution_from_y_to_x) {
  ConvTranspose op;
  op.strides = {2, 2};
  op.group = 2;
  const auto g = op.geometry({2, 6, 5, 4}, {6, 3, 2, 2});
  EXPECT_EQ(g.in_channels, 6);
  EXPECT_EQ(g.out_channels, 6);
  EXPECT_EQ(g.group_in(), 3);
  EXPECT_EQ(g.window.in[0], 10);
  EXPECT_EQ(g.window.out[0], 5);
  EXPECT_EQ(g.window.out[1], 4);
}

TEST(ConvTranspose, splits_the_padding_of_a_wanted_output_by_the_onnx_rule) {
  ConvTranspose op;
  op.strides = {2, 2};
  op.output_shape = {6, 6};
  const auto plain = op.geometry({1, 1, 3, 3}, {1, 1, 3, 3}).window;
  EXPECT_EQ(plain.in[0], 6);
  EXPECT_EQ(plain.pad_begin[0], 1);
  EXPECT_EQ(plain.pad_end[0], 0);
  op.output_shape = {};
  op.auto_pad = "SAME_UPPER";
  const auto upper = op.geometry({1, 1, 3, 3}, {1, 1, 3, 3}).window;
  EXPECT_EQ(upper.in[0], 6);
  EXPECT_EQ(upper.pad_begin[0], 0);
  EXPECT_EQ(upper.pad_end[0], 1);
}

TEST(ConvTranspose, refuses_outputs_that_no_gradient_could_leave) {
  ConvTranspose op;
  EXPECT_EQ(refusal_of(op, {{1, 4, 5, 5}, {3, 2, 3, 3}}),
            "[ConvTranspose] w has 3 input channels, x has 4");
  op.output_padding = {1, 0};
  EXPECT_THAT(refusal_of(op, {{1, 3, 5, 5}, {3, 2, 3, 3}}),
              HasSubstr("is 1; it must be below the stride, 1"));
  op.output_padding = {1};
  EXPECT_THAT(refusal_of(op, {{1, 3, 5, 5}, {3, 2, 3, 3}}), HasSubstr("must have 2 entries"));
  op.output_padding = {};
  op.pads = {3, 0, 4, 0};
  EXPECT_THAT(refusal_of(op, {{1, 3, 5, 5}, {3, 2, 3, 3}}), HasSubstr("leave nothing"));
}

TEST(Pool, output_size_follows_ceil_mode) {
  MaxPool op;
  op.kernel_shape = {3, 3};
  op.strides = {2, 2};
  EXPECT_EQ(output_of(op, {{2, 3, 8, 7}}), Shape({2, 3, 3, 3}));
  op.ceil_mode = true;
  EXPECT_EQ(output_of(op, {{2, 3, 8, 7}}), Shape({2, 3, 4, 3}));
}

TEST(Pool, refuses_windows_wholly_in_the_padding) {
  MaxPool op;
  op.kernel_shape = {2, 2};
  op.pads = {2, 0, 0, 0};
  EXPECT_THAT(refusal_of(op, {{1, 1, 4, 4}}), HasSubstr("allow a window wholly in the padding"));
  op.pads = {1, 1, 1, 1};
  op.dilations = {3, 3};
  EXPECT_THAT(refusal_of(op, {{1, 1, 2, 2}}), HasSubstr("allow a window wholly in the padding"));
  op.kernel_shape = {};
  EXPECT_THAT(refusal_of(op, {{1, 1, 4, 4}}), HasSubstr("kernel_shape [] has 0 entries"));
}

TEST(Pool, an_average_divides_by_what_lies_inside_or_by_padding_too) {
  AveragePool op;
  op.kernel_shape = {3};
  op.strides = {2};
  op.pads = {1, 0};
  op.ceil_mode = true;
  const auto w = op.window({1, 1, 5});
  ASSERT_EQ(w.out[1], 3);
  EXPECT_EQ(average_pool_divisor(w, false, 0, 0), 2);
  EXPECT_EQ(average_pool_divisor(w, true, 0, 0), 3);
  EXPECT_EQ(average_pool_divisor(w, true, 0, 1), 3);
  EXPECT_EQ(average_pool_divisor(w, true, 0, 2), 2) << "beyond the padding nothing counts";
}

}  // namespace
}  // namespace triptych
