// SPDX-License-Identifier: Apache-2.0
#include "core/graph/passes/rewrite.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "core/ops/unary.h"

namespace triptych {

bool is_relu(const Node& node) {
  const auto* unary = op_cast<Unary>(*node.op);
  return unary != nullptr && unary->kind == UnaryKind::Relu;
}

namespace {

std::vector<bool> outputs_of(const Graph& graph) {
  std::vector<bool> is_output(graph.values().size(), false);
  for (const auto& output : graph.outputs()) is_output[output.value.index()] = true;
  return is_output;
}

}  // namespace

Rewriter::Rewriter(const Graph& source, ValueKind states_become)
    : source_(source),
      map_(source.values().size()),
      consumers_(source.consumers()),
      is_output_(outputs_of(source)) {
  make_room();
  // Reserved, so that no inserted node takes a name before the node that owns it is copied.
  for (const auto& value : source.values()) target_.name_counts_[value.name] = 1;
  for (const auto& value : source.values()) {
    if (value.kind == ValueKind::Input) map(value.id, copy_leaf(value, ValueKind::Input));
    if (value.kind == ValueKind::State) map(value.id, copy_leaf(value, states_become));
  }
}

Rewriter::Rewriter(const Graph& source, const std::set<ValueId>& without)
    : source_(source),
      map_(source.values().size()),
      consumers_(source.consumers()),
      is_output_(outputs_of(source)) {
  make_room();
  for (const auto& value : source.values()) {
    if (without.contains(value.id)) continue;
    target_.name_counts_[value.name] = 1;
    if (value.kind == ValueKind::Input || value.kind == ValueKind::State)
      map(value.id, copy_leaf(value, value.kind));
  }
}

void Rewriter::make_room() {
  const auto values = source_.values().size();
  target_.nodes_.reserve(source_.nodes().size());
  target_.values_.reserve(values);
  target_.value_names_.reserve(values);
  target_.name_counts_.reserve(values);
}

ValueId Rewriter::copy_leaf(const Value& value, ValueKind kind) {
  return target_.add_value({.name = value.name,
                            .spec = value.spec,
                            .kind = kind,
                            .role = value.role,
                            .data = value.data});
}

ValueId Rewriter::mapped(ValueId old) {
  auto& replacement = map_.at(old.index());
  if (!replacement.valid()) {
    const auto& value = source_.value(old);
    TRIPTYCH_ASSERT(value.kind == ValueKind::Constant);
    replacement = copy_leaf(value, ValueKind::Constant);
  }
  return replacement;
}

std::vector<ValueId> Rewriter::mapped(Values old) {
  std::vector<ValueId> result;
  result.reserve(old.size());
  for (const auto value : old) result.push_back(mapped(value));
  return result;
}

void Rewriter::map(ValueId old, ValueId replacement) { map_.at(old.index()) = replacement; }

void Rewriter::copy(const Node& node) {
  if (map_.at(node.outputs.front().index()).valid()) return;
  const auto outputs = append(node, node.op, mapped(node.inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) map(node.outputs[i], outputs[i]);
}

std::vector<ValueId> Rewriter::append(const Node& like, OpPtr op, Values inputs) {
  auto outputs = append(like.name, like, std::move(op), inputs);
  target_.nodes_.back().merged = like.merged;
  return outputs;
}

std::vector<ValueId> Rewriter::append_merged(std::span<const Node* const> nodes, const Node& like,
                                             OpPtr op, Values inputs) {
  std::vector<std::string> names;
  for (const Node* node : nodes) {
    auto own = node->stands_for();
    std::ranges::move(own, std::back_inserter(names));
  }
  const auto name = target_.unique_name(fmt::format("{}", fmt::join(names, "+")));
  auto outputs = append(name, like, std::move(op), inputs);
  target_.nodes_.back().merged = std::move(names);
  return outputs;
}

std::vector<ValueId> Rewriter::append(const std::string& name, const Node& like, OpPtr op,
                                      Values inputs) {
  const auto phase = phase_of(like);
  return target_.add_named_node(std::move(op), inputs, name);
}

Graph::PhaseScope Rewriter::phase_of(const Node& like) {
  const auto forward = like.differentiates;
  return target_.phase(like.phase, forward.valid() ? map_[forward.index()] : forward);
}

void Rewriter::map_to_constant(ValueId old, std::shared_ptr<const Tensor> value) {
  map(old, target_.add_value({.name = source_.value(old).name,
                              .spec = value->spec(),
                              .kind = ValueKind::Constant,
                              .data = value}));
}

const Node* Rewriter::only_reader(ValueId value) const {
  if (is_output_[value.index()]) return nullptr;
  const auto& readers = consumers_[value.index()];
  return readers.size() == 1 ? &source_.node(readers.front()) : nullptr;
}

Graph Rewriter::finish() {
  for (const auto& output : source_.outputs()) {
    target_.mark_output(output.name, mapped(output.value));
  }
  return std::move(target_);
}

}  // namespace triptych
