// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/tensor_parallel.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"
#include "core/ops/collectives.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/matmul.h"
#include "core/ops/pool.h"
#include "core/ops/reduce.h"
#include "core/ops/reshape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"
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
    return {std::move(own_), std::move(homes_)};
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
  /// Is it best had as a part of that axis?
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
  void set_part(ValueId old, ValueId value, std::int64_t axis) {
    forms_[old] = {.part = value, .axis = axis};
  }
  void set_term(ValueId old, ValueId value) { forms_[old] = {.term = value}; }

  void copy_whole(const Node& node) {
    std::vector<ValueId> inputs;
    for (const auto input : node.inputs) inputs.push_back(whole(input));
    const auto outputs = add(node, node.op, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) set_whole(node.outputs[i], outputs[i]);
  }

  /// Computes a part of the node, or a term of it, if that is the better way.
  bool split(const Node& node) {
    if (const auto* op = op_cast<Conv>(*node.op))
      return op->group == 1 && split_product(node, product_of_conv(0, 1));
    if (const auto* op = op_cast<ConvTranspose>(*node.op))
      return op->group == 1 && split_product(node, product_of_conv(1, 0));
    if (const auto* op = op_cast<ConvWeightGradient>(*node.op))
      return op->group == 1 && split_weight_gradient(node);
    if (const auto* op = op_cast<MatMul>(*node.op)) return split_matmul(node, *op);
    if (op_cast<BatchNormalization>(*node.op) != nullptr ||
        op_cast<BatchNormalizationGradient>(*node.op) != nullptr ||
        op_cast<MaxPool>(*node.op) != nullptr || op_cast<MaxPoolGradient>(*node.op) != nullptr)
      return split_channels(node);
    if (op_cast<Identity>(*node.op) != nullptr || op_cast<Slice>(*node.op) != nullptr)
      if (apply_to_term(node)) return true;
    if (op_cast<Unary>(*node.op) != nullptr || op_cast<Binary>(*node.op) != nullptr ||
        op_cast<Identity>(*node.op) != nullptr)
      return split_elements(node);
    if (const auto* op = op_cast<Reduce>(*node.op)) return split_reduce(node, *op);
    if (op_cast<Reshape>(*node.op) != nullptr) return split_reshape(node);
    return false;
  }

  /// y = a b as axes: of a, b and y those of y's rows and columns, and those that are summed over.
  struct Product {
    std::int64_t a_rows, a_sum, b_columns, b_sum, y_rows, y_columns;
  };
  /// x [N, C, ...] and weights whose axes are these.
  static Product product_of_conv(std::int64_t out, std::int64_t in) {
    return {.a_rows = -1, .a_sum = 1, .b_columns = out, .b_sum = in, .y_rows = -1, .y_columns = 1};
  }

  bool split_matmul(const Node& node, const MatMul& op) {
    const auto a = shape(node.inputs[0]).rank(), b = shape(node.inputs[1]).rank();
    if (a < 2 || b != 2) return false;
    return split_product(node, {.a_rows = op.transpose_a ? a - 1 : a - 2,
                                .a_sum = op.transpose_a ? a - 2 : a - 1,
                                .b_columns = op.transpose_b ? 0 : 1,
                                .b_sum = op.transpose_b ? 1 : 0,
                                .y_rows = a - 2,
                                .y_columns = a - 1});
  }

  bool split_product(const Node& node, const Product& axes) {
    const auto a = node.inputs[0], b = node.inputs[1], y = node.outputs[0];
    const bool has_bias = node.inputs.size() > 2;
    const bool sum_apart = apart(a, axes.a_sum) && (open(b) || has_part(b, axes.b_sum));
    const bool is_matmul = axes.a_rows >= 0;
    const auto wanted = split_of_parameter(y);
    if (wanted >= 0) {
      const bool rows = wanted == axes.y_rows;
      set_part(
          y,
          add(node, node.op,
              {rows ? part(a, axes.a_rows) : whole(a), rows ? whole(b) : part(b, axes.b_columns)})
              .front(),
          wanted);
      return true;
    }
    if (!has_bias && ((sum_apart && is_matmul) || has_part(b, axes.b_sum)) &&
        divides(a, axes.a_sum) && divides(b, axes.b_sum)) {
      set_term(y, add(node, node.op, {part(a, axes.a_sum), part(b, axes.b_sum)}).front());
      return true;
    }
    if ((open(b) || apart(b, axes.b_columns)) && divides(b, axes.b_columns)) {
      std::vector<ValueId> inputs = {whole(a), part(b, axes.b_columns)};
      if (has_bias) inputs.push_back(part(node.inputs[2], 0));
      set_part(y, add(node, node.op, inputs).front(), axes.y_columns);
      return true;
    }
    return false;
  }

  /// How the parameter is cut whose gradient this is; -1: it is whole, or `value` is none.
  std::int64_t split_of_parameter(ValueId value) const {
    const auto& names = training_.parameter_gradients;
    const auto found = std::ranges::find(names, source_.value(value).name);
    if (found == names.end()) return -1;
    const auto home =
        homes_.find(training_.parameters[static_cast<std::size_t>(found - names.begin())]);
    return home == homes_.end() ? -1 : home->second.split;
  }

  /// dw [O, C, taps] of x [N, C, ...] and dy [N, O, ...]: a part of one of them makes a part of dw.
  bool split_weight_gradient(const Node& node) {
    const auto x = node.inputs[0], dy = node.inputs[1], dw = node.outputs[0];
    const auto axis = split_of_parameter(dw);
    if (axis < 0) return false;
    const auto inputs =
        axis == 0 ? std::vector{whole(x), part(dy, 1)} : std::vector{part(x, 1), whole(dy)};
    set_part(dw, add(node, node.op, inputs).front(), axis);
    return true;
  }

  /// Each channel on its own: axis 1 of images, axis 0 of what has one number per channel.
  bool split_channels(const Node& node) {
    const bool any = std::ranges::any_of(
        node.inputs, [&](ValueId v) { return shape(v).rank() > 1 && apart(v, 1); });
    const auto axis = [&](ValueId v) { return shape(v).rank() > 1 ? 1 : 0; };
    if (!any || !std::ranges::all_of(node.inputs, [&](ValueId v) { return divides(v, axis(v)); }))
      return false;
    std::vector<ValueId> inputs;
    for (const auto input : node.inputs) inputs.push_back(part(input, axis(input)));
    const auto outputs = add(node, node.op, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      set_part(node.outputs[i], outputs[i], axis(node.outputs[i]));
    return true;
  }

  bool split_elements(const Node& node) {
    const auto y = node.outputs[0];
    const auto rank = shape(y).rank();
    for (std::int64_t axis = 0; axis < rank; ++axis) {
      // Broadcasting aligns last axes.
      const auto of = [&](ValueId v) { return axis - (rank - shape(v).rank()); };
      const auto is_cut = [&](ValueId v) { return of(v) >= 0 && shape(v)[of(v)] != 1; };
      if (!divides(y, axis) ||
          std::ranges::none_of(node.inputs, [&](ValueId v) { return apart(v, of(v)); }))
        continue;
      std::vector<ValueId> inputs;
      for (const auto input : node.inputs)
        inputs.push_back(is_cut(input) ? part(input, of(input)) : whole(input));
      set_part(y, add(node, node.op, inputs).front(), axis);
      return true;
    }
    return false;
  }

  bool split_reduce(const Node& node, const Reduce& op) {
    const auto x = node.inputs[0], y = node.outputs[0];
    const auto rank = shape(x).rank();
    std::vector<bool> reduced(static_cast<std::size_t>(rank), op.axes.empty());
    for (const auto axis : op.axes)
      reduced[static_cast<std::size_t>(normalize_axis(axis, rank))] = true;
    std::int64_t kept = 0;
    for (std::int64_t axis = 0; axis < rank; ++axis) {
      if (reduced[static_cast<std::size_t>(axis)]) continue;
      if (apart(x, axis)) {
        set_part(y, add(node, node.op, {part(x, axis)}).front(), op.keepdims ? axis : kept);
        return true;
      }
      ++kept;
    }
    return false;
  }

  /// When an axis of y is the axis of x that is cut.
  bool split_reshape(const Node& node) {
    const auto x = node.inputs[0], y = node.outputs[0];
    const auto forms = forms_.find(x);
    if (forms == forms_.end() || !forms->second.part.valid() || has_whole(x)) return false;
    const auto from = forms->second.axis;
    for (std::int64_t axis = 0; axis < shape(y).rank(); ++axis) {
      if (shape(y)[axis] != shape(x)[from] ||
          shape(y).elements_between(0, axis) != shape(x).elements_between(0, from))
        continue;
      Reshape reshape;
      reshape.shape = shape(y).dims();
      reshape.shape[static_cast<std::size_t>(axis)] /= options_.parts;
      set_part(y, add(node, make_op(reshape), {part(x, from)}).front(), axis);
      return true;
    }
    return false;
  }

  /// A section of a sum is the sum of the sections.
  bool apply_to_term(const Node& node) {
    if (!has_term(node.inputs[0])) return false;
    set_term(node.outputs[0], add(node, node.op, {forms_.at(node.inputs[0]).term}).front());
    return true;
  }

  /// Each rank updates what it has: a gradient and the moments are cut as their parameter is.
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
};

}  // namespace

TensorParallelGraph tensor_parallel(const TrainingGraph& training,
                                    const TensorParallelOptions& options) {
  return TensorSplitter(training, options).run();
}

}  // namespace triptych::parallel
