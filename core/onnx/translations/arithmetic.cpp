// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/translations/arithmetic.h"

namespace triptych::onnx {
namespace {

bool is_small(DType dtype) { return dtype == DType::I8 || dtype == DType::U8; }

}  // namespace

ValueId arithmetic(const NodeImport& n, BinaryKind kind, ValueId a, ValueId b) {
  const auto dtype = n.graph.spec(a).dtype;
  if (!is_small(dtype) || n.graph.spec(b).dtype != dtype) return n.f.apply(kind, a, b);
  return n.cast(n.f.apply(kind, n.cast(a, DType::I32), n.cast(b, DType::I32)), dtype);
}

ValueId compare(const NodeImport& n, BinaryKind kind, ValueId a, ValueId b) {
  const auto dtype = n.graph.spec(a).dtype;
  const bool widens = is_small(dtype) || dtype == DType::Bool;
  if (!widens || n.graph.spec(b).dtype != dtype) return n.f.apply(kind, a, b);
  return n.f.apply(kind, n.cast(a, DType::I32), n.cast(b, DType::I32));
}

ValueId norm_of(const Formula& f, ValueId squares) {
  const auto is_zero = f.apply(BinaryKind::Equal, squares, 0.0);
  const auto root = f.apply(UnaryKind::Sqrt, f.select(is_zero, 1.0, squares));
  return f.select(is_zero, 0.0, root);
}

ValueId broadcast_as_of_old(NodeImport& n) {
  const auto b = n.in(1);
  if (n.opset >= 7) return b;
  const bool broadcasts = n.flag("broadcast");
  const auto first = n.shape(0), second = n.shape(1);
  const auto axis = n.integer("axis", first.rank() - second.rank());
  if (!broadcasts || first.rank() < second.rank()) {
    if (first == second) return b;
    n.broken("its inputs have different shapes, and it does not broadcast");
  }
  if (axis < 0 || axis + second.rank() > first.rank()) n.broken("its axis is out of range");
  Dims dims = second.dims();
  dims.resize(static_cast<std::size_t>(first.rank() - axis), 1);
  return n.reshape(b, std::move(dims));
}

}  // namespace triptych::onnx
