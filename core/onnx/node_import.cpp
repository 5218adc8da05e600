// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/node_import.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/ops/slice.h"
#include "core/ops/transpose.h"

namespace triptych::onnx {

ValueId NodeImport::in(std::size_t input) const {
  if (!has(input)) broken(fmt::format("input {} is missing", input));
  return inputs_[input];
}

std::vector<ValueId> NodeImport::all() const {
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < inputs_.size(); ++i) values.push_back(in(i));
  return values;
}

const NodeAttribute* NodeImport::find(std::string_view name) {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    const auto& attribute = node_.attributes[i];
    if (attribute.name != name) continue;
    used_[i] = true;
    if (const auto* unread = std::get_if<Unread>(&attribute.value)) {
      refuse(fmt::format("attribute {}: {} is not supported", name, unread->kind));
    }
    return &attribute;
  }
  return nullptr;
}

template <class T>
const T* NodeImport::find_as(std::string_view name, const char* kind) {
  const auto* attribute = find(name);
  if (attribute == nullptr) return nullptr;
  const auto* value = std::get_if<T>(&attribute->value);
  if (value == nullptr) broken(fmt::format("attribute {} must be {}", name, kind));
  return value;
}

bool NodeImport::has_attribute(std::string_view name) const {
  return std::ranges::count(node_.attributes, name, &NodeAttribute::name) > 0;
}

std::int64_t NodeImport::integer(std::string_view name, std::int64_t otherwise) {
  const auto* value = find_as<std::int64_t>(name, "an integer");
  return value == nullptr ? otherwise : *value;
}

bool NodeImport::flag(std::string_view name, bool otherwise) {
  const auto value = integer(name, otherwise ? 1 : 0);
  if (value != 0 && value != 1) broken(fmt::format("attribute {} is {}", name, value));
  return value == 1;
}

float NodeImport::number(std::string_view name, float otherwise) {
  const auto* value = find_as<float>(name, "a number");
  return value == nullptr ? otherwise : *value;
}

std::string NodeImport::text(std::string_view name, const std::string& otherwise) {
  const auto* value = find_as<std::string>(name, "a text");
  return value == nullptr ? otherwise : *value;
}

std::vector<std::int64_t> NodeImport::integers(std::string_view name) {
  const auto* value = find_as<std::vector<std::int64_t>>(name, "a list of integers");
  return value == nullptr ? std::vector<std::int64_t>() : *value;
}

std::vector<float> NodeImport::numbers(std::string_view name) {
  const auto* value = find_as<std::vector<float>>(name, "a list of numbers");
  return value == nullptr ? std::vector<float>() : *value;
}

std::vector<std::string> NodeImport::texts(std::string_view name) {
  const auto* value = find_as<std::vector<std::string>>(name, "a list of texts");
  return value == nullptr ? std::vector<std::string>() : *value;
}

TensorPtr NodeImport::tensor(std::string_view name) {
  const auto* value = find_as<TensorPtr>(name, "a tensor");
  return value == nullptr ? nullptr : *value;
}

TensorPtr NodeImport::known(std::size_t input) const {
  auto value = graph.known(in(input));
  if (value == nullptr) {
    refuse(fmt::format("input {} (\"{}\") is not known before the model runs", input,
                       node_.inputs[input]));
  }
  return value;
}

std::vector<std::int64_t> NodeImport::known_integers(std::size_t input) const {
  const auto tensor = known(input);
  if (tensor->shape().rank() > 1) broken(fmt::format("input {} is not a list", input));
  if (tensor->dtype() == DType::I64) {
    const auto values = tensor->as<std::int64_t>();
    return {values.begin(), values.end()};
  }
  if (tensor->dtype() != DType::I32) broken(fmt::format("input {} must be int64", input));
  const auto values = tensor->as<std::int32_t>();
  return {values.begin(), values.end()};
}

std::vector<float> NodeImport::known_numbers(std::size_t input) const {
  const auto values = to_doubles(*known(input));
  return {values.begin(), values.end()};
}

double NodeImport::known_number(std::size_t input) const {
  const auto values = to_doubles(*known(input));
  if (values.size() != 1) broken(fmt::format("input {} is not one number", input));
  return values.front();
}

std::int64_t NodeImport::known_integer(std::size_t input) const {
  const auto value = known_number(input);
  if (!(std::abs(value) <= 0x1p53) || value != std::trunc(value)) {
    broken(fmt::format("input {} is not a whole number", input));
  }
  return static_cast<std::int64_t>(value);
}

std::optional<std::vector<std::int64_t>> NodeImport::input_or_attribute(std::size_t input,
                                                                        std::string_view name,
                                                                        std::int64_t since) {
  if (opset < since) {
    if (!has_attribute(name)) return std::nullopt;
    return integers(name);
  }
  if (!has(input)) return std::nullopt;
  return known_integers(input);
}

ValueId NodeImport::f32(std::size_t input) const {
  refuse_unless(is_floating(dtype(input)), fmt::format("input {} is {}; it is computed in f32",
                                                       input, to_string(dtype(input))));
  return cast(in(input), DType::F32);
}

ValueId NodeImport::transpose(ValueId x, std::vector<std::int64_t> perm) const {
  Transpose op;
  op.perm = std::move(perm);
  return apply(make_op(std::move(op)), {x});
}

ValueId NodeImport::slice(ValueId x, std::int64_t axis, std::int64_t start, std::int64_t end,
                          std::int64_t step) const {
  Slice op;
  op.starts = {start};
  op.ends = {end};
  op.axes = {axis};
  op.steps = {step};
  return apply(make_op(std::move(op)), {x});
}

ValueId NodeImport::filled(const TensorSpec& spec, double value) const {
  graph.require_room(spec);
  const auto one = from_doubles({spec.dtype, Shape{}}, std::span(&value, 1));
  Tensor tensor(spec);
  const auto element = one.bytes();
  for (auto rest = tensor.bytes(); !rest.empty(); rest = rest.subspan(element.size())) {
    std::ranges::copy(element, rest.begin());
  }
  return graph.constant(std::move(tensor));
}

void NodeImport::refuse(const std::string& reason) const { throw UnsupportedError(reason); }

void NodeImport::broken(const std::string& reason) const { throw IoError(reason); }

void NodeImport::finish() const {
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i]) refuse(fmt::format("attribute {} is not supported", node_.attributes[i].name));
  }
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    if (!asked_[i] && inputs_[i].valid()) refuse(fmt::format("input {} is not supported", i));
  }
}

}  // namespace triptych::onnx
