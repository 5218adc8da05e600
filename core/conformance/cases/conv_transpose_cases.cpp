// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conv_transpose.h"

#include "core/conformance/near_windows.h"
#include "core/conformance/op_case.h"
#include "core/ops/quantized_conv.h"

namespace triptych::conformance {
namespace {

struct Problem {
  std::string name;
  Shape x, w;
  std::vector<std::int64_t> strides = {};
  std::vector<std::int64_t> pads = {};
  std::vector<std::int64_t> dilations = {};
  std::vector<std::int64_t> output_padding = {};
  std::vector<std::int64_t> output_shape = {};
  std::string auto_pad = "NOTSET";
  std::int64_t group = 1;
  bool bias = false;
};

template <class Op>
Op with_problem(const Problem& problem) {
  Op op;
  op.strides = problem.strides;
  op.pads = problem.pads;
  op.dilations = problem.dilations;
  op.output_padding = problem.output_padding;
  op.output_shape = problem.output_shape;
  op.auto_pad = problem.auto_pad;
  op.group = problem.group;
  return op;
}

void add(std::vector<OpCase>& cases, const Problem& problem) {
  std::vector<InputRule> inputs = {f32(problem.x), f32(problem.w)};
  if (problem.bias) inputs.push_back(f32({problem.w[1] * problem.group}));
  cases.push_back({problem.name, make_op(with_problem<ConvTranspose>(problem)), std::move(inputs)});
}

/// The int32 sums. int8 with the activation where there is no bias.
void add_quantized(std::vector<OpCase>& cases, const Problem& problem) {
  auto op = with_problem<QuantizedConvTranspose>(problem);
  std::vector<InputRule> inputs = {of(DType::I8, problem.x, -128, 127),
                                   of(DType::I8, problem.w, -127, 127)};
  const auto rest = requantization(problem.w[1] * problem.group);
  if (problem.bias) inputs.push_back(rest[0]);
  cases.push_back({problem.name + "_sums", make_op(op), inputs, false});
  if (!problem.bias) op.activation = "relu";
  inputs.resize(2);
  inputs.insert(inputs.end(), rest.begin(), rest.end());
  cases.push_back({problem.name, make_op(op), std::move(inputs), false});
}

std::vector<Problem> upsampling_problems() {
  return {
      {.name = "k2_stride2", .x = {2, 6, 5, 4}, .w = {6, 3, 2, 2}, .strides = {2, 2}, .bias = true},
      {.name = "k2_stride2_wide", .x = {1, 40, 9, 11}, .w = {40, 20, 2, 2}, .strides = {2, 2}},
      {.name = "k3_stride2_output_padding",
       .x = {1, 3, 4, 5},
       .w = {3, 4, 3, 3},
       .strides = {2, 2},
       .pads = {1, 1, 1, 1},
       .output_padding = {1, 1},
       .bias = true},
      {.name = "k4_stride2",
       .x = {1, 3, 4, 4},
       .w = {3, 2, 4, 4},
       .strides = {2, 2},
       .pads = {1, 1, 1, 1}},
      {.name = "gaps", .x = {1, 2, 3, 4}, .w = {2, 3, 2, 2}, .strides = {3, 3}, .bias = true},
      {.name = "gaps_output_padding",
       .x = {1, 2, 3, 3},
       .w = {2, 3, 1, 2},
       .strides = {3, 4},
       .output_padding = {2, 3}},
      {.name = "same_upper",
       .x = {1, 2, 4, 5},
       .w = {2, 3, 3, 4},
       .strides = {2, 3},
       .auto_pad = "SAME_UPPER"},
      {.name = "same_lower",
       .x = {1, 2, 4, 5},
       .w = {2, 3, 3, 4},
       .strides = {2, 3},
       .auto_pad = "SAME_LOWER"},
      {.name = "same_kernel_below_stride",
       .x = {1, 2, 4, 5},
       .w = {2, 3, 1, 2},
       .strides = {2, 3},
       .auto_pad = "SAME_UPPER"},
      {.name = "output_shape",
       .x = {1, 2, 4, 4},
       .w = {2, 3, 3, 3},
       .strides = {2, 2},
       .output_shape = {8, 7}},
      {.name = "output_shape_surplus",
       .x = {1, 2, 3, 3},
       .w = {2, 3, 2, 2},
       .strides = {3, 3},
       .output_shape = {10, 8}},
  };
}

std::vector<Problem> plain_problems() {
  return {
      {.name = "k1", .x = {1, 17, 5, 5}, .w = {17, 3, 1, 1}, .bias = true},
      {.name = "k3", .x = {1, 3, 5, 6}, .w = {3, 4, 3, 3}},
      {.name = "k3_pad1", .x = {2, 3, 5, 6}, .w = {3, 4, 3, 3}, .pads = {1, 1, 1, 1}},
      {.name = "pads_asymmetric", .x = {1, 3, 5, 6}, .w = {3, 4, 3, 3}, .pads = {0, 2, 1, 0}},
      {.name = "pads_beyond_kernel", .x = {1, 1, 8, 8}, .w = {1, 2, 2, 2}, .pads = {2, 3, 3, 2}},
      {.name = "valid", .x = {1, 2, 3, 3}, .w = {2, 2, 3, 3}, .auto_pad = "VALID"},
      {.name = "size1_map", .x = {2, 5, 1, 1}, .w = {5, 3, 4, 4}, .bias = true},
      {.name = "one_channel", .x = {1, 1, 4, 4}, .w = {1, 1, 3, 3}, .strides = {2, 2}},
      {.name = "dilation2",
       .x = {1, 2, 5, 5},
       .w = {2, 3, 3, 3},
       .pads = {1, 2, 1, 2},
       .dilations = {2, 2}},
      {.name = "dilation3_stride2",
       .x = {1, 2, 4, 5},
       .w = {2, 3, 2, 3},
       .strides = {2, 2},
       .dilations = {3, 1},
       .output_padding = {1, 0}},
      {.name = "groups2",
       .x = {2, 6, 4, 4},
       .w = {6, 2, 3, 3},
       .strides = {2, 2},
       .pads = {1, 1, 1, 1},
       .group = 2,
       .bias = true},
      {.name = "depthwise", .x = {1, 17, 4, 4}, .w = {17, 1, 2, 2}, .strides = {2, 2}, .group = 17},
      {.name = "wide", .x = {1, 3, 19, 23}, .w = {3, 40, 3, 3}, .pads = {1, 1, 1, 1}, .bias = true},
      {.name = "line_stride2",
       .x = {2, 3, 7},
       .w = {3, 4, 3},
       .strides = {2},
       .pads = {1, 0},
       .output_padding = {1},
       .bias = true},
      {.name = "line_groups", .x = {1, 4, 6}, .w = {4, 3, 4}, .group = 2},
  };
}

/// Near the 2 x 2 tiles with which a U-Net grows its images, and near 3 x 3.
std::vector<Problem> near_problems() {
  std::vector<Problem> problems;
  for (const NearWindow& window : {NearWindow{"near_k2_stride2", {2, 2}, {2, 2}},
                                   NearWindow{"near_k3", {3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}}}) {
    for (const auto& near : near_windows(window)) {
      problems.push_back({.name = near.name,
                          .x = {1, 3, 4, 5},
                          .w = {3, 4, near.kernel[0], near.kernel[1]},
                          .strides = near.strides,
                          .pads = near.pads,
                          .dilations = near.dilations});
    }
  }
  for (std::int64_t axis = 0; axis < 2; ++axis) {
    problems.push_back({.name = "near_k2_stride2_output_padding" + std::to_string(axis),
                        .x = {1, 3, 4, 5},
                        .w = {3, 4, 2, 2},
                        .strides = {2, 2},
                        .output_padding = {1 - axis, axis}});
  }
  problems.push_back({.name = "near_k2_stride2_groups2",
                      .x = {1, 4, 4, 5},
                      .w = {4, 2, 2, 2},
                      .strides = {2, 2},
                      .group = 2});
  return problems;
}

}  // namespace

void add_conv_transpose_cases(std::vector<OpCase>& cases) {
  for (const auto& list : {upsampling_problems(), plain_problems()}) {
    for (const auto& problem : list) {
      add(cases, problem);
      add_quantized(cases, problem);
    }
  }
  for (const auto& problem : near_problems()) {
    add(cases, problem);
    cases.back().check_gradient = false;  // the rules are those of the cases above
    add_quantized(cases, problem);
    cases.pop_back();  // the sums are enough
  }
  // Enough for kernels that make 128 x 256 elements at once. No gradient, for the time it takes.
  for (const auto& problem :
       {Problem{.name = "tile", .x = {1, 64, 16, 16}, .w = {64, 64, 3, 3}, .pads = {1, 1, 1, 1}},
        Problem{.name = "tile_ragged",
        .x = {1, 72, 15, 17},
        .w = {72, 70, 2, 3},
        .pads = {0, 1, 1, 0},
        .bias = true}}) {
    add(cases, problem);
    cases.back().check_gradient = false;
  }
}

}  // namespace triptych::conformance
