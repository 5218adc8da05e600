// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv.h"

#include <limits>

#include "core/conformance/near_windows.h"
#include "core/conformance/op_case.h"
#include "core/ops/quantized_conv.h"

namespace triptych::conformance {
namespace {

/// One convolution. It makes a case of Conv, one of ConvWeightGradient and two of QuantizedConv.
struct Problem {
  std::string name;
  Shape x, w;
  std::vector<std::int64_t> strides = {};
  std::vector<std::int64_t> pads = {};
  std::vector<std::int64_t> dilations = {};
  std::int64_t group = 1;
  std::string auto_pad = "NOTSET";
  bool bias = false;
  bool relu = false;
};

template <class Op>
Op with_problem(const Problem& problem) {
  Op op;
  op.kernel_shape = spatial_sizes(problem.w);
  op.strides = problem.strides;
  op.pads = problem.pads;
  op.dilations = problem.dilations;
  op.auto_pad = problem.auto_pad;
  op.group = problem.group;
  return op;
}

std::vector<Problem> shape_problems() {
  return {
      {.name = "k3", .x = {1, 3, 6, 7}, .w = {4, 3, 3, 3}},
      {.name = "k3_same", .x = {2, 3, 8, 8}, .w = {5, 3, 3, 3}, .pads = {1, 1, 1, 1}, .bias = true},
      {.name = "k1", .x = {2, 17, 5, 5}, .w = {9, 17, 1, 1}, .bias = true},
      {.name = "k1_stride2", .x = {1, 8, 7, 7}, .w = {6, 8, 1, 1}, .strides = {2, 2}},
      {.name = "one_channel", .x = {1, 1, 5, 5}, .w = {1, 1, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "odd_channels", .x = {2, 17, 5, 6}, .w = {3, 17, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "wide", .x = {1, 3, 19, 23}, .w = {40, 3, 3, 3}, .pads = {1, 1, 1, 1}, .bias = true},
      {.name = "deep", .x = {1, 40, 6, 9}, .w = {33, 40, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "many_channels", .x = {1, 9, 4, 5}, .w = {130, 9, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "large_map", .x = {2, 2, 24, 26}, .w = {3, 2, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "size1_map", .x = {2, 5, 1, 1}, .w = {4, 5, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "whole_map", .x = {2, 3, 4, 5}, .w = {6, 3, 4, 5}, .bias = true},
      {.name = "kernel_beyond_input", .x = {1, 2, 3, 3}, .w = {3, 2, 5, 5}, .pads = {2, 2, 2, 2}},
      {.name = "kernel_oblong", .x = {1, 3, 7, 9}, .w = {4, 3, 1, 5}, .pads = {0, 2, 0, 2}},
  };
}

std::vector<Problem> step_problems() {
  return {
      {.name = "stride2",
       .x = {1, 3, 8, 9},
       .w = {4, 3, 3, 3},
       .strides = {2, 2},
       .pads = {1, 1, 1, 1}},
      {.name = "stride_3_2", .x = {1, 2, 9, 8}, .w = {3, 2, 2, 3}, .strides = {3, 2}},
      {.name = "stride_beyond_kernel", .x = {1, 2, 8, 8}, .w = {3, 2, 2, 2}, .strides = {3, 3}},
      {.name = "dilation2",
       .x = {1, 3, 9, 8},
       .w = {4, 3, 3, 3},
       .pads = {2, 2, 2, 2},
       .dilations = {2, 2}},
      // Whole depths of K are padding for some panels of positions, and all of it for others.
      {.name = "dilation_beyond_rows",
       .x = {1, 150, 5, 20},
       .w = {17, 150, 3, 3},
       .pads = {4, 2, 4, 2},
       .dilations = {4, 2}},
      {.name = "rows_of_padding",
       .x = {1, 2, 3, 20},
       .w = {3, 2, 2, 3},
       .pads = {4, 1, 4, 1},
       .bias = true},
      {.name = "dilation_1_3_stride2",
       .x = {1, 2, 7, 11},
       .w = {3, 2, 3, 3},
       .strides = {2, 2},
       .pads = {1, 3, 1, 3},
       .dilations = {1, 3}},
      {.name = "pads_asymmetric",
       .x = {1, 3, 6, 6},
       .w = {4, 3, 3, 3},
       .pads = {0, 2, 1, 0},
       .bias = true},
      {.name = "pads_beyond_kernel", .x = {1, 1, 3, 3}, .w = {2, 1, 2, 2}, .pads = {3, 2, 2, 3}},
      {.name = "same_upper",
       .x = {1, 3, 7, 8},
       .w = {4, 3, 4, 2},
       .strides = {2, 3},
       .auto_pad = "SAME_UPPER"},
      {.name = "same_lower",
       .x = {1, 3, 7, 8},
       .w = {4, 3, 4, 2},
       .strides = {2, 3},
       .auto_pad = "SAME_LOWER"},
      {.name = "valid", .x = {1, 3, 7, 8}, .w = {4, 3, 3, 2}, .auto_pad = "VALID"},
      // Rows of more positions than a warp has lanes, more channels than a tile has rows.
      {.name = "long_rows", .x = {2, 2, 3, 41}, .w = {18, 2, 3, 3}, .pads = {1, 1, 1, 1}},
  };
}

std::vector<Problem> group_problems() {
  return {
      {.name = "groups2",
       .x = {2, 6, 5, 5},
       .w = {4, 3, 3, 3},
       .pads = {1, 1, 1, 1},
       .group = 2,
       .bias = true},
      {.name = "groups3_stride2",
       .x = {1, 9, 6, 7},
       .w = {6, 3, 3, 3},
       .strides = {2, 2},
       .pads = {1, 1, 1, 1},
       .group = 3},
      {.name = "depthwise",
       .x = {2, 17, 6, 6},
       .w = {17, 1, 3, 3},
       .pads = {1, 1, 1, 1},
       .group = 17,
       .bias = true},
      {.name = "depthwise_wide", .x = {2, 3, 7, 37}, .w = {3, 1, 3, 3}, .group = 3, .bias = true},
      {.name = "depthwise_5x5",
       .x = {1, 3, 9, 18},
       .w = {3, 1, 5, 5},
       .pads = {2, 2, 2, 2},
       .group = 3},
      {.name = "depthwise_7x7",
       .x = {1, 2, 4, 33},
       .w = {4, 1, 7, 7},
       .pads = {3, 3, 3, 3},
       .group = 2},
      {.name = "depthwise_multiplier",
       .x = {1, 3, 6, 6},
       .w = {6, 1, 3, 3},
       .pads = {1, 1, 1, 1},
       .group = 3},
  };
}

std::vector<Problem> line_problems() {
  return {
      {.name = "line_k3", .x = {2, 3, 11}, .w = {4, 3, 3}, .pads = {1, 1}, .bias = true},
      {.name = "line_stride2_dilation2",
       .x = {1, 2, 13},
       .w = {3, 2, 3},
       .strides = {2},
       .pads = {2, 1},
       .dilations = {2}},
      {.name = "line_groups",
       .x = {1, 4, 10},
       .w = {6, 2, 4},
       .group = 2,
       .auto_pad = "SAME_UPPER"},
  };
}

std::vector<Problem> relu_problems() {
  return {
      {.name = "relu",
       .x = {2, 3, 8, 8},
       .w = {5, 3, 3, 3},
       .pads = {1, 1, 1, 1},
       .bias = true,
       .relu = true},
      {.name = "relu_no_bias_k1", .x = {1, 6, 5, 5}, .w = {4, 6, 1, 1}, .relu = true},
  };
}

void add_conv(std::vector<OpCase>& cases, const Problem& problem) {
  auto op = with_problem<Conv>(problem);
  if (problem.relu) op.activation = "relu";
  std::vector<InputRule> inputs = {f32(problem.x), f32(problem.w)};
  if (problem.bias) inputs.push_back(f32({problem.w[0]}));
  cases.push_back({problem.name, make_op(op), std::move(inputs), !problem.relu});
}

/// The int32 sums, and int8.
void add_quantized_conv(std::vector<OpCase>& cases, const Problem& problem) {
  auto op = with_problem<QuantizedConv>(problem);
  if (problem.relu) op.activation = "relu";
  std::vector<InputRule> inputs = {of(DType::I8, problem.x, -128, 127),
                                   of(DType::I8, problem.w, -127, 127)};
  const auto rest = requantization(problem.w[0]);
  if (problem.bias) inputs.push_back(rest[0]);
  cases.push_back({problem.name + "_sums", make_op(op), inputs, false});
  inputs.resize(2);
  inputs.insert(inputs.end(), rest.begin(), rest.end());
  cases.push_back({problem.name, make_op(op), std::move(inputs), false});
}

void add_weight_gradient(std::vector<OpCase>& cases, const Problem& problem) {
  const auto window =
      conv_geometry("Conv", with_problem<Conv>(problem), problem.group, problem.x, problem.w)
          .window;
  const auto dy = image_shape(problem.x.rank(), problem.x[0], problem.w[0], window.out);
  cases.push_back({problem.name,
                   make_op(with_problem<ConvWeightGradient>(problem)),
                   {f32(problem.x), f32(dy)}});
}

/// Enough channels and positions for kernels that make 128 x 256 elements at once: whole boxes of
/// positions and boxes that leave the image, at each side, and several images in one box.
std::vector<Problem> tile_problems() {
  return {
      {.name = "tile", .x = {1, 64, 16, 16}, .w = {64, 64, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "shares_of_k",
       .x = {1, 128, 16, 16},
       .w = {64, 128, 3, 3},
       .pads = {1, 1, 1, 1},
       .bias = true,
       .relu = true},
      {.name = "tile_ragged",
       .x = {1, 72, 17, 18},
       .w = {70, 72, 2, 3},
       .pads = {1, 2, 0, 1},
       .bias = true,
       .relu = true},
      {.name = "tile_of_images", .x = {5, 64, 8, 9}, .w = {130, 64, 1, 1}, .bias = true},
      {.name = "tile_dilated",
       .x = {2, 64, 20, 16},
       .w = {64, 64, 1, 3},
       .pads = {0, 3, 0, 3},
       .dilations = {1, 3}},
  };
}

/// The same for gradients of weights: boxes of positions that cover the images, of one tile of 64
/// output channels, and of one and a half of 128.
std::vector<Problem> gradient_tile_problems() {
  return {{.name = "tile", .x = {2, 64, 8, 8}, .w = {64, 64, 3, 3}, .pads = {1, 1, 1, 1}},
          {.name = "tile_of_rows", .x = {1, 64, 4, 16}, .w = {192, 64, 1, 1}}};
}

/// Near the windows that kernels are specialised for: 3 x 3 with padding, 1 x 1, tiles of the
/// image, and 3 x 3 of one channel per group.
std::vector<Problem> near_problems() {
  struct Base {
    NearWindow window;
    Shape x;
    std::int64_t outputs, group;
  };
  const Base bases[] = {
      {{"near_k3", {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}, {1, 4, 7, 8}, 4, 1},
      {{"near_k1", {1, 1}}, {2, 4, 5, 6}, 3, 1},
      {{"near_tiles", {2, 2}, {2, 2}}, {1, 3, 6, 8}, 4, 1},
      {{"near_depthwise", {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}, {1, 4, 6, 7}, 4, 4},
      {{"near_shared_rows", {5, 3}, {1, 1}, {1, 1}, {2, 1, 2, 1}}, {1, 2, 10, 35}, 2, 2},
  };
  std::vector<Problem> problems;
  for (const auto& base : bases) {
    for (const auto& near : near_windows(base.window)) {
      problems.push_back(
          {.name = near.name,
           .x = base.x,
           .w = {base.outputs, base.x[1] / base.group, near.kernel[0], near.kernel[1]},
           .strides = near.strides,
           .pads = near.pads,
           .dilations = near.dilations,
           .group = base.group});
    }
  }
  problems.push_back({.name = "near_k3_groups2",
                      .x = {1, 4, 7, 8},
                      .w = {4, 2, 3, 3},
                      .pads = {1, 1, 1, 1},
                      .group = 2});
  problems.push_back(
      {.name = "near_k3_pads3", .x = {1, 4, 7, 8}, .w = {4, 4, 3, 3}, .pads = {3, 3, 3, 3}});
  return problems;
}

/// The convolution, its weights' gradient and the int32 sums of each. Their gradients have the
/// rules that other cases check.
void add_near(std::vector<OpCase>& cases) {
  for (const auto& problem : near_problems()) {
    const auto first = cases.size();
    add_conv(cases, problem);
    add_weight_gradient(cases, problem);
    for (auto i = first; i < cases.size(); ++i) cases[i].check_gradient = false;
    cases.push_back({problem.name + "_sums",
                     make_op(with_problem<QuantizedConv>(problem)),
                     {of(DType::I8, problem.x, -128, 127), of(DType::I8, problem.w, -127, 127)},
                     false});
  }
}

/// A bias that makes a NaN of a sum, and sums that are one.
void add_nan(std::vector<OpCase>& cases) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  Conv op;
  const auto add = [&](const char* name) {
    cases.push_back(
        {name,
         make_op(op),
         {exactly(DType::F32, {1, 1, 1, 4}, {infinity, -infinity, 1, nan}),
          exactly(DType::F32, {2, 1, 1, 1}, {1, 1}), exactly(DType::F32, {2}, {-infinity, nan})},
         false});
  };
  add("nan");
  op.activation = "relu";
  add("nan_relu");
}

}  // namespace

void add_conv_cases(std::vector<OpCase>& cases) {
  add_nan(cases);
  add_near(cases);
  for (const auto& list :
       {shape_problems(), step_problems(), group_problems(), line_problems(), relu_problems()}) {
    for (const auto& problem : list) {
      add_conv(cases, problem);
      add_quantized_conv(cases, problem);
      if (!problem.relu) add_weight_gradient(cases, problem);
    }
  }
  for (const auto& problem : tile_problems()) {
    add_conv(cases, problem);
    cases.back().check_gradient = false;  // for the time it takes
  }
  for (const auto& problem : gradient_tile_problems()) {
    add_weight_gradient(cases, problem);
    cases.back().check_gradient = false;
  }
  // Weights that a plan knows may be packed once.
  const Problem constant = {
      .name = "constant_weight", .x = {1, 3, 9, 10}, .w = {18, 3, 3, 3}, .pads = {1, 1, 1, 1}};
  add_conv(cases, constant);
  cases.back().inputs[1].constant = true;
  add_quantized_conv(cases, constant);
  cases.back().inputs[1].constant = true;
}

}  // namespace triptych::conformance
