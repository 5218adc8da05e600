// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <string_view>
#include <unordered_set>

#include "core/graph/graph.h"

namespace triptych {

namespace {

/// Walks the nodes in order. A value's *version* is the value with the memory that it reads: a view
/// has the version of its input, an update starts a version of its own and ends the one before.
class Verifier {
 public:
  Verifier(std::span<const Node> nodes, std::span<const Value> values)
      : nodes_(nodes),
        values_(values),
        defined_(values.size(), false),
        version_(values.size()),
        is_state_(values.size(), false),
        updater_(values.size()) {}

  void run(std::span<const NamedValue> outputs) {
    for (std::size_t i = 0; i < values_.size(); ++i) check_value(i);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      check_node(i);
      check_outputs_of(nodes_[i]);
      check_updates(nodes_[i]);
    }
    for (const auto& output : outputs) check_graph_output(output);
  }

 private:
  template <class... Args>
  [[noreturn]] static void fail(const Node& node, fmt::format_string<Args...> text,
                                Args&&... args) {
    throw_invalid("verify", fmt::format("{} (node \"{}\")",
                                        fmt::format(text, std::forward<Args>(args)...), node.name));
  }

  const std::string& name_of(ValueId id) const { return values_[id.index()].name; }
  const TensorSpec& spec_of(ValueId id) const { return values_[id.index()].spec; }
  bool in_range(ValueId id) const { return id.valid() && id.index() < values_.size(); }

  void check_value(std::size_t index) {
    const auto& value = values_[index];
    if (!value.id.valid() || value.id.index() != index) {
      throw_invalid("verify", fmt::format("value \"{}\" has number {}, its place in the list is {}",
                                          value.name, value.id.value, index));
    }
    if (value.name.empty()) throw_invalid("verify", fmt::format("value {} has no name", index));
    if (!value_names_.insert(value.name).second) {
      throw_invalid("verify", fmt::format("two values are named \"{}\"", value.name));
    }
    version_[index] = value.id;
    if (value.kind == ValueKind::Activation) {
      const bool has_producer = value.producer.valid() && value.producer.index() < nodes_.size();
      if (!has_producer) {
        throw_invalid("verify", fmt::format("no node defines the activation \"{}\"", value.name));
      }
      return;
    }
    defined_[index] = true;
    is_state_[index] = value.kind == ValueKind::State;
    if (value.kind == ValueKind::Input) return;
    if (value.data == nullptr || value.data->spec() != value.spec) {
      throw_invalid("verify",
                    fmt::format("\"{}\" is {}, its data is {}", value.name, to_string(value.spec),
                                value.data ? to_string(value.data->spec()) : "missing"));
    }
  }

  void check_node(std::size_t index) {
    const auto& node = nodes_[index];
    if (!node.id.valid() || node.id.index() != index) {
      fail(node, "has number {}, its place in the order is {}", node.id.value, index);
    }
    if (node.name.empty()) throw_invalid("verify", fmt::format("node {} has no name", index));
    if (!node_names_.insert(node.name).second) {
      fail(node, "another node has the same name");
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto id = node.inputs[i];
      if (!in_range(id)) fail(node, "input {} is value number {}, out of range", i, id.value);
      if (!defined_[id.index()]) {
        fail(node, "input {} (\"{}\") is read before it is defined", i, name_of(id));
      }
      if (const auto by = updater_[version_[id.index()].index()]; by.valid()) {
        fail(node, "input {} reads the old value of \"{}\" after node \"{}\" updated it in place",
             i, name_of(id), nodes_[by.index()].name);
      }
    }
  }

  std::vector<TensorSpec> inferred(const Node& node) const {
    std::vector<TensorSpec> inputs;
    for (const auto id : node.inputs) inputs.push_back(spec_of(id));
    try {
      return node.op->infer(inputs);
    } catch (const InvalidArgument& error) {
      fail(node, "{}", error.what());
    }
  }

  void check_outputs_of(const Node& node) {
    const auto wanted = inferred(node);
    if (wanted.size() != node.outputs.size()) {
      fail(node, "has {} outputs, the operator gives {}", node.outputs.size(), wanted.size());
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto id = node.outputs[i];
      if (!in_range(id)) fail(node, "output {} is value number {}, out of range", i, id.value);
      const auto& value = values_[id.index()];
      const bool is_own = value.kind == ValueKind::Activation && value.producer == node.id &&
                          value.output_index == static_cast<int>(i);
      if (!is_own || defined_[id.index()]) {
        fail(node, "output {} (\"{}\") is defined elsewhere", i, value.name);
      }
      if (value.spec != wanted[i]) {
        fail(node, "output {} (\"{}\") is {}, the shape rule gives {}", i, value.name,
             to_string(value.spec), to_string(wanted[i]));
      }
      defined_[id.index()] = true;
    }
    if (node.op->view()) version_[node.outputs[0].index()] = version_[node.inputs[0].index()];
  }

  void check_updates(const Node& node) {
    for (const auto& [before, after] : node.updates()) {
      if (!is_state_[before.index()]) {
        fail(node, "input \"{}\" is updated in place, so it must be a state", name_of(before));
      }
      if (spec_of(before) != spec_of(after)) {
        fail(node, "the state \"{}\" is {}, its update is {}", name_of(before),
             to_string(spec_of(before)), to_string(spec_of(after)));
      }
      check_read_once(node, before);
      updater_[before.index()] = node.id;
      is_state_[after.index()] = true;
    }
  }

  /// A node that read the state a second time would see it half updated.
  void check_read_once(const Node& node, ValueId state) const {
    int reads = 0;
    for (const auto id : node.inputs) reads += version_[id.index()] == state ? 1 : 0;
    if (reads != 1) fail(node, "reads the state \"{}\" twice and updates it", name_of(state));
  }

  void check_graph_output(const NamedValue& output) {
    if (!output_names_.insert(output.name).second) {
      throw_invalid("verify", fmt::format("two outputs are named \"{}\"", output.name));
    }
    if (!in_range(output.value)) {
      throw_invalid("verify", fmt::format("output \"{}\" is value number {}, out of range",
                                          output.name, output.value.value));
    }
    if (const auto by = updater_[version_[output.value.index()].index()]; by.valid()) {
      fail(nodes_[by.index()],
           "output \"{}\" is the old value of \"{}\", which is updated in place; mark its update",
           output.name, name_of(output.value));
    }
  }

  std::span<const Node> nodes_;
  std::span<const Value> values_;
  std::vector<bool> defined_;
  std::vector<ValueId> version_;
  std::vector<bool> is_state_;
  std::vector<NodeId> updater_;  ///< per version: the node that overwrote it
  std::unordered_set<std::string_view> value_names_, node_names_, output_names_;
};

}  // namespace

void verify(std::span<const Node> nodes, std::span<const Value> values,
            std::span<const NamedValue> outputs) {
  Verifier(nodes, values).run(outputs);
}

void verify(const Graph& graph) { verify(graph.nodes(), graph.values(), graph.outputs()); }

}  // namespace triptych
