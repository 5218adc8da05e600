// SPDX-License-Identifier: Apache-2.0
#include "core/graph/graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/ops/reshape.h"

namespace triptych {

std::vector<StateUpdate> Node::updates() const {
  std::vector<StateUpdate> result;
  for (const auto& [output, input] : op->updates(static_cast<int>(inputs.size()))) {
    result.push_back({.before = inputs.at(static_cast<std::size_t>(input)),
                      .after = outputs.at(static_cast<std::size_t>(output))});
  }
  return result;
}

std::vector<std::string> Node::stands_for() const {
  return merged.empty() ? std::vector<std::string>{name} : merged;
}

ValueId Graph::add_value(Value value) {
  value.id = ValueId{static_cast<std::int32_t>(values_.size())};
  const auto [position, is_new] = value_names_.emplace(value.name, value.id);
  if (!is_new) {
    throw InvalidArgument(fmt::format("the graph already has a value \"{}\"", value.name));
  }
  values_.push_back(std::move(value));
  return values_.back().id;
}

std::string Graph::unique_name(std::string wanted) {
  const int count = name_counts_[wanted]++;
  if (count == 0 && !value_names_.contains(wanted)) return wanted;
  return unique_name(fmt::format("{}_{}", wanted, std::max(count, 1)));
}

ValueId Graph::add_input(const std::string& name, TensorSpec spec) {
  return add_value({.name = prefix_ + name, .spec = std::move(spec), .kind = ValueKind::Input});
}

ValueId Graph::add_state(const std::string& name, Tensor initial, StateRole role) {
  return add_state(name, std::make_shared<const Tensor>(std::move(initial)), role);
}

ValueId Graph::add_state(const std::string& name, std::shared_ptr<const Tensor> initial,
                         StateRole role) {
  const TensorSpec spec = initial->spec();
  return add_value({.name = prefix_ + name,
                    .spec = spec,
                    .kind = ValueKind::State,
                    .role = role,
                    .data = std::move(initial)});
}

ValueId Graph::add_constant(const std::string& name, std::shared_ptr<const Tensor> value) {
  const TensorSpec spec = value->spec();
  return add_value({.name = unique_name(prefix_ + name),
                    .spec = spec,
                    .kind = ValueKind::Constant,
                    .data = std::move(value)});
}

void Graph::set_initial(ValueId state, std::shared_ptr<const Tensor> initial) {
  auto& value = values_.at(state.index());
  if (value.kind != ValueKind::State || value.spec != initial->spec()) {
    throw InvalidArgument(fmt::format("\"{}\" is {}, its new initial value {}", value.name,
                                      to_string(value.spec), to_string(initial->spec())));
  }
  value.data = std::move(initial);
}

std::vector<ValueId> Graph::add_node(OpPtr op, Values inputs, std::string_view name) {
  std::string base(name.empty() ? op->name() : name);
  if (name.empty()) std::transform(base.begin(), base.end(), base.begin(), ::tolower);
  return add_named_node(std::move(op), inputs, unique_name(prefix_ + base));
}

std::vector<ValueId> Graph::add_named_node(OpPtr op, Values inputs, std::string name) {
  Node node{.id = NodeId{static_cast<std::int32_t>(nodes_.size())},
            .name = std::move(name),
            .op = std::move(op),
            .inputs = {inputs.begin(), inputs.end()},
            .outputs = {},
            .phase = phase_,
            .differentiates = differentiates_};
  std::vector<TensorSpec> output_specs;
  try {
    output_specs = node.op->infer(specs(inputs));
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{} (node \"{}\")", error.what(), node.name));
  }
  for (std::size_t i = 0; i < output_specs.size(); ++i) {
    node.outputs.push_back(
        add_value({.name = i == 0 ? node.name : fmt::format("{}:{}", node.name, i),
                   .spec = std::move(output_specs[i]),
                   .kind = ValueKind::Activation,
                   .producer = node.id,
                   .output_index = static_cast<int>(i)}));
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

void Graph::append_node(Node node) {
  node.id = NodeId{static_cast<std::int32_t>(nodes_.size())};
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    auto& output = values_[node.outputs[i].index()];
    output.producer = node.id;
    output.output_index = static_cast<int>(i);
  }
  nodes_.push_back(std::move(node));
}

void Graph::expand_composite(NodeId id) {
  const Node composite = node(id);
  const auto after = nodes_.begin() + id.value + 1;
  const std::vector<Node> tail(after, nodes_.end());
  nodes_.erase(nodes_.begin() + id.value, nodes_.end());
  std::vector<ValueId> results;
  {
    const auto marks = phase(composite.phase, composite.differentiates);
    const std::string outer = std::exchange(prefix_, composite.name + ".");
    results = composite.op->expand(*this, composite.inputs);
    prefix_ = outer;
  }
  for (std::size_t i = 0; i < composite.outputs.size(); ++i) {
    const auto output = composite.outputs[i];
    append_node({.name = value(output).name,
                 .op = make_op(Identity{}),
                 .inputs = {results.at(i)},
                 .outputs = {output},
                 .phase = composite.phase,
                 .differentiates = composite.differentiates});
  }
  for (const auto& next : tail) append_node(next);
}

void Graph::mark_output(std::string name, ValueId value) {
  for (const auto& output : outputs_) {
    if (output.name == name) {
      throw InvalidArgument(fmt::format("the graph already has an output \"{}\"", name));
    }
  }
  outputs_.push_back({std::move(name), value});
}

std::vector<ValueId> Graph::emit(OpPtr op, Values inputs) {
  return add_node(std::move(op), inputs);
}

ValueId Graph::constant(Tensor value) {
  return add_constant("constant", std::make_shared<const Tensor>(std::move(value)));
}

const TensorSpec& Graph::spec(ValueId value) const {
  if (!value.valid() || value.index() >= values_.size()) {
    throw InvalidArgument(fmt::format("the graph has no value number {}", value.value));
  }
  return values_[value.index()].spec;
}

ValueId Graph::find(std::string_view name) const {
  if (const auto found = value_names_.find(std::string(name)); found != value_names_.end()) {
    return found->second;
  }
  std::string near;
  for (const auto& value : values_) {
    const bool similar = value.name.find(name) != std::string::npos ||
                         std::string(name).find(value.name) != std::string::npos;
    if (similar && near.size() < 200) near += " " + value.name;
  }
  throw InvalidArgument(
      fmt::format("the graph has no value \"{}\"{}{}", name, near.empty() ? "" : "; near:", near));
}

bool Graph::contains(std::string_view name) const {
  return value_names_.contains(std::string(name));
}

std::vector<ValueId> Graph::values_of(ValueKind kind) const {
  std::vector<ValueId> ids;
  for (const auto& value : values_) {
    if (value.kind == kind) ids.push_back(value.id);
  }
  return ids;
}

std::vector<std::vector<NodeId>> Graph::consumers() const {
  std::vector<std::vector<NodeId>> readers(values_.size());
  for (const auto& node : nodes_) {
    for (const auto input : node.inputs) {
      auto& list = readers[input.index()];
      if (list.empty() || list.back() != node.id) list.push_back(node.id);
    }
  }
  return readers;
}

std::vector<TensorSpec> Graph::specs(Values values) const {
  std::vector<TensorSpec> result;
  result.reserve(values.size());
  for (const auto value : values) result.push_back(spec(value));
  return result;
}

Graph::PhaseScope::PhaseScope(Graph& graph, Phase phase, ValueId differentiates)
    : graph_(graph),
      phase_(std::exchange(graph.phase_, phase)),
      differentiates_(std::exchange(graph.differentiates_, differentiates)) {}

Graph::PhaseScope::~PhaseScope() {
  graph_.phase_ = phase_;
  graph_.differentiates_ = differentiates_;
}

Graph::Scope::Scope(Graph& graph, std::string_view name)
    : graph_(graph), previous_size_(graph.prefix_.size()) {
  graph_.prefix_ += std::string(name) + ".";
}

Graph::Scope::~Scope() { graph_.prefix_.resize(previous_size_); }

}  // namespace triptych
