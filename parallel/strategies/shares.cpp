// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/shares.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/autodiff/autodiff.h"
#include "core/graph/passes/rewrite.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/cast.h"
#include "core/ops/concat.h"
#include "core/ops/dropout.h"
#include "core/ops/formula.h"
#include "core/ops/gather.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/reshape.h"
#include "core/ops/slice.h"
#include "core/ops/softmax.h"
#include "core/ops/transpose.h"
#include "parallel/strategies/step_parts.h"

namespace triptych::parallel {
namespace {

/// How a share's value stands to that of the whole batch.
enum class Kind : std::uint8_t {
  Same,     ///< it is the same
  Rows,     ///< the share's rows of it
  Mean,     ///< the mean over the shares is that of the batch
  Sum,      ///< the sum over the shares is
  Inverse,  ///< a constant: that of the batch times the number of shares
  Other
};

/// Compares the step of a share with the step of a batch of double size. An axis that doubles is
/// the batch. A constant that doubles or halves counts its rows.
class Dependences {
 public:
  Dependences(const TrainingGraph& share, const TrainingGraph& twice)
      : graph_(share.graph),
        twice_(twice.graph),
        kinds_(graph_.values().size(), Kind::Same),
        trains_(graph_.values().size()),
        common_(graph_.values().size()),
        causes_(graph_.values().size()) {
    if (!comparable()) {
      inexact_.emplace_back("the step's operators depend on the number of rows");
      return;
    }
    for (const auto& value : graph_.values())
      if (value.kind != ValueKind::Activation) kinds_[value.id.index()] = kind_of_leaf(value);
    for (const auto& name : share.parameters) trains_[graph_.find(name).index()] = true;
    for (const auto& node : graph_.nodes())
      if (node.phase == Phase::Forward) visit(node);
    const auto loss = loss_value(share).id;
    const auto kind = kind_of(loss);
    if (kind == Kind::Other || kind == Kind::Rows || kind == Kind::Inverse) {
      const auto& cause = graph_.node(causes_[loss.index()].valid() ? causes_[loss.index()]
                                                                    : graph_.value(loss).producer);
      inexact_.push_back(
          fmt::format("the loss reads \"{}\" ({}), which combines the rows of a share in a way "
                      "that shares do not add up",
                      cause.name, cause.op->name()));
    }
  }

  Kind kind_of(ValueId value) const { return kinds_[value.index()]; }
  /// Inputs of a node that have to be those of the whole batch.
  const std::set<ValueId>& joined(const Node& node) const {
    static const std::set<ValueId> none;
    const auto found = joined_.find(node.id);
    return found == joined_.end() ? none : found->second;
  }
  /// Losses that are means over a number of labels that differs between shares.
  const std::set<NodeId>& counted() const { return counted_; }
  bool plain() const { return joined_.empty() && counted_.empty(); }
  bool has_batch_norm() const { return has_batch_norm_; }
  const std::vector<std::string>& inexact() const { return inexact_; }
  /// Training dropouts of rows.
  const std::vector<std::string>& drawn_by_row() const { return drawn_by_row_; }

 private:
  bool comparable() const {
    return std::ranges::equal(graph_.nodes(), twice_.nodes(),
                              [](const Node& a, const Node& b) {
                                return a.op->name() == b.op->name() && a.inputs == b.inputs &&
                                       a.outputs == b.outputs;
                              }) &&
           graph_.values().size() == twice_.values().size();
  }

  /// Axes that double with the number of rows.
  std::vector<std::int64_t> batch_axes(ValueId value) const {
    const auto &own = graph_.spec(value).shape, &other = twice_.spec(value).shape;
    std::vector<std::int64_t> axes;
    for (std::int64_t axis = 0; axis < own.rank() && axis < other.rank(); ++axis)
      if (other[axis] == 2 * own[axis] && own[axis] > 0) axes.push_back(axis);
    return axes;
  }
  std::int64_t batch_axis(ValueId value) const { return batch_axes(value).front(); }

  Kind kind_of_leaf(const Value& value) const {
    const auto axes = batch_axes(value.id);
    if (value.kind != ValueKind::Constant) return axes.empty() ? Kind::Same : Kind::Rows;
    const auto own = to_doubles(*value.data), other = to_doubles(*twice_.value(value.id).data);
    if (!axes.empty()) {
      // Rows that are the same in every share.
      const bool repeats = axes.size() == 1 && axes[0] == 0 &&
                           std::equal(own.begin(), own.end(), other.begin()) &&
                           std::equal(own.begin(), own.end(),
                                      other.begin() + static_cast<std::ptrdiff_t>(own.size()));
      return repeats ? Kind::Rows : Kind::Other;
    }
    const auto times = [&](double factor) {
      return std::ranges::equal(own, other, [&](double a, double b) { return factor * a == b; });
    };
    if (own == other || times(1)) return Kind::Same;
    return times(2) ? Kind::Sum : times(0.5) ? Kind::Inverse : Kind::Other;
  }

  void set(const Node& node, Kind kind) {
    for (const auto output : node.outputs) {
      kinds_[output.index()] = kind;
      if (kind == Kind::Other) causes_[output.index()] = node.id;
    }
  }

  bool varies(ValueId value) const {
    const auto kind = kind_of(value);
    return kind == Kind::Mean || kind == Kind::Sum || kind == Kind::Inverse;
  }

  /// The node reads its inputs as the whole batch has them. False: they are not of f32, which alone
  /// is added.
  bool join(const Node& node) {
    for (const auto input : node.inputs) {
      if (!varies(input)) continue;
      if (graph_.spec(input).dtype != DType::F32) return false;
      joined_[node.id].insert(input);
    }
    return true;
  }

  /// True when a gradient flows from the node to a sum of all shares. Each share computes the whole
  /// of it only if it computes the same as the others.
  bool trains_joined(const Node& node) const {
    return std::ranges::any_of(node.inputs, [&](ValueId value) {
      return common_[value.index()] || (varies(value) && trains_[value.index()]);
    });
  }

  void visit(const Node& node) {
    has_batch_norm_ = has_batch_norm_ || op_cast<BatchNormalization>(*node.op) != nullptr;
    const bool trains =
        std::ranges::any_of(node.inputs, [&](ValueId value) { return trains_[value.index()]; });
    for (const auto output : node.outputs)
      trains_[output.index()] = trains && is_floating(graph_.spec(output).dtype);
    const auto has = [&](Kind kind) {
      return std::ranges::find(node.inputs, kind, [&](ValueId value) { return kind_of(value); }) !=
             node.inputs.end();
    };
    if (has(Kind::Other)) return pass_on_other(node);
    const bool spreads = !batch_axes(node.outputs.front()).empty();
    if (spreads || has(Kind::Rows)) {
      if (trains_joined(node) || !join(node)) return set(node, Kind::Other);
      return has(Kind::Rows) ? visit_rows(node) : set(node, Kind::Rows);
    }
    const auto kind = linear_kind(node);
    if (kind && !multiplies_common(node)) {
      set(node, *kind);
    } else {
      set(node, join(node) ? Kind::Same : Kind::Other);
    }
    const bool common = kind_of(node.outputs.front()) == Kind::Same && trains_joined(node);
    for (const auto output : node.outputs) common_[output.index()] = common;
  }

  /// A product with a value that all shares have made of their sums, which is linear in one of them
  /// alone.
  bool multiplies_common(const Node& node) const {
    const auto* op = op_cast<Binary>(*node.op);
    return op != nullptr && op->kind != BinaryKind::Add && op->kind != BinaryKind::Sub &&
           std::ranges::any_of(node.inputs, [&](ValueId v) { return common_[v.index()]; }) &&
           std::ranges::any_of(node.inputs, [&](ValueId v) { return varies(v); });
  }

  void pass_on_other(const Node& node) {
    set(node, Kind::Other);
    for (const auto input : node.inputs) {
      if (kind_of(input) != Kind::Other || !causes_[input.index()].valid()) continue;
      for (const auto output : node.outputs) causes_[output.index()] = causes_[input.index()];
      return;
    }
  }

  void visit_rows(const Node& node) {
    if (draws(node)) {
      drawn_by_row_.push_back(graph_.value(node.outputs.front()).name);
      if (batch_axis(node.inputs[0]) != 0)
        inexact_.push_back(fmt::format("\"{}\" draws by the place in each share", node.name));
    }
    for (const auto output : node.outputs) {
      const auto axes = batch_axes(output);
      auto& kind = kinds_[output.index()];
      kind = axes.empty() ? reduced_kind(node) : axes.size() == 1 ? Kind::Rows : Kind::Other;
      if (kind == Kind::Rows && mixes_rows(node, axes[0])) kind = Kind::Other;
      if (kind == Kind::Other) causes_[output.index()] = node.id;
    }
    if (is_counted(node)) counted_.insert(node.id);
  }

  static bool draws(const Node& node) {
    const auto* dropout = op_cast<Dropout>(*node.op);
    return dropout != nullptr && dropout->training_mode;
  }
  static bool is_counted(const Node& node) {
    const auto* loss = op_cast<SoftmaxCrossEntropyLoss>(*node.op);
    return loss != nullptr && loss->reduction == "mean";
  }

  /// The kind of an output without the batch's axis.
  Kind reduced_kind(const Node& node) const {
    if (const auto* reduce = op_cast<Reduce>(*node.op)) {
      return reduce->kind == ReduceKind::Sum    ? Kind::Sum
             : reduce->kind == ReduceKind::Mean ? Kind::Mean
                                                : Kind::Other;
    }
    if (op_cast<BinaryCrossEntropyWithLogits>(*node.op) != nullptr) return Kind::Mean;
    if (const auto* loss = op_cast<SoftmaxCrossEntropyLoss>(*node.op))
      return loss->reduction == "mean" ? Kind::Mean : Kind::Sum;
    const bool sums = op_cast<MatMul>(*node.op) != nullptr &&
                      kind_of(node.inputs[0]) == Kind::Rows &&
                      kind_of(node.inputs[1]) == Kind::Rows;
    return sums ? Kind::Sum : Kind::Other;
  }

  /// True when a row of the output is made of several rows, or of another one.
  bool mixes_rows(const Node& node, std::int64_t axis) const {
    const auto rank = graph_.spec(node.outputs.front()).shape.rank();
    const auto is = [&](std::int64_t one) { return (one < 0 ? one + rank : one) == axis; };
    if (const auto* op = op_cast<Softmax>(*node.op)) return is(op->axis);
    if (const auto* op = op_cast<Concat>(*node.op)) return is(op->axis);
    if (const auto* op = op_cast<Slice>(*node.op)) return std::ranges::any_of(op->axes, is);
    if (const auto* op = op_cast<Gather>(*node.op))
      return kind_of(node.inputs[0]) == Kind::Rows && is(op->axis);
    if (!node.op->view()) return false;
    const auto& x = graph_.spec(node.inputs[0]).shape;
    const auto& y = graph_.spec(node.outputs[0]).shape;
    return x.elements_between(0, batch_axis(node.inputs[0])) != y.elements_between(0, axis);
  }

  /// The kind of a result that is linear in all inputs that differ between shares.
  std::optional<Kind> linear_kind(const Node& node) const {
    const auto count =
        std::ranges::count_if(node.inputs, [&](ValueId value) { return varies(value); });
    if (count == 0) return Kind::Same;
    if (const auto* op = op_cast<Binary>(*node.op)) return kind_of_binary(node, op->kind);
    const auto* unary = op_cast<Unary>(*node.op);
    const auto* reduce = op_cast<Reduce>(*node.op);
    const bool linear = node.op->view() || op_cast<Cast>(*node.op) != nullptr ||
                        op_cast<Transpose>(*node.op) != nullptr ||
                        op_cast<Slice>(*node.op) != nullptr ||
                        (unary != nullptr && unary->kind == UnaryKind::Neg) ||
                        (reduce != nullptr &&
                         (reduce->kind == ReduceKind::Sum || reduce->kind == ReduceKind::Mean));
    const bool to_floats =
        is_floating(graph_.spec(node.outputs.front()).dtype) || op_cast<Cast>(*node.op) == nullptr;
    if (!linear || !to_floats || !varies(node.inputs[0]) || count != 1) return std::nullopt;
    return kind_of(node.inputs[0]);
  }

  std::optional<Kind> kind_of_binary(const Node& node, BinaryKind op) const {
    const auto a = kind_of(node.inputs[0]), b = kind_of(node.inputs[1]);
    const auto constant = [&](int i) {
      return graph_.value(node.inputs[static_cast<std::size_t>(i)]).kind == ValueKind::Constant;
    };
    const auto is = [&](Kind x, Kind y) { return a == x && b == y; };
    if (op == BinaryKind::Add || op == BinaryKind::Sub) {
      if (a == b) return a;
      const bool mean = is(Kind::Mean, Kind::Same) || is(Kind::Same, Kind::Mean);
      return mean ? std::optional(Kind::Mean) : std::nullopt;
    }
    if (op == BinaryKind::Mul) {
      if (b == Kind::Same) return a;
      if (a == Kind::Same) return b;
      if (is(Kind::Sum, Kind::Inverse) || is(Kind::Inverse, Kind::Sum)) return Kind::Mean;
      if ((is(Kind::Mean, Kind::Sum) && constant(1)) || (is(Kind::Sum, Kind::Mean) && constant(0)))
        return Kind::Sum;
    }
    if (op == BinaryKind::Div) {
      if (b == Kind::Same) return a;
      if (is(Kind::Sum, Kind::Sum) && constant(1)) return Kind::Mean;
      if (is(Kind::Mean, Kind::Inverse)) return Kind::Sum;
    }
    return std::nullopt;
  }

  const Graph& graph_;
  const Graph& twice_;
  std::vector<Kind> kinds_;     // by value
  std::vector<bool> trains_;    // likewise: the parameters decide it
  std::vector<bool> common_;    // likewise: the same in all shares, made of their sums
  std::vector<NodeId> causes_;  // of Kind::Other
  std::map<NodeId, std::set<ValueId>> joined_;
  std::set<NodeId> counted_;
  std::vector<std::string> drawn_by_row_, inexact_;
  bool has_batch_norm_ = false;
};

/// The forward pass again, with the sums of all shares where the loss needs them, and its
/// gradients.
class ShareBuilder {
 public:
  ShareBuilder(const TrainingGraph& training, const Dependences& dependences, int shares)
      : training_(training),
        source_(training.graph),
        dependences_(dependences),
        shares_(static_cast<double>(shares)),
        update_(update_node(training)),
        map_(source_.values().size()) {}

  TrainingGraph run() {
    add_leaves();
    for (const auto& node : source_.nodes())
      if (node.phase == Phase::Forward) copy(node);
    const auto loss = loss_value(training_).id;
    if (dependences_.kind_of(loss) == Kind::Sum)
      map_[loss.index()] = Formula(own_.graph).mul(mapped(loss), shares_);
    for (const auto& output : source_.outputs())
      own_.graph.mark_output(output.name, mapped(output.value));
    add_update(mapped(loss));
    own_.parameters = training_.parameters;
    own_.batch_inputs = training_.batch_inputs;
    return std::move(own_);
  }

 private:
  /// The optimiser's own follow with it.
  void add_leaves() {
    std::set<ValueId> late(update_.inputs.begin(), update_.inputs.end());
    for (const auto& name : training_.parameters) late.erase(source_.find(name));
    for (const auto& node : source_.nodes())
      if (node.phase == Phase::Forward)
        for (const auto input : node.inputs) late.erase(input);
    for (const auto& value : source_.values())
      if (!late.contains(value.id)) add_leaf(value);
  }
  void add_leaf(const Value& value) {
    auto& own = map_[value.id.index()];
    if (value.kind == ValueKind::Input) own = own_.graph.add_input(value.name, value.spec);
    if (value.kind == ValueKind::State)
      own = own_.graph.add_state(value.name, value.data, value.role);
  }

  ValueId mapped(ValueId old) {
    auto& own = map_[old.index()];
    const auto& value = source_.value(old);
    if (!own.valid() && value.kind == ValueKind::Constant)
      own = own_.graph.add_constant(value.name, value.data);
    return own;
  }

  /// As the whole batch has it.
  ValueId joined(ValueId old) {
    auto& whole = whole_[old];
    if (whole.valid()) return whole;
    const Formula f(own_.graph);
    const auto kind = dependences_.kind_of(old);
    if (kind == Kind::Inverse) return whole = f.mul(mapped(old), 1 / shares_);
    whole = mean(mapped(old));
    if (kind == Kind::Sum) whole = f.mul(whole, shares_);
    return whole;
  }
  ValueId mean(ValueId own) {
    const auto mean = own_.graph.add_node(make_op(Identity{}), std::array{own}, "share_mean");
    own_.share_means.push_back(own_.graph.value(mean.front()).name);
    return mean.front();
  }

  void copy(const Node& node) {
    const auto& joins = dependences_.joined(node);
    std::vector<ValueId> inputs;
    for (const auto input : node.inputs)
      inputs.push_back(joins.contains(input) ? joined(input) : mapped(input));
    // Before the loss, so that the labels alone are waited for.
    ValueId weight;
    if (dependences_.counted().contains(node.id))
      weight = weight_of(*op_cast<SoftmaxCrossEntropyLoss>(*node.op), inputs);
    const auto outputs = own_.graph.add_node(node.op, inputs, node.name);
    for (std::size_t i = 0; i < outputs.size(); ++i) map_[node.outputs[i].index()] = outputs[i];
    if (weight.valid()) map_[node.outputs[0].index()] = Formula(own_.graph).mul(outputs[0], weight);
  }

  /// The share's denominator over the mean of all shares'. 0 where no label of the batch counts.
  ValueId weight_of(const SoftmaxCrossEntropyLoss& loss, const std::vector<ValueId>& inputs) {
    const double least = 1e-30;
    const Formula f(own_.graph);
    const auto count = loss.denominator(own_.graph, inputs[0], inputs[1]);
    return f.div(count, f.apply(BinaryKind::Max, mean(count), least));
  }

  void add_update(ValueId loss) {
    std::vector<ValueId> parameters;
    for (const auto& name : training_.parameters) parameters.push_back(mapped(source_.find(name)));
    const auto gradients = add_gradients(own_.graph, loss, parameters);
    for (const auto gradient : gradients)
      own_.parameter_gradients.push_back(own_.graph.value(gradient).name);
    const auto phase = own_.graph.phase(Phase::Update);
    std::vector<ValueId> inputs;
    const auto count = parameters.size();
    for (std::size_t i = 0; i < update_.inputs.size(); ++i) {
      const bool is_gradient = i >= 2 + count && i < 2 + 2 * count;
      if (is_gradient) {
        inputs.push_back(gradients[i - 2 - count]);
        continue;
      }
      const auto old = update_.inputs[i];
      if (!mapped(old).valid()) add_leaf(source_.value(old));
      inputs.push_back(mapped(old));
    }
    own_.graph.add_node(update_.op, inputs, update_.name);
  }

  const TrainingGraph& training_;
  const Graph& source_;
  const Dependences& dependences_;
  double shares_;
  const Node& update_;
  TrainingGraph own_;
  std::vector<ValueId> map_;          // by value of `source_`
  std::map<ValueId, ValueId> whole_;  // likewise
};

/// The step of the share of that number.
TrainingGraph drawn_for(TrainingGraph training, int number) {
  if (number == 0 || training.drawn_by_row.empty()) return training;
  Rewriter rewriter(training.graph);
  for (const auto& node : training.graph.nodes()) {
    const auto op = drawn_later(training, node, number);
    if (op == node.op) {
      rewriter.copy(node);
      continue;
    }
    const auto outputs = rewriter.append(node, op, rewriter.mapped(node.inputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) rewriter.map(node.outputs[i], outputs[i]);
  }
  auto graph = rewriter.finish();
  training.graph = std::move(graph);
  return training;
}

}  // namespace

ShareStep step_of_share(const TrainingStep& step, const Share& share) {
  ShareStep result{step(share.rows)};
  if (share.shares == 1 && share.number == 0) return result;
  std::optional<TrainingGraph> twice;
  try {
    twice = step(2 * share.rows);
  } catch (const InvalidArgument& error) {  // for example, the model has one batch size
    result.inexact.push_back(fmt::format(
        "the loss is the mean over the shares, because a batch of {} cannot be examined: {}",
        2 * share.rows, error.what()));
    return result;
  }
  const Dependences dependences(result.training, *twice);
  auto drawn = dependences.drawn_by_row();
  if (share.shares > 1) {
    result.inexact = dependences.inexact();
    if (dependences.has_batch_norm()) {
      result.inexact.push_back(fmt::format(
          "batch normalisation takes its statistics from {} {} at a time, not from the batch",
          share.rows, share.rows == 1 ? "row" : "rows"));
    }
    const bool sum = dependences.kind_of(loss_value(result.training).id) == Kind::Sum;
    if (!dependences.plain() || sum)
      result.training = ShareBuilder(result.training, dependences, share.shares).run();
  }
  result.training.drawn_by_row = std::move(drawn);
  result.training = drawn_for(std::move(result.training), share.number);
  return result;
}

}  // namespace triptych::parallel
