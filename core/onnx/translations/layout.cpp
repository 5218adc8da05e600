// Operators that move elements and compute nothing.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/onnx/element_type.h"
#include "core/onnx/node_import.h"
#include "core/ops/concat.h"
#include "core/ops/expand.h"
#include "core/ops/gather.h"
#include "core/ops/pad.h"
#include "core/ops/reshape.h"
#include "core/ops/slice.h"
#include "core/ops/where.h"

namespace triptych::onnx {
namespace {

std::vector<ValueId> identity(NodeImport& n) { return {n.in(0)}; }

/// In inference, and with a ratio of 0 also in training, the input. The mask is then all true.
std::vector<ValueId> dropout(NodeImport& n) {
  if (n.opset < 7) n.refuse_unless(n.flag("is_test"), "attribute is_test=0 (training)");
  const float old_ratio = n.number("ratio", 0.5F);
  n.ignore("seed");
  n.ignore_input(1);
  if (n.opset >= 12 && n.has(2) && n.known_number(2) != 0) {
    const auto ratio = n.has(1) ? n.known_number(1) : double{old_ratio};
    if (ratio != 0) {
      auto drawn = n.graph.dropout(n.f32(0), ratio);
      drawn[0] = n.like(0, drawn[0]);
      return drawn;
    }
  }
  // PyTorch writes scaled_dot_product_attention(dropout_p) so, even of a network in training.
  n.refuse_unless(
      !n.graph.draws() || n.opset < 12 || n.has(2) || !n.has(1) || n.known_number(1) == 0,
      "a ratio that is not 0 without the input training_mode, so that a network in "
      "training would drop nothing");
  std::vector<ValueId> outputs = {n.in(0)};
  if (n.wants(1)) {
    const auto mask = n.opset >= 10 ? DType::Bool : n.dtype(0);
    outputs.push_back(n.filled({mask, n.shape(0)}, 1));
  }
  return outputs;
}

std::vector<ValueId> reshape(NodeImport& n) {
  Reshape op;
  op.shape = n.known_integers(1);
  op.allowzero = n.flag("allowzero");
  return {n.apply(make_op(op), {n.in(0)})};
}

std::vector<ValueId> flatten(NodeImport& n) {
  Flatten op;
  op.axis = n.integer("axis", 1);
  return {n.apply(make_op(op), {n.in(0)})};
}

std::vector<ValueId> squeeze(NodeImport& n) {
  Squeeze op;
  if (auto axes = n.input_or_attribute(1, "axes", 13)) op.axes = std::move(*axes);
  return {n.apply(make_op(op), {n.in(0)})};
}

std::vector<ValueId> unsqueeze(NodeImport& n) {
  Unsqueeze op;
  auto axes = n.input_or_attribute(1, "axes", 13);
  if (!axes) n.broken("its axes are missing");
  op.axes = std::move(*axes);
  return {n.apply(make_op(op), {n.in(0)})};
}

std::vector<ValueId> transpose(NodeImport& n) { return {n.transpose(n.in(0), n.integers("perm"))}; }

std::vector<ValueId> expand(NodeImport& n) {
  Expand op;
  op.shape = n.known_integers(1);
  return {n.apply(make_op(op), {n.in(0)})};
}

std::vector<ValueId> concat(NodeImport& n) {
  Concat op;
  if (!n.has_attribute("axis")) n.broken("attribute axis is missing");
  op.axis = n.integer("axis", 0);
  return {n.apply(make_op(op), n.all())};
}

std::vector<ValueId> slice(NodeImport& n) {
  Slice op;
  if (n.opset < 10) {
    op.starts = n.integers("starts");
    op.ends = n.integers("ends");
    op.axes = n.integers("axes");
  } else {
    op.starts = n.known_integers(1);
    op.ends = n.known_integers(2);
    if (n.has(3)) op.axes = n.known_integers(3);
    if (n.has(4)) op.steps = n.known_integers(4);
  }
  return {n.apply(make_op(op), {n.in(0)})};
}

std::vector<ValueId> split(NodeImport& n) {
  Split op;
  op.axis = n.integer("axis", 0);
  if (auto sizes = n.input_or_attribute(1, "split", 13)) op.split = std::move(*sizes);
  if (op.split.empty()) {
    op.num_outputs = n.integer("num_outputs", static_cast<std::int64_t>(n.output_count()));
    const auto size = n.shape(0).dim(op.axis);
    if (n.opset < 18 && size % static_cast<std::int64_t>(n.output_count()) != 0) {
      n.broken("its outputs do not divide the input");
    }
  }
  const auto wanted = op.split.empty() ? op.num_outputs : std::ssize(op.split);
  if (wanted != static_cast<std::int64_t>(n.output_count()))
    n.broken("it has another number of outputs");
  return n.graph.emit(make_op(op), std::vector{n.in(0)});
}

/// Pads of all axes of x from those of `axes`.
std::vector<std::int64_t> pads_of_all(NodeImport& n, const std::vector<std::int64_t>& pads,
                                      const std::vector<std::int64_t>& axes) {
  const auto rank = static_cast<std::size_t>(n.rank(0));
  if (pads.size() != 2 * axes.size()) n.broken("its pads do not fit its axes");
  std::vector<std::int64_t> all(2 * rank, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(normalize_axis(axes[i], n.rank(0)));
    all[axis] = pads[i];
    all[rank + axis] = pads[axes.size() + i];
  }
  return all;
}

std::vector<ValueId> pad(NodeImport& n) {
  Pad op;
  op.mode = n.text("mode", "constant");
  n.refuse_unless(op.mode == "constant" || op.mode == "reflect" || op.mode == "edge",
                  fmt::format("attribute mode: {}", op.mode));
  if (n.opset < 11) {
    op.pads = n.integers("pads");
    op.value = n.number("value", 0);
    return {n.apply(make_op(op), {n.in(0)})};
  }
  std::vector<std::int64_t> axes(static_cast<std::size_t>(n.rank(0)));
  std::iota(axes.begin(), axes.end(), 0);
  if (n.has(3)) axes = n.known_integers(3);
  op.pads = pads_of_all(n, n.known_integers(1), axes);
  if (n.has(2)) {
    const auto value = n.known_number(2);
    op.value = static_cast<float>(value);
    n.refuse_unless(is_floating(n.dtype(2)) || double{op.value} == value,
                    "its value is not exact in float32");
  }
  return {n.apply(make_op(op), {n.in(0)})};
}

std::vector<ValueId> gather(NodeImport& n) {
  Gather op;
  op.axis = n.integer("axis", 0);
  if (const auto indices = n.graph.known(n.in(1))) {
    check_indices(Gather::kName, *indices, n.shape(0).dim(op.axis));
  }
  return {n.apply(make_op(op), {n.in(0), n.in(1)})};
}

/// One copy after another along each axis.
std::vector<ValueId> tile(NodeImport& n) {
  const auto repeats = n.known_integers(1);
  const auto shape = n.shape(0);
  if (std::ssize(repeats) != shape.rank()) n.broken("repeats do not fit its dimensions");
  Dims split, expanded, tiled;
  for (std::size_t a = 0; a < repeats.size(); ++a) {
    if (repeats[a] < 0) n.broken("repeats are negative");
    const auto size = shape.dims()[a];
    split.insert(split.end(), {1, size});
    expanded.insert(expanded.end(), {repeats[a], size});
    tiled.push_back(Shape{repeats[a], size}.elements());
  }
  Expand op;
  op.shape = expanded;
  return {n.reshape(n.apply(make_op(op), {n.reshape(n.in(0), split)}), tiled)};
}

void require_blocks(const NodeImport& n, std::int64_t block) {
  if (n.rank(0) != 4 || block < 1 || block > 1 << 15) {
    n.broken("it takes [N, C, H, W] and a blocksize from 1 to 32768");
  }
}

std::vector<ValueId> depth_to_space(NodeImport& n) {
  const auto b = n.integer("blocksize", 0);
  const auto mode = n.text("mode", "DCR");
  const auto s = n.shape(0);
  require_blocks(n, b);
  if (mode != "DCR" && mode != "CRD") n.broken("attribute mode is unknown");
  if (b > s[1] || s[1] % (b * b) != 0) n.broken("blocksize does not divide the channels");
  const auto c = s[1] / (b * b);
  const bool depth_first = mode == "DCR";
  const auto split = n.reshape(
      n.in(0), depth_first ? Dims{s[0], b, b, c, s[2], s[3]} : Dims{s[0], c, b, b, s[2], s[3]});
  const auto moved = n.transpose(split, depth_first ? std::vector<std::int64_t>{0, 3, 4, 1, 5, 2}
                                                    : std::vector<std::int64_t>{0, 1, 4, 2, 5, 3});
  return {n.reshape(moved, {s[0], c, s[2] * b, s[3] * b})};
}

std::vector<ValueId> space_to_depth(NodeImport& n) {
  const auto b = n.integer("blocksize", 0);
  const auto s = n.shape(0);
  require_blocks(n, b);
  if (b > s[2] || s[2] % b != 0 || s[3] % b != 0) n.broken("blocksize does not divide the image");
  const auto split = n.reshape(n.in(0), {s[0], s[1], s[2] / b, b, s[3] / b, b});
  return {
      n.reshape(n.transpose(split, {0, 3, 5, 1, 2, 4}), {s[0], s[1] * b * b, s[2] / b, s[3] / b})};
}

std::vector<ValueId> where(NodeImport& n) {
  return {n.apply(make_op(Where{}), {n.in(0), n.in(1), n.in(2)})};
}

/// x above (or below) the k-th diagonal, else 0.
std::vector<ValueId> trilu(NodeImport& n) {
  const bool upper = n.flag("upper", true);
  const auto s = n.shape(0);
  if (s.rank() < 2) n.broken("its input has less than two dimensions");
  const auto k = n.has(1) ? n.known_integer(1) : 0;
  const auto rows = s.dim(-2), columns = s.dim(-1);
  n.graph.require_room({DType::Bool, Shape{rows, columns}});
  Tensor mask(TensorSpec{DType::Bool, Shape{rows, columns}});
  const auto bits = mask.as<bool>();
  for (std::int64_t i = 0; i < mask.elements(); ++i) {
    const auto above = i % columns - i / columns;
    bits[static_cast<std::size_t>(i)] = upper ? above >= k : above <= k;
  }
  const auto zero = n.filled({n.dtype(0), Shape{}}, 0);
  return {n.apply(make_op(Where{}), {n.graph.constant(std::move(mask)), n.in(0), zero})};
}

std::vector<ValueId> cast(NodeImport& n) {
  if (!n.has_attribute("to")) n.broken("attribute to is missing");
  const auto type = require_element_type(n.integer("to", 0), "attribute to");
  n.ignore("saturate");  // of 8-bit floats
  return {n.cast(n.in(0), type.dtype)};
}

std::vector<ValueId> cast_like(NodeImport& n) {
  n.ignore("saturate");
  return {n.cast(n.in(0), n.dtype(1))};
}

}  // namespace

void add_layout_translations(TranslationList& list) {
  list.insert(list.end(), {{"Identity", identity},
                           {"Dropout", dropout},
                           {"Reshape", reshape},
                           {"Flatten", flatten},
                           {"Squeeze", squeeze},
                           {"Unsqueeze", unsqueeze},
                           {"Transpose", transpose},
                           {"Expand", expand},
                           {"Concat", concat},
                           {"Slice", slice},
                           {"Split", split},
                           {"Pad", pad},
                           {"Gather", gather},
                           {"Tile", tile},
                           {"DepthToSpace", depth_to_space},
                           {"SpaceToDepth", space_to_depth},
                           {"Where", where},
                           {"Trilu", trilu},
                           {"Cast", cast},
                           {"CastLike", cast_like}});
}

}  // namespace triptych::onnx
