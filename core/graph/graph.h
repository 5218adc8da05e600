// A static dataflow graph in SSA form: every value is defined once, every shape is known, and the
// order of the nodes is a valid order of execution. State (parameters, running statistics, moments)
// are values that live from step to step. An operator that declares `updates` writes them in place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/ops/op.h"

namespace triptych {

enum class ValueKind {
  Input,       ///< set by the caller before each run
  Constant,    ///< known now, never changes
  State,       ///< persists from run to run, with an initial value
  Activation,  ///< output of a node
};

/// Role of a state in a training step.
enum class StateRole : std::uint8_t {
  Other,
  Parameter,  ///< has a gradient, and is updated by the optimiser
  Statistic,  ///< of the data, updated by the forward pass: a running mean
  Moment,     ///< the optimiser's, of one parameter
  Step,       ///< the optimiser's count of steps
};

struct Value {
  ValueId id;
  std::string name;  ///< unique within the graph
  TensorSpec spec;
  ValueKind kind = ValueKind::Activation;
  StateRole role = StateRole::Other;   ///< of a State
  NodeId producer;                     ///< of an Activation
  int output_index = 0;                ///< which output of the producer
  std::shared_ptr<const Tensor> data;  ///< of a Constant, or the initial value of a State
};

/// Two values that are one piece of memory, before and after a node.
struct StateUpdate {
  ValueId before;  ///< input of the node
  ValueId after;   ///< its output
};

/// The part of a training step that a node belongs to.
enum class Phase : std::uint8_t { Forward, Backward, Update };

struct Node {
  NodeId id;
  std::string name;  ///< unique within the graph, scoped by dots: "down1.conv0"
  OpPtr op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Phase phase = Phase::Forward;
  /// For a backward node, the first output of the forward node that it differentiates. Invalid
  /// after a pass that fused that node into another.
  ValueId differentiates = {};
  /// Names of the nodes that a fusion has merged into this one, in order. Empty: none.
  std::vector<std::string> merged = {};

  /// `merged`, or the node's own name.
  std::vector<std::string> stands_for() const;
  /// The states that the node updates in place (Op::updates).
  std::vector<StateUpdate> updates() const;
};

struct NamedValue {
  std::string name;
  ValueId value;
};

class Graph : public OpEmitter {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  /// Copies are cheap: operators and constant data are shared.
  Graph clone() const { return Graph(*this); }

  /// Names must be new. Throws InvalidArgument otherwise.
  ValueId add_input(const std::string& name, TensorSpec spec);
  ValueId add_state(const std::string& name, Tensor initial, StateRole role = StateRole::Other);
  ValueId add_state(const std::string& name, std::shared_ptr<const Tensor> initial,
                    StateRole role = StateRole::Other);
  ValueId add_constant(const std::string& name, std::shared_ptr<const Tensor> value);
  /// Replaces the initial value of a state. Throws InvalidArgument for another spec.
  void set_initial(ValueId state, std::shared_ptr<const Tensor> initial);
  /// Lets go of the data of a state or constant, which lives elsewhere from now on. Others that
  /// share it keep it.
  void release_data(ValueId value) { values_.at(value.index()).data.reset(); }
  /// Appends a node. Its name is scope + `name` (made unique by a number), by default the
  /// operator's lower-case name. An InvalidArgument of the shape rule is rethrown with the node's
  /// name.
  std::vector<ValueId> add_node(OpPtr op, Values inputs, std::string_view name = {});
  /// Replaces a composite node by its expansion, in place: ids of values stay, ids of later nodes
  /// shift. The composite's outputs become views of the expansion's.
  void expand_composite(NodeId id);
  /// Makes `value` readable by the caller after a run, under a name of its own that must be new.
  void mark_output(std::string name, ValueId value);

  std::vector<ValueId> emit(OpPtr op, Values inputs) override;
  ValueId constant(Tensor value) override;
  const TensorSpec& spec(ValueId value) const override;

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<NamedValue>& outputs() const { return outputs_; }
  const Node& node(NodeId id) const { return nodes_.at(id.index()); }
  const Value& value(ValueId id) const { return values_.at(id.index()); }
  /// The value of that name. Throws InvalidArgument listing near names when there is none.
  ValueId find(std::string_view name) const;
  bool contains(std::string_view name) const;
  /// Values of this kind in order of definition.
  std::vector<ValueId> values_of(ValueKind kind) const;
  /// For each value, the nodes that read it, in order.
  std::vector<std::vector<NodeId>> consumers() const;
  std::vector<TensorSpec> specs(Values values) const;

  /// Prefix for the names of nodes and states that are added while it exists:
  /// `auto s = graph.scope("down1");`
  class Scope {
   public:
    Scope(Graph& graph, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph& graph_;
    std::size_t previous_size_;
  };
  [[nodiscard]] Scope scope(std::string_view name) { return Scope(*this, name); }
  const std::string& prefix() const { return prefix_; }

  /// Phase of the nodes added while it lives, and which forward node they differentiate.
  class PhaseScope {
   public:
    PhaseScope(Graph& graph, Phase phase, ValueId differentiates);
    ~PhaseScope();
    PhaseScope(const PhaseScope&) = delete;
    PhaseScope& operator=(const PhaseScope&) = delete;

   private:
    Graph& graph_;
    Phase phase_;
    ValueId differentiates_;
  };
  [[nodiscard]] PhaseScope phase(Phase phase, ValueId differentiates = {}) {
    return PhaseScope(*this, phase, differentiates);
  }

 private:
  friend class Rewriter;  // copies nodes and values under their exact names

  Graph(const Graph&) = default;
  ValueId add_value(Value value);
  std::vector<ValueId> add_named_node(OpPtr op, Values inputs, std::string name);
  void append_node(Node node);
  std::string unique_name(std::string wanted);

  std::vector<Node> nodes_;
  std::vector<Value> values_;
  std::vector<NamedValue> outputs_;
  std::unordered_map<std::string, ValueId> value_names_;
  std::unordered_map<std::string, int> name_counts_;
  std::string prefix_;
  Phase phase_ = Phase::Forward;
  ValueId differentiates_;
};

/// Checks everything a plan relies on: ids in range, definition before use, specs equal to the
/// shape rules', unique names, update rules of state. An updated input must be a state (or the
/// update of one) of the output's spec, and nothing may read the old value afterwards. Throws
/// InvalidArgument naming the node.
void verify(const Graph& graph);
/// The same for the lists that a graph is made of.
void verify(std::span<const Node> nodes, std::span<const Value> values,
            std::span<const NamedValue> outputs);

/// Inputs, states and constants, then one line per node, then the outputs. A node's line reads
/// `%y: f32[1, 8, 64, 64] = Conv(pads=[1, 1, 1, 1]) %x, %w  # down1.conv0`.
std::string to_text(const Graph& graph);

/// The graph in Graphviz's dot language.
std::string to_dot(const Graph& graph);

}  // namespace triptych
