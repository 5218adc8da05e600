// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/graph/graph.h"

namespace triptych {

namespace {

constexpr std::int64_t kShownElements = 4;

constexpr ValueKind kLeafKinds[] = {ValueKind::Input, ValueKind::State, ValueKind::Constant};

std::string_view kind_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::Input:
      return "input";
    case ValueKind::State:
      return "state";
    case ValueKind::Constant:
      return "constant";
    case ValueKind::Activation:
      return "activation";
  }
  return "";
}

std::string typed_name(const Value& value) {
  return fmt::format("%{}: {}", value.name, to_string(value.spec));
}

/// " = [1, 2]" for a constant that fits in a line, else nothing.
std::string short_data(const Value& value) {
  if (value.kind != ValueKind::Constant || value.data == nullptr) return "";
  if (value.spec.shape.elements() > kShownElements) return "";
  return fmt::format(" = [{}]", fmt::join(to_doubles(*value.data), ", "));
}

std::string node_line(const Graph& graph, const Node& node) {
  std::vector<std::string> outputs, inputs;
  for (const auto id : node.outputs) outputs.push_back(typed_name(graph.value(id)));
  for (const auto id : node.inputs) inputs.push_back("%" + graph.value(id).name);
  return fmt::format("{} = {} {}  # {}\n", fmt::join(outputs, ", "), to_string(*node.op),
                     fmt::join(inputs, ", "), node.name);
}

/// `text` as the inside of a quoted string of the dot language.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string_view leaf_style(ValueKind kind) {
  switch (kind) {
    case ValueKind::Input:
      return "shape=ellipse, fillcolor=lightblue";
    case ValueKind::State:
      return "shape=cylinder, fillcolor=khaki";
    default:
      return "shape=note, fillcolor=lightgrey";
  }
}

/// The dot node that an edge from `value` starts at.
std::string source_of(const Value& value) {
  return value.kind == ValueKind::Activation ? fmt::format("n{}", value.producer.value)
                                             : fmt::format("v{}", value.id.value);
}

std::string edge(const Value& value, std::string_view target) {
  return fmt::format("  {} -> {} [label=\"{}\"];\n", source_of(value), target,
                     escaped(to_string(value.spec)));
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::string text;
  for (const auto kind : kLeafKinds) {
    for (const auto id : graph.values_of(kind)) {
      const auto& value = graph.value(id);
      text += fmt::format("{} {}{}\n", kind_name(kind), typed_name(value), short_data(value));
    }
  }
  for (const auto& node : graph.nodes()) text += node_line(graph, node);
  for (const auto& output : graph.outputs()) {
    text += fmt::format("output {} = %{}\n", output.name, graph.value(output.value).name);
  }
  return text;
}

std::string to_dot(const Graph& graph) {
  std::string text = "digraph {\n  node [style=filled, fillcolor=white, shape=box];\n";
  for (const auto kind : kLeafKinds) {
    for (const auto id : graph.values_of(kind)) {
      text += fmt::format("  v{} [label=\"{}\", {}];\n", id.value, escaped(graph.value(id).name),
                          leaf_style(kind));
    }
  }
  for (const auto& node : graph.nodes()) {
    text += fmt::format("  n{} [label=\"{}\\n{}\"];\n", node.id.value, escaped(node.op->name()),
                        escaped(node.name));
    for (const auto id : node.inputs) {
      text += edge(graph.value(id), fmt::format("n{}", node.id.value));
    }
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const auto& output = graph.outputs()[i];
    text +=
        fmt::format("  o{} [label=\"{}\", shape=ellipse, peripheries=2, fillcolor=palegreen];\n", i,
                    escaped(output.name));
    text += edge(graph.value(output.value), fmt::format("o{}", i));
  }
  return text + "}\n";
}

}  // namespace triptych
