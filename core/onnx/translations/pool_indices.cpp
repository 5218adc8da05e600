// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/translations/pool_indices.h"

#include <limits>

#include "core/ops/pad.h"
#include "core/ops/slice.h"
#include "core/ops/where.h"

namespace triptych::onnx {
namespace {

/// x with the window's padding, as low as values get, and room for every window.
ValueId padded(const NodeImport& n, const Window& w, ValueId x) {
  Pad pad;
  pad.pads.assign(8, 0);
  pad.value = -std::numeric_limits<float>::infinity();
  for (std::size_t a = 0; a < 2; ++a) {
    const auto reach = (w.out[a] - 1) * w.stride[a] + w.extent(static_cast<int>(a));
    pad.pads[2 + a] = w.pad_begin[a];
    pad.pads[6 + a] = std::max<std::int64_t>(reach - w.in[a] - w.pad_begin[a], 0);
  }
  return n.apply(make_op(std::move(pad)), {x});
}

/// The elements that tap (row, column) of every window meets.
ValueId tap(const NodeImport& n, const Window& w, ValueId x, const std::int64_t (&at)[2]) {
  Slice slice;
  slice.axes = {2, 3};
  for (int a = 0; a < 2; ++a) {
    const auto first = at[a] * w.dilation[a];
    slice.starts.push_back(first);
    slice.ends.push_back(first + (w.out[a] - 1) * w.stride[a] + 1);
    slice.steps.push_back(w.stride[a]);
  }
  return n.apply(make_op(std::move(slice)), {x});
}

/// The place in its plane that tap (row, column) of each window meets: [1, 1, rows, columns].
ValueId places(const NodeImport& n, const Window& w, bool column_major,
               const std::int64_t (&at)[2]) {
  Tensor tensor(TensorSpec{DType::I64, {1, 1, w.out[0], w.out[1]}});
  auto place = tensor.as<std::int64_t>().begin();
  for (std::int64_t y = 0; y < w.out[0]; ++y) {
    for (std::int64_t x = 0; x < w.out[1]; ++x) {
      const auto row = y * w.stride[0] - w.pad_begin[0] + at[0] * w.dilation[0];
      const auto column = x * w.stride[1] - w.pad_begin[1] + at[1] * w.dilation[1];
      *place++ = column_major ? column * w.in[0] + row : row * w.in[1] + column;
    }
  }
  return n.graph.constant(std::move(tensor));
}

/// Where each plane begins: [N, C, 1, 1].
ValueId plane_starts(const NodeImport& n, const Shape& x) {
  Tensor tensor(TensorSpec{DType::I64, {x[0], x[1], 1, 1}});
  const auto starts = tensor.as<std::int64_t>();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    starts[i] = static_cast<std::int64_t>(i) * x[2] * x[3];
  }
  return n.graph.constant(std::move(tensor));
}

}  // namespace

ValueId pool_indices(const NodeImport& n, const MaxPool& op, ValueId x, bool column_major) {
  const Shape shape = n.graph.spec(x).shape;
  n.refuse_unless(shape.rank() == 4 && is_floating(n.graph.spec(x).dtype),
                  "output 1 (Indices) of what is no image of floats");
  const auto w = op.window(shape);
  const auto image = padded(n, w, x);
  ValueId most, where;
  for (std::int64_t row = 0; row < w.kernel[0]; ++row) {
    for (std::int64_t column = 0; column < w.kernel[1]; ++column) {
      const std::int64_t at[2] = {row, column};
      const auto values = tap(n, w, image, at), here = places(n, w, column_major, at);
      if (!most.valid()) {
        most = values;
        const auto zeros = n.filled({DType::I64, n.graph.spec(values).shape}, 0);
        where = n.f.add(zeros, here);
        continue;
      }
      const auto is_number = n.f.apply(BinaryKind::Equal, values, values);
      const auto more = n.f.apply(BinaryKind::Or, n.f.apply(BinaryKind::Greater, values, most),
                                  n.f.apply(UnaryKind::Not, is_number));  // MaxPool's rule
      most = n.f.select(more, values, most);
      where = n.f.select(more, here, where);
    }
  }
  return n.f.add(where, plane_starts(n, shape));
}

}  // namespace triptych::onnx
