// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/export_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/onnx/element_type.h"
#include "core/ops/cast.h"
#include "core/ops/reshape.h"

namespace triptych::onnx {
namespace {

/// Operators that are ONNX's in every respect, in all operator sets of an export: attributes, order
/// of inputs, results.
constexpr std::array kSame = {std::string_view("Add"),      std::string_view("BatchNormalization"),
                              std::string_view("Concat"),   std::string_view("Conv"),
                              std::string_view("Div"),      std::string_view("ConvTranspose"),
                              std::string_view("Flatten"),  std::string_view("Gemm"),
                              std::string_view("Identity"), std::string_view("MaxPool"),
                              std::string_view("Mul"),      std::string_view("Relu"),
                              std::string_view("Sigmoid"),  std::string_view("Softmax"),
                              std::string_view("Sub"),      std::string_view("Transpose")};

class Exporter {
 public:
  Exporter(const Graph& graph, const ExportOptions& options) : graph_(graph), options_(options) {
    model_.opset = options.opset;
    model_.producer = "triptych";
  }

  Model run() {
    for (const auto& value : graph_.values()) add_value(value);
    for (const auto& node : graph_.nodes()) add_node(node);
    for (const auto& [name, value] : graph_.outputs()) add_output(name, value);
    return std::move(model_);
  }

 private:
  std::vector<Dimension> open_shape(const Shape& shape) const {
    std::vector<Dimension> sizes;
    for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
      const bool open = axis == 0 || (axis >= 2 && options_.open_sizes);
      constexpr std::array symbols = {"batch", "", "height", "width"};
      if (open && axis < std::ssize(symbols)) {
        sizes.push_back({-1, symbols[static_cast<std::size_t>(axis)]});
      } else {
        sizes.push_back({shape[axis], ""});
      }
    }
    return sizes;
  }

  /// The value's name in the model: another one where an output has its own.
  std::string name_of(ValueId id) const {
    const auto& name = graph_.value(id).name;
    const bool taken = std::ranges::count(graph_.outputs(), name, &NamedValue::name) > 0;
    return taken ? name + ".value" : name;
  }

  void add_value(const Value& value) {
    if (value.kind == ValueKind::Input) {
      model_.inputs.push_back({.name = name_of(value.id),
                               .dtype = value.spec.dtype,
                               .shape = open_shape(value.spec.shape)});
    } else if (value.kind != ValueKind::Activation) {
      model_.initializers.emplace(name_of(value.id), value.data);
    }
  }

  /// ONNX's form of an attribute. Nothing for one of this program alone that says nothing.
  static void add_attribute(const Attribute& attribute, ModelNode& node) {
    NodeAttribute added{.name = attribute.name, .value = std::int64_t{0}};
    std::visit([&](const auto& value) { added.value = value; }, attribute.value);
    const auto* text = std::get_if<std::string>(&attribute.value);
    const auto* list = std::get_if<std::vector<std::int64_t>>(&attribute.value);
    if ((text != nullptr && text->empty()) || (list != nullptr && list->empty())) return;
    node.attributes.push_back(std::move(added));
  }

  [[noreturn]] static void refuse(const Node& node, const std::string& why) {
    throw UnsupportedError(fmt::format("node \"{}\" ({}): {}", node.name, node.op->name(), why));
  }

  void add_node(const Node& node) {
    ModelNode added{.name = node.name, .op = std::string(node.op->name()), .domain = {}};
    for (const auto input : node.inputs) added.inputs.push_back(name_of(input));
    for (const auto output : node.outputs) added.outputs.push_back(name_of(output));
    if (const auto* reshape = op_cast<Reshape>(*node.op)) {
      add_target_shape(node, *reshape, added);
    } else if (node.op->name() == Cast::kName) {
      const auto dtype = graph_.spec(node.outputs.front()).dtype;
      added.attributes.push_back({"to", std::int64_t{element_number(dtype)}});
    } else if (std::ranges::count(kSame, node.op->name()) > 0) {
      for (const auto& attribute : node.op->attributes()) require_onnx(node, attribute, added);
    } else {
      refuse(node, "it is no operator that can be exported");
    }
    model_.nodes.push_back(std::move(added));
  }

  void require_onnx(const Node& node, const Attribute& attribute, ModelNode& added) const {
    // Fused into the operator by a pass. ONNX has it as a node.
    const auto* text = std::get_if<std::string>(&attribute.value);
    if (attribute.name == "activation" && text != nullptr && !text->empty())
      refuse(node, "its activation is part of it; export the graph before passes run");
    if (attribute.name == "training_mode") {
      if (attribute.value != AttributeValue(std::int64_t{0}))
        refuse(node, "it is in its training form");
      return;  // the default, and unknown before operator set 14
    }
    add_attribute(attribute, added);
  }

  /// An input since operator set 5. The batch is copied from the operand at run time.
  void add_target_shape(const Node& node, const Reshape& reshape, ModelNode& added) {
    const auto& from = graph_.spec(node.inputs.front()).shape;
    auto sizes = graph_.spec(node.outputs.front()).shape.dims();
    if (reshape.shape.empty() || from.rank() == 0 || sizes.front() != from[0])
      refuse(node, "it changes the batch's axis");
    sizes.front() = 0;
    const auto name = node.name + ".shape";
    added.inputs.push_back(name);
    model_.initializers.emplace(
        name, std::make_shared<const Tensor>(
                  Shape{std::ssize(sizes)}, std::vector<std::int64_t>(sizes.begin(), sizes.end())));
  }

  /// A node of its own, because a value of the graph may have several names outside.
  void add_output(const std::string& name, ValueId value) {
    const auto& spec = graph_.spec(value);
    model_.nodes.push_back({.name = "output." + name,
                            .op = "Identity",
                            .domain = {},
                            .inputs = {name_of(value)},
                            .outputs = {name},
                            .attributes = {}});
    model_.outputs.push_back({.name = name, .dtype = spec.dtype, .shape = open_shape(spec.shape)});
  }

  const Graph& graph_;
  ExportOptions options_;
  Model model_;
};

}  // namespace

Model export_graph(const Graph& graph, const ExportOptions& options) {
  if (options.opset < kFirstExportOpset || options.opset > kLastExportOpset) {
    throw InvalidArgument(fmt::format("the option opset {}; an export is of {} to {}",
                                      options.opset, kFirstExportOpset, kLastExportOpset));
  }
  return Exporter(graph, options).run();
}

}  // namespace triptych::onnx
