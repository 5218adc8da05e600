// Resampling.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/resize.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/onnx/node_import.h"

namespace triptych::onnx {
namespace {

constexpr std::string_view kCoordinates[] = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                             "asymmetric", "tf_half_pixel_for_nn"};

ValueId resized(const NodeImport& n, const Resize& op) {
  if (op.mode == "nearest") return n.apply(make_op(op), {n.in(0)});
  return n.like(0, n.apply(make_op(op), {n.f32(0)}));
}

/// "bilinear", "trilinear" and "bicubic" are older names.
void set_mode(NodeImport& n, Resize& op) {
  op.mode = n.text("mode", "nearest");
  if (op.mode == "bilinear" || op.mode == "trilinear") op.mode = "linear";
  if (op.mode == "bicubic") op.mode = "cubic";
  n.refuse_unless(op.mode == "nearest" || op.mode == "linear" || op.mode == "cubic",
                  fmt::format("attribute mode: {}", op.mode));
}

std::vector<ValueId> upsample(NodeImport& n) {
  Resize op;
  set_mode(n, op);
  op.coordinate_transformation_mode = "asymmetric";
  op.nearest_mode = "floor";
  op.scales = n.opset < 9 ? n.numbers("scales") : n.known_numbers(1);
  return {resized(n, op)};
}

void set_coordinates(NodeImport& n, Resize& op) {
  op.coordinate_transformation_mode = n.text("coordinate_transformation_mode", "half_pixel");
  op.nearest_mode = n.text("nearest_mode", "round_prefer_floor");
  auto& mode = op.coordinate_transformation_mode;
  n.refuse_unless(std::ranges::count(kCoordinates, mode) > 0,
                  fmt::format("attribute coordinate_transformation_mode: {}", mode));
  op.cubic_coeff_a = n.number("cubic_coeff_a", -0.75F);
  op.exclude_outside = n.flag("exclude_outside");
  n.ignore("extrapolation_value");  // of tf_crop_and_resize alone
  n.refuse_unless(!op.exclude_outside || op.mode == "cubic", "attribute exclude_outside");
  n.refuse_unless(n.integer("antialias", 0) == 0, "attribute antialias");
  n.refuse_unless(n.text("keep_aspect_ratio_policy", "stretch") == "stretch",
                  "attribute keep_aspect_ratio_policy");
}

bool is_given(const NodeImport& n, std::size_t input) {
  return n.has(input) && n.shape(input).elements() > 0;
}

/// `all` with the values of the attribute `axes` replaced, or without it `values`.
template <class T>
std::vector<T> of_all_axes(NodeImport& n, const std::vector<T>& values, std::vector<T> all) {
  if (!n.has_attribute("axes")) return values;
  const auto axes = n.integers("axes");
  if (axes.size() != values.size()) n.broken("its axes do not fit its scales or sizes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    all[static_cast<std::size_t>(normalize_axis(axes[i], n.rank(0)))] = values[i];
  }
  return all;
}

std::vector<ValueId> resize(NodeImport& n) {
  Resize op;
  set_mode(n, op);
  if (n.opset < 11) {
    op.coordinate_transformation_mode = "asymmetric";
    op.nearest_mode = "floor";
    op.scales = n.known_numbers(1);
    return {resized(n, op)};
  }
  set_coordinates(n, op);
  n.ignore_input(1);  // the region of tf_crop_and_resize
  n.ignore_input(2);  // may be present and empty next to sizes
  if (is_given(n, 3)) {
    op.sizes = of_all_axes(n, n.known_integers(3), n.shape(0).dims());
  } else if (is_given(n, 2)) {
    op.scales = of_all_axes(n, n.known_numbers(2), std::vector<float>(n.shape(0).dims().size(), 1));
  } else {
    n.broken("it has neither scales nor sizes");
  }
  return {resized(n, op)};
}

}  // namespace

void add_resize_translations(TranslationList& list) {
  list.insert(list.end(), {{"Upsample", upsample}, {"Resize", resize}});
}

}  // namespace triptych::onnx
