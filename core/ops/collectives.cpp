// SPDX-License-Identifier: Apache-2.0
#include "core/ops/collectives.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "core/ops/elementwise.h"

namespace triptych {
namespace {

void require_some(std::string_view op, Specs inputs) {
  require_inputs(op, inputs, 1, std::numeric_limits<std::size_t>::max());
}

void require_floats(std::string_view op, Specs inputs) {
  require_some(op, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) require_dtype(op, inputs, i, DType::F32);
}

void require_parts(std::string_view op, std::int64_t parts) {
  if (parts < 1) throw_invalid(op, fmt::format("parts is {}; at least 1", parts));
}

void append_shape(std::vector<std::int64_t>& list, const Shape& shape) {
  list.push_back(shape.rank());
  for (std::int64_t d = 0; d < shape.rank(); ++d) list.push_back(shape[d]);
}

/// The specs that a list of ranks and dimensions stands for.
std::vector<TensorSpec> specs_of(std::string_view op, const std::vector<std::int64_t>& list) {
  std::vector<TensorSpec> specs;
  for (std::size_t i = 0; i < list.size();) {
    const auto rank = list[i++];
    if (rank < 0 || rank > static_cast<std::int64_t>(list.size() - i))
      throw_invalid(op, "shapes ends within a shape; each is its rank and then its dimensions");
    Dims dims(list.begin() + static_cast<std::ptrdiff_t>(i),
              list.begin() + static_cast<std::ptrdiff_t>(i) + rank);
    if (std::ranges::any_of(dims, [](std::int64_t d) { return d < 0; }))
      throw_invalid(op, "shapes has a negative dimension");
    specs.push_back({DType::F32, Shape(std::move(dims))});
    i += static_cast<std::size_t>(rank);
  }
  return specs;
}

void scale_all(std::span<const RefTensor> inputs, std::span<RefTensor> outputs, float scale) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::ranges::transform(inputs[i].values, outputs[i].values.begin(),
                           [&](double x) { return x * double{scale}; });
  }
}

}  // namespace

Shape part_shape(std::string_view who, const Shape& whole, std::int64_t parts, std::int64_t split) {
  if (split < 0) return {shard_elements(whole.elements(), parts)};
  if (split >= whole.rank() || whole[split] % parts != 0) {
    throw_invalid(who, fmt::format("axis {} of {} cannot be split into {} equal parts", split,
                                   to_string(whole), parts));
  }
  auto dims = whole.dims();
  dims[static_cast<std::size_t>(split)] /= parts;
  return Shape(std::move(dims));
}

std::vector<TensorSpec> AllReduce::infer(Specs inputs) const {
  require_floats(kName, inputs);
  return {inputs.begin(), inputs.end()};
}

void AllReduce::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  scale_all(inputs, outputs, scale);
}

std::vector<TensorSpec> ReduceScatter::infer(Specs inputs) const {
  require_floats(kName, inputs);
  require_parts(kName, parts);
  std::vector<TensorSpec> outputs;
  for (const auto& input : inputs)
    outputs.push_back({DType::F32, part_shape(kName, input.shape, parts, split)});
  return outputs;
}

void ReduceScatter::reference(std::span<const RefTensor> inputs,
                              std::span<RefTensor> outputs) const {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t k = 0; k < outputs[i].values.size(); ++k)
      outputs[i].values[k] = inputs[i].values[k] * double{scale};
  }
}

void AllGather::add_shape(const Shape& shape) { append_shape(shapes, shape); }

std::vector<TensorSpec> AllGather::infer(Specs inputs) const {
  require_some(kName, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    require_dtype(kName, inputs, i, split < 0 ? DType::F32 : inputs[0].dtype);
  require_parts(kName, parts);
  auto outputs = specs_of(kName, shapes);
  for (auto& output : outputs) output.dtype = inputs[0].dtype;
  if (outputs.size() != inputs.size())
    throw_invalid(kName, fmt::format("{} inputs and {} shapes", inputs.size(), outputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    require_shape(kName, inputs, i, part_shape(kName, outputs[i].shape, parts, split));
  return outputs;
}

void AllGather::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    auto& values = outputs[i].values;
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] = inputs[i].values[k % inputs[i].values.size()];
  }
}

std::vector<TensorSpec> Send::infer(Specs inputs) const {
  require_some(kName, inputs);
  return {{DType::F32, Shape{}}};
}

void Send::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  outputs[0].values[0] = static_cast<double>(inputs.size());
}

void Receive::add(const TensorSpec& spec) {
  const bool plain = dtypes.empty() && spec.dtype == DType::F32;
  if (!plain) {
    // Those before, which the empty text stood for.
    if (dtypes.empty())
      for (std::size_t i = specs_of(kName, shapes).size(); i > 0; --i) dtypes += "f32 ";
    dtypes += fmt::format("{} ", to_string(spec.dtype));
  }
  append_shape(shapes, spec.shape);
}

std::vector<TensorSpec> Receive::infer(Specs inputs) const {
  require_inputs(kName, inputs, 0, 0);
  auto outputs = specs_of(kName, shapes);
  if (outputs.empty()) throw_invalid(kName, "shapes is empty; it receives at least one tensor");
  if (dtypes.empty()) return outputs;
  std::istringstream names(dtypes);
  std::vector<DType> list;
  for (std::string name; names >> name;)
    list.push_back(name_errors(kName, [&] { return dtype_from_string(name); }));
  if (list.size() != outputs.size())
    throw_invalid(kName, fmt::format("{} dtypes and {} shapes", list.size(), outputs.size()));
  for (std::size_t i = 0; i < list.size(); ++i) outputs[i].dtype = list[i];
  return outputs;
}

void Receive::reference(std::span<const RefTensor>, std::span<RefTensor> outputs) const {
  for (auto& output : outputs) std::ranges::fill(output.values, 0.0);
}

void add_collectives_ops(OpList& list) {
  list.push_back(make_op(AllReduce{}));
  list.push_back(make_op(ReduceScatter{}));
  list.push_back(make_op(AllGather{}));
  list.push_back(make_op(Send{}));
  list.push_back(make_op(Receive{}));
}

}  // namespace triptych
