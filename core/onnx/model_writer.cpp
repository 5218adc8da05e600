// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/model_writer.h"

#include <fmt/core.h>

#include <limits>
#include <set>

#include "core/onnx/element_type.h"
#include "onnx.pb.h"

namespace triptych::onnx {
namespace {

/// The least format version that knows an operator set, and initialisers that are no inputs.
std::int64_t ir_version(std::int64_t opset) {
  constexpr std::pair<std::int64_t, std::int64_t> since[] = {{21, 10}, {19, 9}, {15, 8},
                                                             {12, 7},  {11, 6}, {10, 5}};
  for (const auto& [set, version] : since) {
    if (opset >= set) return version;
  }
  return 4;
}

void write_tensor(const Tensor& tensor, const std::string& name, onnx_format::Tensor& into) {
  for (const auto size : tensor.shape().dims()) into.add_dims(size);
  into.set_data_type(element_number(tensor.dtype()));
  if (!name.empty()) into.set_name(name);
  const auto bytes = tensor.bytes();
  into.set_raw_data(bytes.data(), bytes.size());
}

void write_value(const ModelValue& value, onnx_format::ValueInfo& into) {
  into.set_name(value.name);
  auto& type = *into.mutable_type()->mutable_tensor_type();
  type.set_elem_type(element_number(value.dtype));
  if (!value.has_shape) return;
  auto& shape = *type.mutable_shape();
  for (const auto& [size, symbol] : value.shape) {
    auto& dimension = *shape.add_dim();
    if (size >= 0) dimension.set_dim_value(size);
    if (size < 0 && !symbol.empty()) dimension.set_dim_param(symbol);
  }
}

/// Fills in the value of one attribute by its kind.
struct AttributeWriter {
  onnx_format::Attribute& into;
  const std::string& node;

  void operator()(std::int64_t value) const {
    const bool is_double = names_double(into.name(), value);
    into.set_type(kInt), into.set_i(is_double ? element_number(DType::F32) : value);
  }
  void operator()(float value) const { into.set_type(kFloat), into.set_f(value); }
  void operator()(const std::string& value) const { into.set_type(kString), into.set_s(value); }
  void operator()(const TensorPtr& value) const {
    into.set_type(kTensor);
    write_tensor(*value, {}, *into.mutable_t());
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    into.set_type(kInts);
    for (const auto value : values) into.add_ints(value);
  }
  void operator()(const std::vector<float>& values) const {
    into.set_type(kFloats);
    for (const auto value : values) into.add_floats(value);
  }
  void operator()(const std::vector<std::string>& values) const {
    into.set_type(kStrings);
    for (const auto& value : values) into.add_strings(value);
  }
  void operator()(const Unread& value) const {
    throw UnsupportedError(fmt::format("node \"{}\", attribute {}: {} cannot be written", node,
                                       into.name(), value.kind));
  }
};

void write_node(const ModelNode& node, onnx_format::Node& into) {
  for (const auto& input : node.inputs) into.add_input(input);
  for (const auto& output : node.outputs) into.add_output(output);
  into.set_name(node.name);
  into.set_op_type(node.op);
  if (!node.domain.empty()) into.set_domain(node.domain);
  for (const auto& [name, value] : node.attributes) {
    auto& attribute = *into.add_attribute();
    attribute.set_name(name);
    std::visit(AttributeWriter{attribute, node.name}, value);
  }
}

void write_operator_sets(const Model& model, onnx_format::Model& file) {
  file.add_opset_import()->set_version(model.opset);
  std::set<std::string> domains;
  for (const auto& node : model.nodes) {
    if (node.domain.empty() || !domains.insert(node.domain).second) continue;
    auto& set = *file.add_opset_import();
    set.set_domain(node.domain);
    set.set_version(1);
  }
}

/// Says of each initialiser that it is the module's own, so that it is trained after a reading,
/// too.
void write_kinds(const Model& model, onnx_format::Graph& graph) {
  for (const auto& [name, tensor] : model.initializers) {
    if (tensor->dtype() != DType::F32) continue;
    onnx_format::ValueInfo info;
    info.set_name(name);
    auto& entry = *info.add_metadata_props();
    entry.set_key(kKindOfInitializer);
    entry.set_value("PARAMETER");
    graph.add_value_info(info.SerializeAsString());
  }
}

}  // namespace

std::string encode_model(const Model& model, const std::map<std::string, std::string>& metadata) {
  onnx_format::Model file;
  file.set_ir_version(ir_version(model.opset));
  file.set_producer_name(model.producer);
  write_operator_sets(model, file);
  auto& graph = *file.mutable_graph();
  graph.set_name("network");
  for (const auto& node : model.nodes) write_node(node, *graph.add_node());
  for (const auto& [name, tensor] : model.initializers)
    write_tensor(*tensor, name, *graph.add_initializer());
  if (model.numbers_are_nodes) write_kinds(model, graph);
  for (const auto& input : model.inputs) write_value(input, *graph.add_input());
  for (const auto& output : model.outputs) write_value(output, *graph.add_output());
  for (const auto& [key, value] : metadata) {
    auto& entry = *file.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  const auto bytes = file.ByteSizeLong();
  if (bytes > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw UnsupportedError(
        fmt::format("the model takes {} bytes; a file of protobuf ends at 2 GiB", bytes));
  }
  return file.SerializeAsString();
}

}  // namespace triptych::onnx
