// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pad.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

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

}  // namespace

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

}  // namespace triptych::conformance
