// How every pass works: a Rewriter walks a source graph and builds a new one node by node. Copied
// nodes and values keep their exact names. Inserted ones get names that the source does not have.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>
#include <string>

#include "core/graph/graph.h"

namespace triptych {

/// Nodes further apart are not fused, because the operands of the first would have to wait for the
/// last.
inline constexpr std::size_t kMostNodesApart = 4;

bool is_relu(const Node& node);

class Rewriter {
 public:
  /// Copies the inputs and states of `source`, which must outlive the Rewriter. Constants follow
  /// when they are first asked for. States may become constants of their initial values.
  explicit Rewriter(const Graph& source, ValueKind states_become = ValueKind::State);
  /// Copies the inputs and states except those in `without`, which have no value until they are
  /// mapped. Their names are free.
  Rewriter(const Graph& source, const std::set<ValueId>& without);

  const Graph& source() const { return source_; }
  /// The new graph, for inserting nodes of one's own.
  Graph& target() { return target_; }

  /// The value of the new graph that stands for `old`, which must be defined already.
  ValueId mapped(ValueId old);
  std::vector<ValueId> mapped(Values old);
  /// From now on `replacement`, a value of the new graph, stands for `old`.
  void map(ValueId old, ValueId replacement);

  /// Copies `node`, unless its outputs have replacements already.
  void copy(const Node& node);
  /// Appends `op` under the name of `like`, a node that will not be copied.
  std::vector<ValueId> append(const Node& like, OpPtr op, Values inputs);
  /// The same under a name that the source does not have.
  std::vector<ValueId> append(const std::string& name, const Node& like, OpPtr op, Values inputs);
  /// Appends `op` in the place of `like` for `nodes`, which will not be copied. Its name is for
  /// readers: the names of all, with "+". Programs read Node::merged.
  std::vector<ValueId> append_merged(std::span<const Node* const> nodes, const Node& like, OpPtr op,
                                     Values inputs);
  /// Nodes of the new graph belong to the phase of `like` while this lives.
  [[nodiscard]] Graph::PhaseScope phase_of(const Node& like);
  /// Replaces `old` by a constant of the same name.
  void map_to_constant(ValueId old, std::shared_ptr<const Tensor> value);

  /// The only node that reads `value`, or nullptr: none, several, or it is an output of the graph.
  const Node* only_reader(ValueId value) const;

  /// Marks the outputs and hands over the new graph.
  Graph finish();

 private:
  /// Takes memory for a graph of the source's size at once.
  void make_room();
  ValueId copy_leaf(const Value& value, ValueKind kind);

  const Graph& source_;
  Graph target_;
  std::vector<ValueId> map_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<bool> is_output_;  ///< per value of the source: the caller may read it
};

}  // namespace triptych
