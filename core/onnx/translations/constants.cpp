// Values that are known when a model is read.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/base/checked_math.h"
#include "core/onnx/node_import.h"

namespace triptych::onnx {
namespace {

Tensor integers_tensor(const std::vector<std::int64_t>& values) {
  return Tensor(Shape{std::ssize(values)}, values);
}

std::vector<ValueId> constant(NodeImport& n) {
  if (auto value = n.tensor("value"))
    return {n.graph.add_constant("onnx.constant", std::move(value))};
  if (n.has_attribute("value_float")) {
    return {n.graph.constant(scalar_tensor(n.number("value_float", 0)))};
  }
  if (n.has_attribute("value_int")) {
    return {n.graph.constant(scalar_tensor(n.integer("value_int", 0)))};
  }
  if (n.has_attribute("value_floats")) {
    const auto values = n.numbers("value_floats");
    return {n.graph.constant(Tensor(Shape{std::ssize(values)}, values))};
  }
  if (n.has_attribute("value_ints")) {
    return {n.graph.constant(integers_tensor(n.integers("value_ints")))};
  }
  n.refuse("it has no value of a kind that is supported");
}

std::vector<ValueId> constant_of_shape(NodeImport& n) {
  const auto value = n.tensor("value");
  if (value != nullptr && value->elements() != 1) n.broken("attribute value is not one element");
  const TensorSpec spec{value == nullptr ? DType::F32 : value->dtype(), Shape(n.known_integers(0))};
  return {n.filled(spec, value == nullptr ? 0 : to_doubles(*value).front())};
}

/// The sizes of the axes from `start` to `end`, cut to the existing range.
std::vector<ValueId> shape(NodeImport& n) {
  const auto dims = n.shape(0).dims();
  const auto rank = std::ssize(dims);
  const auto place = [&](std::int64_t axis) {
    return std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const auto start = place(n.integer("start", 0));
  const auto end = std::max(start, place(n.integer("end", rank)));
  return {n.graph.constant(integers_tensor({dims.begin() + start, dims.begin() + end}))};
}

std::vector<ValueId> size(NodeImport& n) {
  return {n.graph.constant(scalar_tensor(n.shape(0).elements()))};
}

std::vector<ValueId> range(NodeImport& n) {
  const auto dtype = n.dtype(0);
  double bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    bounds[i] = n.known_number(i);
    if (n.dtype(i) != dtype) n.broken("its inputs have several types");
  }
  const auto [start, limit, delta] = bounds;
  const auto count = std::max(0.0, std::ceil((limit - start) / delta));
  if (!(count < 0x1p31)) n.broken("it has no end");
  const TensorSpec spec{dtype, Shape{static_cast<std::int64_t>(count)}};
  n.graph.require_room(spec);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = start + static_cast<double>(i) * delta;
  return {n.graph.constant(from_doubles(spec, values))};
}

}  // namespace

void add_constants_translations(TranslationList& list) {
  list.insert(list.end(), {{"Constant", constant},
                           {"ConstantOfShape", constant_of_shape},
                           {"Shape", shape},
                           {"Size", size},
                           {"Range", range}});
}

}  // namespace triptych::onnx
