// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>

#include "core/conformance/op_case.h"
#include "core/ops/concat.h"
#include "core/ops/expand.h"
#include "core/ops/gather.h"
#include "core/ops/pad.h"
#include "core/ops/reshape.h"
#include "core/ops/slice.h"
#include "core/ops/transpose.h"

namespace triptych::conformance {
namespace {

constexpr auto kEnd = std::numeric_limits<std::int64_t>::max();
constexpr auto kBegin = std::numeric_limits<std::int64_t>::min();

OpPtr reshape(Dims shape, bool allowzero = false) {
  Reshape op;
  op.shape = std::move(shape);
  op.allowzero = allowzero;
  return make_op(op);
}

OpPtr flatten(std::int64_t axis) {
  Flatten op;
  op.axis = axis;
  return make_op(op);
}

template <class AxesOp>
OpPtr with_axes(const Dims& axes) {
  AxesOp op;
  op.axes = axes;
  return make_op(op);
}

OpPtr transpose(Dims perm) {
  Transpose op;
  op.perm = std::move(perm);
  return make_op(op);
}

OpPtr concat(std::int64_t axis) {
  Concat op;
  op.axis = axis;
  return make_op(op);
}

OpPtr split(std::int64_t axis, Dims sizes, std::int64_t outputs = 0) {
  Split op;
  op.axis = axis;
  op.split = std::move(sizes);
  op.num_outputs = outputs;
  return make_op(op);
}

OpPtr slice(Dims starts, Dims ends, Dims axes = {}, Dims steps = {}) {
  Slice op;
  op.starts = std::move(starts);
  op.ends = std::move(ends);
  op.axes = std::move(axes);
  op.steps = std::move(steps);
  return make_op(op);
}

OpPtr slice_gradient(Dims shape, Dims starts, Dims ends, Dims steps) {
  SliceGradient op;
  op.input_shape = std::move(shape);
  op.starts = std::move(starts);
  op.ends = std::move(ends);
  op.steps = std::move(steps);
  return make_op(op);
}

OpPtr pad(Dims pads, std::string mode = "constant", float value = 0) {
  Pad op;
  op.pads = std::move(pads);
  op.mode = std::move(mode);
  op.value = value;
  return make_op(op);
}

OpPtr pad_gradient(Dims shape, Dims pads, std::string mode) {
  PadGradient op;
  op.input_shape = std::move(shape);
  op.pads = std::move(pads);
  op.mode = std::move(mode);
  return make_op(op);
}

OpPtr expand(Dims shape) {
  Expand op;
  op.shape = std::move(shape);
  return make_op(op);
}

OpPtr gather(std::int64_t axis) {
  Gather op;
  op.axis = axis;
  return make_op(op);
}

OpPtr gather_gradient(std::int64_t axis, Dims shape) {
  GatherGradient op;
  op.axis = axis;
  op.input_shape = std::move(shape);
  return make_op(op);
}

InputRule indices(DType dtype, Shape shape, std::vector<double> values) {
  auto rule = exactly(dtype, std::move(shape), std::move(values));
  rule.constant = true;
  return rule;
}

/// `op` on x of every dtype; whole numbers that all of them hold.
void add_dtypes(std::vector<OpCase>& cases, const std::string& name, const OpPtr& op,
                const Shape& x) {
  for (const auto dtype : kAllDTypes) {
    const double high = dtype == DType::Bool ? 1 : 100;
    cases.push_back({name + "_" + std::string(to_string(dtype)),
                     op,
                     {of(dtype, x, 0, high)},
                     dtype == DType::F32});
  }
}

void add_reshape_cases(std::vector<OpCase>& cases) {
  cases.push_back({"same", reshape({2, 3}), {f32({2, 3})}});
  cases.push_back({"infer_last", reshape({2, -1}), {f32({2, 3, 4})}});
  cases.push_back({"copy_and_infer", reshape({0, -1, 2}), {f32({3, 4, 5})}});
  cases.push_back({"to_scalar", reshape({}), {f32({1, 1})}});
  cases.push_back({"from_scalar", reshape({1, 1, 1}), {f32({})}});
  cases.push_back({"to_rank5", reshape({2, 1, 3, 2, 5}), {f32({12, 5})}});
  cases.push_back({"empty_allowzero", reshape({3, 0}, true), {f32({0, 7})}});
  cases.push_back({"empty_copied_zero", reshape({0, 5}), {f32({0, 5})}});
  add_dtypes(cases, "flat", reshape({-1}), {3, 5});
  cases.push_back({"axis1", flatten(1), {f32({2, 3, 4})}});
  cases.push_back({"axis0", flatten(0), {f32({2, 3, 4})}});
  cases.push_back({"axis_behind_last", flatten(3), {f32({2, 3, 4})}});
  cases.push_back({"axis_negative", flatten(-1), {f32({2, 3, 4})}});
  cases.push_back({"scalar", flatten(0), {f32({})}});
  cases.push_back({"all", with_axes<Squeeze>({}), {f32({1, 3, 1, 2})}});
  cases.push_back({"some", with_axes<Squeeze>({0, -1}), {f32({1, 3, 1, 1})}});
  cases.push_back({"to_scalar", with_axes<Squeeze>({}), {f32({1, 1})}});
  cases.push_back({"front_and_back", with_axes<Unsqueeze>({0, -1}), {f32({2, 3})}});
  cases.push_back({"unsorted", with_axes<Unsqueeze>({3, 1}), {f32({2, 3})}});
  cases.push_back({"scalar", with_axes<Unsqueeze>({0}), {f32({})}});
  cases.push_back({"rank3", make_op(Identity{}), {f32({2, 3, 4})}});
  cases.push_back({"empty", make_op(Identity{}), {f32({0, 2})}});
}

void add_transpose_cases(std::vector<OpCase>& cases) {
  cases.push_back({"scalar", transpose({}), {f32({})}});
  cases.push_back({"vector", transpose({0}), {f32({5})}});
  cases.push_back({"matrix", transpose({}), {f32({5, 7})}});
  cases.push_back({"matrix_beyond_tiles", transpose({1, 0}), {f32({130, 67})}});
  cases.push_back({"nchw_to_nhwc", transpose({0, 2, 3, 1}), {f32({2, 5, 4, 3})}});
  cases.push_back({"nhwc_to_nchw", transpose({0, 3, 1, 2}), {f32({2, 4, 3, 5})}});
  cases.push_back({"swap_outer", transpose({1, 0, 2}), {f32({3, 4, 6})}});
  cases.push_back({"rank5_reversed", transpose({}), {f32({2, 3, 4, 2, 3})}});
  cases.push_back({"rank5_mixed", transpose({3, 0, 4, 2, 1}), {f32({2, 3, 4, 2, 3})}});
  cases.push_back({"identity", transpose({0, 1, 2}), {f32({2, 3, 4})}});
  cases.push_back({"negative_axes", transpose({-1, 0}), {f32({2, 3})}});
  cases.push_back({"ones", transpose({2, 0, 1}), {f32({1, 6, 1})}});
  cases.push_back({"empty", transpose({1, 0}), {f32({0, 3})}});
  add_dtypes(cases, "matrix", transpose({1, 0}), {9, 35});
}

void add_concat_cases(std::vector<OpCase>& cases) {
  cases.push_back({"one", concat(0), {f32({2, 3})}});
  cases.push_back({"rows", concat(0), {f32({2, 3}), f32({1, 3})}});
  cases.push_back({"columns", concat(-1), {f32({2, 3}), f32({2, 1}), f32({2, 4})}});
  cases.push_back({"channels", concat(1), {f32({2, 3, 4, 4}), f32({2, 5, 4, 4})}});
  cases.push_back({"vectors", concat(0), {f32({3}), f32({1})}});
  cases.push_back({"rank5_middle", concat(2), {f32({2, 2, 1, 3, 2}), f32({2, 2, 3, 3, 2})}});
  cases.push_back({"with_empty", concat(1), {f32({2, 3}), f32({2, 0}), f32({2, 2})}});
  cases.push_back(
      {"i64", concat(0), {of(DType::I64, {2, 2}, -9, 9), of(DType::I64, {1, 2}, -9, 9)}, false});
  cases.push_back(
      {"u8", concat(1), {of(DType::U8, {2, 3}, 0, 255), of(DType::U8, {2, 2}, 0, 255)}, false});
  cases.push_back({"bf16", concat(1), {of(DType::BF16, {2, 3}), of(DType::BF16, {2, 2})}, false});
  cases.push_back({"sizes", split(1, {1, 3, 2}), {f32({2, 6})}});
  cases.push_back({"with_empty_part", split(0, {0, 3}), {f32({3, 2})}});
  cases.push_back({"equal", split(-1, {}, 3), {f32({2, 6})}});
  cases.push_back({"last_smaller", split(0, {}, 3), {f32({7, 2})}});
}

void add_slice_cases(std::vector<OpCase>& cases) {
  cases.push_back({"rows", slice({1}, {3}), {f32({4, 5})}});
  cases.push_back({"both_axes", slice({1, 0}, {3, 4}), {f32({4, 5})}});
  cases.push_back({"last_axis", slice({2}, {kEnd}, {-1}), {f32({3, 4, 5})}});
  cases.push_back({"negative_bounds", slice({-3}, {-1}, {1}), {f32({3, 5})}});
  cases.push_back({"clamped", slice({kBegin}, {kEnd}, {1}), {f32({3, 5})}});
  cases.push_back({"step2", slice({1}, {kEnd}, {1}, {2}), {f32({3, 6})}});
  cases.push_back({"step3", slice({0}, {8}, {0}, {3}), {f32({8, 2})}});
  cases.push_back({"step2_both", slice({0, 1}, {7, 7}, {2, 3}, {2, 2}), {f32({2, 2, 7, 7})}});
  cases.push_back({"step_beyond_axis", slice({1}, {kEnd}, {0}, {kEnd}), {f32({5, 2})}});
  cases.push_back({"reversed", slice({-1}, {kBegin}, {1}, {-1}), {f32({3, 5})}});
  cases.push_back({"reversed_step2", slice({kEnd}, {0}, {0}, {-2}), {f32({6, 3})}});
  cases.push_back({"reversed_all",
                   slice({-1, -1, -1}, {kBegin, kBegin, kBegin}, {}, {-1, -3, -2}),
                   {f32({2, 7, 5})}});
  cases.push_back({"unsorted_axes", slice({1, 0}, {3, 2}, {2, 0}), {f32({3, 2, 4})}});
  cases.push_back({"empty", slice({3}, {1}), {f32({4, 2})}});
  cases.push_back({"of_empty", slice({0}, {kEnd}, {1}, {-1}), {f32({3, 0})}});
  cases.push_back({"nothing_cut", slice({}, {}), {f32({2, 3})}});
  cases.push_back({"rank5", slice({1, 1, 0}, {3, 3, 2}, {0, 2, 4}), {f32({3, 2, 4, 2, 3})}});
  add_dtypes(cases, "step2", slice({1}, {kEnd}, {1}, {2}), {3, 9});
  cases.push_back({"inside", slice_gradient({4, 5}, {1, 1}, {3, 4}, {}), {f32({2, 3})}});
  cases.push_back({"step2", slice_gradient({4, 5}, {0, 0}, {4, 5}, {2, 2}), {f32({2, 3})}});
  cases.push_back(
      {"reversed", slice_gradient({4, 5}, {-1, -1}, {kBegin, 1}, {-1, -3}), {f32({4, 1})}});
  cases.push_back({"empty", slice_gradient({4, 5}, {2}, {2}, {}), {f32({0, 5})}});
}

void add_pad_cases(std::vector<OpCase>& cases) {
  cases.push_back({"scalar", pad({}), {f32({})}});
  cases.push_back({"vector", pad({2, 1}, "constant", 1.5F), {f32({3})}});
  cases.push_back({"image", pad({0, 0, 1, 2, 0, 0, 2, 1}), {f32({2, 2, 3, 4})}});
  cases.push_back({"crop", pad({-1, 0, 0, -2}), {f32({4, 5})}});
  cases.push_back({"crop_and_pad", pad({-1, 2, 1, -3}, "constant", -2), {f32({4, 5})}});
  cases.push_back({"crop_all", pad({-4, 0, 2, 1}, "constant", 3), {f32({4, 2})}});
  cases.push_back({"of_empty", pad({1, 0, 1, 0}, "constant", 7), {f32({0, 2})}});
  cases.push_back({"rank5", pad({1, 0, 0, 1, 0, 0, 0, 1, 1, 0}), {f32({2, 1, 2, 3, 2})}});
  add_dtypes(cases, "value3", pad({1, 2, 0, 1}, "constant", 3), {2, 5});
  cases.push_back({"reflect", pad({2, 1}, "reflect"), {f32({4})}});
  cases.push_back({"reflect_image", pad({0, 0, 1, 2, 0, 0, 1, 1}, "reflect"), {f32({1, 2, 3, 4})}});
  cases.push_back({"reflect_to_and_fro", pad({5, 7}, "reflect"), {f32({3})}});
  cases.push_back({"reflect_one", pad({2, 2}, "reflect"), {f32({1})}});
  cases.push_back({"reflect_crop", pad({-1, 2, 1, -1}, "reflect"), {f32({4, 5})}});
  cases.push_back({"edge", pad({3, 2}, "edge"), {f32({3})}});
  cases.push_back({"edge_image", pad({0, 0, 1, 2, 0, 0, 1, 1}, "edge"), {f32({1, 2, 3, 4})}});
  cases.push_back({"edge_crop", pad({-2, 1, 1, -1}, "edge"), {f32({4, 5})}});
  cases.push_back({"edge_i8", pad({1, 1}, "edge"), {of(DType::I8, {4}, -128, 127)}, false});
  cases.push_back({"reflect_f16", pad({1, 1}, "reflect"), {of(DType::F16, {4})}, false});
  cases.push_back({"reflect_i64", pad({1, 2}, "reflect"), {of(DType::I64, {4}, -9, 9)}, false});
  cases.push_back({"constant", pad_gradient({3, 4}, {1, 2, -1, 1}, "constant"), {f32({3, 7})}});
  cases.push_back({"reflect", pad_gradient({3, 4}, {1, 2, 2, 3}, "reflect"), {f32({6, 9})}});
  cases.push_back({"edge", pad_gradient({2, 3, 4}, {0, 3, 2, 0, 1, 9}, "edge"), {f32({2, 7, 15})}});
  cases.push_back({"scalar", pad_gradient({}, {}, "constant"), {f32({})}});
}

void add_expand_cases(std::vector<OpCase>& cases) {
  cases.push_back({"scalar", expand({2, 3}), {f32({})}});
  cases.push_back({"rows", expand({4, 3}), {f32({3})}});
  cases.push_back({"columns", expand({2, 5}), {f32({2, 1})}});
  cases.push_back({"channels", expand({2, 3, 4, 4}), {f32({3, 1, 1})}});
  cases.push_back({"both_ways", expand({3, 1}), {f32({1, 4})}});
  cases.push_back({"narrower_shape", expand({1}), {f32({2, 3})}});
  cases.push_back({"alternating", expand({2, 3, 2, 3, 2}), {f32({2, 1, 2, 1, 2})}});
  cases.push_back({"to_empty", expand({0, 3}), {f32({1, 3})}});
  add_dtypes(cases, "columns", expand({3, 4}), {3, 1});
}

void add_gather_cases(std::vector<OpCase>& cases) {
  const auto some = [](DType dtype) { return indices(dtype, {4}, {2, 0, -1, 2}); };
  const auto grid = indices(DType::I64, {2, 3}, {0, -2, 1, 1, -1, 0});
  cases.push_back({"vector", gather(0), {f32({5}), some(DType::I64)}});
  cases.push_back({"one", gather(0), {f32({5, 2}), indices(DType::I64, {}, {-2})}});
  cases.push_back({"axis0", gather(0), {f32({3, 4, 5}), some(DType::I32)}});
  cases.push_back({"axis1", gather(1), {f32({3, 4, 5}), some(DType::I64)}});
  cases.push_back({"axis2", gather(-1), {f32({3, 4, 5}), some(DType::I32)}});
  cases.push_back({"grid_axis0", gather(0), {f32({2, 3, 2}), grid}});
  cases.push_back({"grid_axis1", gather(1), {f32({2, 3, 2}), grid}});
  cases.push_back({"grid_axis2", gather(2), {f32({2, 3, 2}), grid}});
  cases.push_back({"none", gather(0), {f32({3, 2}), of(DType::I64, {0})}});
  cases.push_back({"rank5", gather(2), {f32({2, 1, 4, 2, 3}), some(DType::I64)}});
  cases.push_back({"computed_indices", gather(0), {f32({6, 3}), of(DType::I64, {2, 2}, -6, 5)}});
  cases.push_back({"computed_out_of_range",
                   gather(0),
                   {f32({3, 2}), exactly(DType::I32, {4}, {9, -9, 2, -3})}});
  for (const auto dtype : kAllDTypes) {
    cases.push_back({"rows_" + std::string(to_string(dtype)),
                     gather(0),
                     {of(dtype, {4, 3}, 0, 1), some(DType::I64)},
                     dtype == DType::F32});
  }
  cases.push_back({"axis0", gather_gradient(0, {3, 5}), {f32({4, 5}), some(DType::I64)}, false});
  cases.push_back(
      {"axis1", gather_gradient(1, {2, 3, 70}), {f32({2, 4, 70}), some(DType::I32)}, false});
  cases.push_back({"last_axis", gather_gradient(-1, {4, 3}), {f32({4, 2, 3}), grid}, false});
  cases.push_back({"many_on_one",
                   gather_gradient(0, {1, 2}),
                   {f32({40, 2}), indices(DType::I64, {40}, std::vector<double>(40, 0.0))},
                   false});
  cases.push_back({"none", gather_gradient(0, {3, 2}), {f32({0, 2}), of(DType::I64, {0})}, false});
}

}  // namespace

void add_movement_cases(std::vector<OpCase>& cases) {
  add_reshape_cases(cases);
  add_transpose_cases(cases);
  add_concat_cases(cases);
  add_slice_cases(cases);
  add_pad_cases(cases);
  add_expand_cases(cases);
  add_gather_cases(cases);
}

}  // namespace triptych::conformance
