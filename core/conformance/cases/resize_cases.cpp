// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <string>

#include "core/conformance/op_case.h"
#include "core/ops/resize.h"

namespace triptych::conformance {
namespace {

Resize by_sizes(Dims sizes, std::string mode, std::string coordinates = "half_pixel") {
  Resize op;
  op.sizes = std::move(sizes);
  op.mode = std::move(mode);
  op.coordinate_transformation_mode = std::move(coordinates);
  return op;
}

Resize by_scales(std::vector<float> scales, std::string mode,
                 std::string coordinates = "half_pixel") {
  Resize op = by_sizes({}, std::move(mode), std::move(coordinates));
  op.scales = std::move(scales);
  return op;
}

ResizeGradient gradient_of(const Resize& op, Dims input_shape) {
  ResizeGradient back;
  back.input_shape = std::move(input_shape);
  back.scales = op.scales;
  back.sizes = op.sizes;
  back.mode = op.mode;
  back.coordinate_transformation_mode = op.coordinate_transformation_mode;
  back.nearest_mode = op.nearest_mode;
  back.cubic_coeff_a = op.cubic_coeff_a;
  back.exclude_outside = op.exclude_outside;
  return back;
}

/// Forward and backward of one resize of f32 x.
void add_pair(std::vector<OpCase>& cases, const std::string& name, const Resize& op, Shape x) {
  const auto y = op.infer(std::vector<TensorSpec>{{DType::F32, x}}).front();
  cases.push_back({name, make_op(op), {f32(x)}});
  cases.push_back({name, make_op(gradient_of(op, x.dims())), {f32(y.shape)}});
}

void add_nearest_cases(std::vector<OpCase>& cases) {
  for (const std::string mode : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
    for (const std::string coordinates :
         {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
      auto up = by_sizes({1, 2, 6, 7}, "nearest", coordinates);
      up.nearest_mode = mode;
      add_pair(cases, fmt::format("nearest_up_{}_{}", mode, coordinates), up, {1, 2, 3, 4});
      auto down = by_sizes({1, 1, 3, 3}, "nearest", coordinates);
      down.nearest_mode = mode;
      add_pair(cases, fmt::format("nearest_down_{}_{}", mode, coordinates), down, {1, 1, 6, 8});
    }
  }
  add_pair(cases, "nearest_twice", by_scales({1, 1, 2, 2}, "nearest", "asymmetric"), {2, 3, 4, 5});
  add_pair(cases, "nearest_scale_1_7", by_scales({1.7F}, "nearest"), {5});
  add_pair(cases, "nearest_scale_0_6", by_scales({0.6F, 1}, "nearest"), {7, 3});
  add_pair(cases, "nearest_rows_apart", by_sizes({3, 1, 5}, "nearest"), {3, 4, 5});
  add_pair(cases, "nearest_3d", by_sizes({1, 3, 5, 2}, "nearest"), {1, 2, 3, 4});
  add_pair(cases, "nearest_rank5", by_scales({1, 1, 2, 2, 2}, "nearest"), {1, 2, 2, 3, 2});
  add_pair(cases, "nearest_batch", by_sizes({4, 3}, "nearest"), {2, 3});
  add_pair(cases, "nearest_scalar", by_sizes({}, "nearest"), {});
  add_pair(cases, "nearest_to_empty", by_sizes({2, 0}, "nearest"), {2, 3});
  for (const auto dtype : kAllDTypes) {
    const double high = dtype == DType::Bool ? 1 : 100;
    cases.push_back({"nearest_" + std::string(to_string(dtype)),
                     make_op(by_sizes({2, 7}, "nearest")),
                     {of(dtype, {3, 4}, 0, high)},
                     dtype == DType::F32});
  }
}

void add_linear_cases(std::vector<OpCase>& cases) {
  for (const std::string coordinates :
       {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
    add_pair(cases, "linear_1d_up_" + coordinates, by_sizes({1, 1, 9}, "linear", coordinates),
             {1, 1, 4});
    add_pair(cases, "linear_2d_up_" + coordinates, by_sizes({2, 2, 6, 7}, "linear", coordinates),
             {2, 2, 3, 4});
    add_pair(cases, "linear_2d_down_" + coordinates, by_sizes({1, 2, 3, 3}, "linear", coordinates),
             {1, 2, 5, 8});
    add_pair(cases, "linear_to_one_" + coordinates, by_sizes({1, 1, 1}, "linear", coordinates),
             {1, 4, 5});
    add_pair(cases, "linear_from_one_" + coordinates, by_sizes({1, 4}, "linear", coordinates),
             {1, 1});
  }
  // Rows of several pieces, and outputs with one tap between those with two.
  add_pair(cases, "linear_wide", by_sizes({1, 2, 3, 611}, "linear"), {1, 2, 2, 300});
  add_pair(cases, "linear_wide_exact", by_sizes({1, 5, 577}, "linear", "align_corners"),
           {1, 3, 73});
  add_pair(cases, "linear_wide_copy", by_scales({3, 1}, "linear"), {2, 300});
  // Rows between whole vectors, one behind the other.
  add_pair(cases, "linear_rows", by_sizes({1, 3, 33, 41}, "linear"), {1, 3, 9, 11});
  add_pair(cases, "linear_twice", by_scales({1, 1, 2, 2}, "linear"), {1, 2, 4, 4});
  add_pair(cases, "linear_scale_1_7", by_scales({1, 1.7F, 0.8F}, "linear"), {2, 5, 6});
  add_pair(cases, "linear_3d", by_sizes({1, 3, 5, 4}, "linear"), {1, 2, 3, 3});
  add_pair(cases, "linear_rank5", by_scales({1, 1, 2, 1.5F, 2}, "linear"), {1, 2, 2, 2, 3});
  add_pair(cases, "linear_channels_last", by_scales({1, 2, 2, 1}, "linear"), {1, 3, 3, 5});
  add_pair(cases, "linear_same_size_shifted", by_scales({1.1F}, "linear", "asymmetric"), {5});
}

void add_cubic_cases(std::vector<OpCase>& cases) {
  for (const std::string coordinates : {"half_pixel", "align_corners", "asymmetric"}) {
    for (const bool excludes : {false, true}) {
      auto op = by_sizes({1, 2, 5, 7}, "cubic", coordinates);
      op.exclude_outside = excludes;
      const auto name = fmt::format("cubic_{}{}", coordinates, excludes ? "_within" : "");
      add_pair(cases, name + "_up", op, {1, 2, 3, 4});
      op.cubic_coeff_a = -0.5F;
      add_pair(cases, name + "_down", op, {1, 2, 8, 9});
    }
  }
  add_pair(cases, "cubic_twice", by_scales({1, 2}, "cubic"), {2, 4});
  add_pair(cases, "cubic_from_one", by_sizes({3}, "cubic"), {1});
}

}  // namespace

void add_resize_cases(std::vector<OpCase>& cases) {
  add_nearest_cases(cases);
  add_linear_cases(cases);
  add_cubic_cases(cases);
}

}  // namespace triptych::conformance
