// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/tensor_parallel.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/ops/collectives.h"
#include "core/ops/slice.h"
#include "parallel/strategies/step_parts.h"

namespace triptych::parallel {
namespace {

constexpr const char* kAxis = "tp";

/// A value as this rank has it: none, some or all of these forms.
struct Forms {
  ValueId whole;
  ValueId part;            ///< this rank's part of `axis`
  std::int64_t axis = -1;  ///< of the tensor
  ValueId term;            ///< the value is the sum of all ranks' terms
};

class TensorSplitter {
 public:
  TensorSplitter(const TrainingGraph& training, const TensorParallelOptions& options)
      : training_(training), source_(training.graph), options_(options) {}

  TensorParallelGraph run() {
    for (const auto input : source_.values_of(ValueKind::Input)) {
      const auto& value = source_.value(input);
      forms_[input].whole = target_.add_input(value.name, value.spec);
    }
    const auto& update = update_node(training_);
    for (const auto& node : source_.nodes()) {
      if (&node == &update) {
        copy_update(node);
      } else if (!split(node)) {
        copy_whole(node);
      }
    }
    for (const auto& output : source_.outputs())
      target_.mark_output(output.name, whole(output.value));
    own_.graph = std::move(target_);
    return {std::move(own_), std::move(homes_), {without_rule_.begin(), without_rule_.end()}};
  }

 private:
  const Shape& shape(ValueId old) const { return source_.spec(old).shape; }
  bool divides(ValueId old, std::int64_t axis) const {
    return axis >= 0 && axis < shape(old).rank() && shape(old)[axis] % options_.parts == 0;
  }
  /// A state that nothing has read: its first reader chooses how it is cut.
  bool open(ValueId old) const {
    return source_.value(old).kind == ValueKind::State && !forms_.contains(old);
  }
  bool has_whole(ValueId old) const {
    const auto forms = forms_.find(old);
    return forms == forms_.end() || forms->second.whole.valid();
  }
  bool has_part(ValueId old, std::int64_t axis) const {
    const auto forms = forms_.find(old);
    return forms != forms_.end() && forms->second.part.valid() && forms->second.axis == axis;
  }
  bool has_term(ValueId old) const {
    const auto forms = forms_.find(old);
    return forms != forms_.end() && forms->second.term.valid() && !forms->second.part.valid() &&
           !forms->second.whole.valid();
  }
  /// True when it is best had as a part of that axis.
  bool apart(ValueId old, std::int64_t axis) const {
    return has_part(old, axis) && !has_whole(old);
  }

  ValueId emit(OpPtr op, ValueId input, const std::string& name) {
    const std::vector<ValueId> inputs = {input};
    return target_.add_node(std::move(op), inputs, name).front();
  }

  ValueId add_leaf(const Value& value, std::int64_t split) {
    if (value.kind == ValueKind::Constant) return target_.add_constant(value.name, value.data);
    if (split < 0) return target_.add_state(value.name, value.data, value.role);
    auto& home = homes_[value.name];
    home.whole = value.spec;
    home.axis = kAxis;
    home.split = split;
    home.role = value.role;
    return target_.add_state(
        value.name, part_of_tensor(*value.data, options_.place, options_.parts, split), value.role);
  }

  /// The whole value on every rank.
  ValueId whole(ValueId old) {
    auto& forms = forms_[old];
    if (forms.whole.valid()) return forms.whole;
    const auto& value = source_.value(old);
    if (forms.part.valid()) {
      AllGather gather;
      gather.axis = kAxis;
      gather.parts = options_.parts;
      gather.split = forms.axis;
      gather.add_shape(value.spec.shape);
      gather.label = value.name;
      forms.whole = emit(make_op(gather), forms.part, value.name + ".gathered");
    } else if (forms.term.valid()) {
      AllReduce sum;
      sum.axis = kAxis;
      sum.order = options_.order;
      sum.label = value.name;
      forms.whole = emit(make_op(sum), forms.term, value.name + ".sum");
    } else {
      forms.whole = add_leaf(value, -1);
    }
    return forms.whole;
  }

  /// This rank's part of that axis, which the ranks divide evenly.
  ValueId part(ValueId old, std::int64_t axis) {
    auto& forms = forms_[old];
    if (forms.part.valid() && forms.axis == axis) return forms.part;
    const auto& value = source_.value(old);
    ValueId own;
    if (forms.term.valid() && !forms.whole.valid()) {
      ReduceScatter sum;
      sum.axis = kAxis;
      sum.order = options_.order;
      sum.parts = options_.parts;
      sum.split = axis;
      sum.label = value.name;
      own = emit(make_op(sum), forms.term, value.name + ".sum_part");
    } else if (open_leaf(value, forms)) {
      own = add_leaf(value, axis);
    } else {
      const auto length = value.spec.shape[axis] / options_.parts;
      Slice slice;
      slice.starts = {options_.place * length};
      slice.ends = {(options_.place + 1) * length};
      slice.axes = {axis};
      own = emit(make_op(slice), whole(old), value.name + ".part");
    }
    if (!forms.part.valid()) {
      forms.part = own;
      forms.axis = axis;
    }
    return own;
  }
  static bool open_leaf(const Value& value, const Forms& forms) {
    return value.kind == ValueKind::State && !forms.whole.valid() && !forms.part.valid();
  }

  std::vector<ValueId> add(const Node& node, const OpPtr& op, const std::vector<ValueId>& inputs) {
    const auto phase = target_.phase(node.phase);
    return target_.add_node(op, inputs, node.name);
  }
  void set_whole(ValueId old, ValueId value) { forms_[old] = {.whole = value}; }

  void copy_whole(const Node& node) {
    std::vector<ValueId> inputs;
    for (const auto input : node.inputs) inputs.push_back(whole(input));
    const auto outputs = add(node, node.op, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) set_whole(node.outputs[i], outputs[i]);
  }

  /// Computes a part of the node, or a term of it, if one of the operator's rules is worth it.
  bool split(const Node& node) {
    const auto rules =
        node.op->shardings(source_.specs(node.inputs), source_.specs(node.outputs), options_.parts);
    const auto wanted = split_of_parameter(node.outputs[0]);
    auto rule = std::ranges::find_if(rules, [&](const Sharding& one) {
      return wanted >= 0 && one.where != Sharding::Where::OperandsAreCut &&
             one.outputs[0] == wanted;
    });
    if (rule == rules.end())
      rule = std::ranges::find_if(rules, [&](const Sharding& one) { return worth(node, one); });
    if (rule != rules.end()) {
      apply(node, *rule);
      return true;
    }
    if (rules.empty() && std::ranges::any_of(node.inputs, [&](ValueId v) { return !has_whole(v); }))
      without_rule_.insert(std::string(node.op->name()));
    return false;
  }

  /// The cut of the parameter with this gradient. -1: it is whole, or `value` is none.
  std::int64_t split_of_parameter(ValueId value) const {
    const auto& names = training_.parameter_gradients;
    const auto found = std::ranges::find(names, source_.value(value).name);
    if (found == names.end()) return -1;
    const auto home =
        homes_.find(training_.parameters[static_cast<std::size_t>(found - names.begin())]);
    return home == homes_.end() ? -1 : home->second.split;
  }

  /// True when the cut divides evenly and saves more than it sends.
  bool worth(const Node& node, const Sharding& rule) const {
    bool any_apart = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto axis = rule.inputs[i];
      if (axis == Sharding::kTerm) return has_term(node.inputs[i]);
      if (axis == Sharding::kWhole) continue;
      if (!divides(node.inputs[i], axis)) return false;
      any_apart = any_apart || apart(node.inputs[i], axis);
    }
    if (rule.where != Sharding::Where::WeightsAreCut)
      return any_apart && rule.where == Sharding::Where::OperandsAreCut;
    const auto weights = node.inputs[1];
    const bool may_cut = rule.cuts_weights && open(weights);
    if (rule.outputs[0] != Sharding::kTerm) return may_cut || apart(weights, rule.inputs[1]);
    return has_part(weights, rule.inputs[1]) || (may_cut && apart(node.inputs[0], rule.inputs[0]));
  }

  void apply(const Node& node, const Sharding& rule) {
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto input = node.inputs[i];
      const auto axis = rule.inputs[i];
      inputs.push_back(axis == Sharding::kTerm    ? forms_.at(input).term
                       : axis == Sharding::kWhole ? whole(input)
                                                  : part(input, axis));
    }
    const auto outputs = add(node, rule.op ? rule.op : node.op, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto axis = rule.outputs[i];
      auto& forms = forms_[node.outputs[i]];
      if (axis == Sharding::kTerm) {
        forms = {.term = outputs[i]};
      } else if (axis == Sharding::kWhole) {
        forms = {.whole = outputs[i]};
      } else {
        forms = {.part = outputs[i], .axis = axis};
      }
    }
  }

  /// Each rank updates its own part: a gradient and the moments are cut like their parameter.
  void copy_update(const Node& node) {
    const auto count = training_.parameters.size();
    std::vector<ValueId> inputs = {whole(node.inputs[0]), whole(node.inputs[1])};
    for (std::size_t i = 2; i < node.inputs.size(); ++i) {
      const auto parameter = node.inputs[2 + (i - 2) % count];
      const auto home = homes_.find(source_.value(parameter).name);
      inputs.push_back(home == homes_.end() ? whole(node.inputs[i])
                                            : part(node.inputs[i], home->second.split));
      const auto kind = (i - 2) / count;  // parameters, gradients, moments
      const auto& name = target_.value(inputs.back()).name;
      if (kind == 0) own_.parameters.push_back(name);
      if (kind == 1) own_.parameter_gradients.push_back(name);
    }
    target_.add_node(node.op, inputs, node.name);
  }

  const TrainingGraph& training_;
  const Graph& source_;
  TensorParallelOptions options_;
  Graph target_;
  TrainingGraph own_;
  std::map<ValueId, Forms> forms_;  // by value of `source_`
  std::map<std::string, StateHome> homes_;
  std::set<std::string> without_rule_;
};

}  // namespace

TensorParallelGraph tensor_parallel(const TrainingGraph& training,
                                    const TensorParallelOptions& options) {
  return TensorSplitter(training, options).run();
}

}  // namespace triptych::parallel
