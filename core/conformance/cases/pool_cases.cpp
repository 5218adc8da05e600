// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pool.h"

#include <limits>

#include "core/conformance/near_windows.h"
#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

struct Problem {
  std::string name;
  Shape x;
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> strides = {};
  std::vector<std::int64_t> pads = {};
  std::vector<std::int64_t> dilations = {};
  std::string auto_pad = "NOTSET";
  bool ceil_mode = false;
};

std::vector<Problem> problems() {
  return {
      {.name = "k2_stride2", .x = {2, 3, 6, 8}, .kernel = {2, 2}, .strides = {2, 2}},
      {.name = "k2_stride2_odd", .x = {1, 17, 7, 5}, .kernel = {2, 2}, .strides = {2, 2}},
      {.name = "k2_stride2_wide", .x = {1, 5, 18, 46}, .kernel = {2, 2}, .strides = {2, 2}},
      {.name = "k3_stride2_pad1",
       .x = {1, 3, 8, 9},
       .kernel = {3, 3},
       .strides = {2, 2},
       .pads = {1, 1, 1, 1}},
      {.name = "overlapping", .x = {1, 2, 6, 7}, .kernel = {3, 2}},
      {.name = "pads_asymmetric", .x = {1, 2, 5, 6}, .kernel = {3, 4}, .pads = {0, 3, 2, 1}},
      {.name = "dilations",
       .x = {1, 2, 8, 9},
       .kernel = {3, 2},
       .pads = {1, 2, 0, 1},
       .dilations = {2, 3}},
      {.name = "ceil", .x = {1, 2, 7, 8}, .kernel = {3, 3}, .strides = {2, 2}, .ceil_mode = true},
      {.name = "ceil_pad",
       .x = {1, 2, 6, 7},
       .kernel = {3, 2},
       .strides = {2, 3},
       .pads = {1, 1, 1, 1},
       .ceil_mode = true},
      {.name = "ceil_window_starts_outside",
       .x = {1, 1, 3, 3},
       .kernel = {1, 2},
       .strides = {3, 3},
       .pads = {0, 1, 0, 1},
       .ceil_mode = true},
      {.name = "same_upper",
       .x = {1, 2, 5, 7},
       .kernel = {2, 3},
       .strides = {2, 2},
       .auto_pad = "SAME_UPPER"},
      {.name = "same_lower",
       .x = {1, 2, 5, 7},
       .kernel = {2, 3},
       .strides = {2, 2},
       .auto_pad = "SAME_LOWER"},
      {.name = "stride_beyond_kernel", .x = {1, 2, 7, 8}, .kernel = {2, 1}, .strides = {3, 4}},
      {.name = "whole_map", .x = {2, 3, 4, 5}, .kernel = {4, 5}},
      {.name = "k1", .x = {1, 2, 3, 4}, .kernel = {1, 1}},
      {.name = "line", .x = {2, 3, 10}, .kernel = {3}, .strides = {2}, .pads = {1, 0}},
      {.name = "line_ceil", .x = {1, 2, 8}, .kernel = {3}, .strides = {2}, .ceil_mode = true},
  };
}

/// Near the adjacent 2 x 2 windows that kernels are specialised for, on an even image. Also such
/// windows of which the last begin inside the image and end outside.
std::vector<Problem> near_two_by_two() {
  std::vector<Problem> problems;
  for (const auto& near : near_windows({"near_k2_stride2", {2, 2}, {2, 2}})) {
    problems.push_back({.name = near.name,
                        .x = {1, 2, 6, 8},
                        .kernel = near.kernel,
                        .strides = near.strides,
                        .pads = near.pads,
                        .dilations = near.dilations});
  }
  for (const Shape& x : {Shape{1, 2, 7, 8}, Shape{1, 2, 6, 9}}) {
    problems.push_back({.name = "near_k2_stride2_ceil_" + std::to_string(x[2]),
                        .x = x,
                        .kernel = {2, 2},
                        .strides = {2, 2},
                        .ceil_mode = true});
  }
  return problems;
}

template <class Op>
Op with_problem(const Problem& problem) {
  Op op;
  op.kernel_shape = problem.kernel;
  op.strides = problem.strides;
  op.pads = problem.pads;
  op.dilations = problem.dilations;
  op.auto_pad = problem.auto_pad;
  op.ceil_mode = problem.ceil_mode;
  return op;
}

/// Distinct values, no two closer than 2 / elements: a finite difference changes no maximum.
InputRule separated(const Shape& shape) {
  const auto elements = shape.elements();
  // A step prime to the count visits each value once. 7919 is a prime above every case's count.
  std::vector<double> values;
  for (std::int64_t i = 0; i < elements; ++i) {
    const auto place = i * 7919 % elements;
    values.push_back(-1 + 2 * static_cast<double>(place) / static_cast<double>(elements));
  }
  return exactly(DType::F32, shape, std::move(values));
}

/// Many equal values, so that the first of several maxima matters.
std::vector<double> tied_values(const Shape& shape) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    values.push_back(static_cast<double>(i * 5 % 3) - 1);
  }
  return values;
}

InputRule tied(const Shape& shape) { return exactly(DType::F32, shape, tied_values(shape)); }

Shape output_shape(const Problem& problem) {
  const auto window = with_problem<MaxPool>(problem).window(problem.x);
  return image_shape(problem.x.rank(), problem.x[0], problem.x[1], window.out);
}

void add_max_pools(std::vector<OpCase>& cases, const Problem& problem) {
  const auto pool = with_problem<MaxPool>(problem);
  const auto gradient = make_op(with_problem<MaxPoolGradient>(problem));
  const auto dy = f32(output_shape(problem));
  cases.push_back({problem.name, make_op(pool), {separated(problem.x)}});
  cases.push_back({problem.name, gradient, {separated(problem.x), dy}});
  cases.push_back({problem.name + "_ties", gradient, {tied(problem.x), dy}});
}

void add_indexed_max_pools(std::vector<OpCase>& cases, const Problem& problem) {
  const auto pool = with_problem<MaxPoolWithIndex>(problem);
  cases.push_back({problem.name, make_op(pool), {separated(problem.x)}, false});
  cases.push_back({problem.name + "_ties", make_op(pool), {tied(problem.x)}, false});
  const std::vector<RefTensor> x = {{{DType::F32, problem.x}, tied_values(problem.x)}};
  std::vector<RefTensor> y;
  for (const auto& spec : pool.infer(std::vector{x[0].spec})) {
    y.push_back({spec, std::vector<double>(static_cast<std::size_t>(spec.shape.elements()))});
  }
  pool.reference(x, y);
  auto gradient = with_problem<MaxPoolIndexGradient>(problem);
  gradient.input_shape = problem.x.dims();
  const auto index = exactly(DType::U8, y[1].spec.shape, y[1].values);
  cases.push_back({problem.name, make_op(gradient), {index, f32(y[0].spec.shape)}});
  cases.push_back(
      {problem.name + "_sum", make_op(gradient), {index, f32(y[0].spec.shape), f32(problem.x)}});
}

/// NaN before, between and after the largest numbers of windows, two in some.
void add_max_pools_of_nan(std::vector<OpCase>& cases, const Problem& problem) {
  constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values;
  for (std::int64_t i = 0; i < problem.x.elements(); ++i)
    values.push_back(i % 5 == 1 || i % 7 == 3 ? undefined : static_cast<double>(i * 5 % 11) - 4);
  const auto x = exactly(DType::F32, problem.x, std::move(values));
  cases.push_back({problem.name + "_nan", make_op(with_problem<MaxPool>(problem)), {x}, false});
  cases.push_back(
      {problem.name + "_nan", make_op(with_problem<MaxPoolWithIndex>(problem)), {x}, false});
  cases.push_back({problem.name + "_nan",
                   make_op(with_problem<MaxPoolGradient>(problem)),
                   {x, f32(output_shape(problem))},
                   false});
}

void add_average_pools(std::vector<OpCase>& cases, const Problem& problem, bool count_include_pad) {
  const auto name = problem.name + (count_include_pad ? "_with_padding" : "");
  auto pool = with_problem<AveragePool>(problem);
  pool.count_include_pad = count_include_pad;
  cases.push_back({name, make_op(pool), {f32(problem.x)}});
  auto gradient = with_problem<AveragePoolGradient>(problem);
  gradient.count_include_pad = count_include_pad;
  gradient.input_shape = problem.x.dims();
  cases.push_back({name, make_op(gradient), {f32(output_shape(problem))}});
}

}  // namespace

void add_pool_cases(std::vector<OpCase>& cases) {
  for (const auto& problem : problems()) {
    add_max_pools(cases, problem);
    add_indexed_max_pools(cases, problem);
    add_average_pools(cases, problem, false);
    add_average_pools(cases, problem, true);
  }
  for (const auto& problem : near_two_by_two()) {
    const auto first = cases.size();
    add_max_pools(cases, problem);
    add_indexed_max_pools(cases, problem);
    add_average_pools(cases, problem, false);
    for (auto i = first; i < cases.size(); ++i) cases[i].check_gradient = false;  // as above
    cases.push_back({problem.name + "_of_int8",
                     make_op(with_problem<MaxPool>(problem)),
                     {of(DType::I8, problem.x, -100, 100)},
                     false});
  }
  const auto integers = with_problem<MaxPool>(problems().front());
  for (const auto dtype : {DType::BF16, DType::F16, DType::I8, DType::I32}) {
    cases.push_back({"of_" + std::string(to_string(dtype)),
                     make_op(integers),
                     {of(dtype, problems().front().x, -100, 100)},
                     false});
  }
  cases.push_back({"all_negative",
                   make_op(with_problem<MaxPool>(
                       {.name = "", .x = {}, .kernel = {3, 3}, .pads = {1, 1, 1, 1}})),
                   {f32({1, 2, 4, 4}, -2, -1)},
                   false});
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const auto& problem : problems()) {
    if (problem.name == "k2_stride2" || problem.name == "k3_stride2_pad1" ||
        problem.name == "overlapping" || problem.name == "ceil_window_starts_outside") {
      add_max_pools_of_nan(cases, problem);
    }
  }
  cases.push_back({"nan",
                   make_op(with_problem<AveragePool>({.name = "", .x = {}, .kernel = {1, 2}})),
                   {exactly(DType::F32, {1, 1, 1, 4}, {1, infinity, -infinity, 2})},
                   false});
  const auto global = make_op(GlobalAveragePool{});
  cases.push_back({"plane", global, {f32({2, 17, 5, 7})}});
  cases.push_back({"line", global, {f32({2, 3, 40})}});
  cases.push_back({"volume", global, {f32({1, 2, 3, 4, 5})}});
  cases.push_back({"single_element", global, {f32({2, 3, 1, 1})}});
}

}  // namespace triptych::conformance
