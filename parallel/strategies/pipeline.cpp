// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "core/ops/assign.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"
#include "core/ops/collectives.h"
#include "core/ops/optimizers.h"
#include "core/ops/slice.h"
#include "parallel/strategies/step_parts.h"

namespace triptych::parallel {
namespace {

constexpr const char* kAxis = "pp";

/// Seconds on a machine whose kind does not matter: only ratios do.
double modelled_seconds(const Graph& graph, const Node& node) {
  const auto cost = node.op->cost(graph.specs(node.inputs), graph.specs(node.outputs));
  return cost.flops / 50e9 + cost.bytes / 10e9;
}

/// The training graph, its nodes told apart: forward up to the loss, backward, and the optimiser.
class Anatomy {
 public:
  explicit Anatomy(const TrainingGraph& training)
      : graph_(training.graph),
        forward_count_(static_cast<std::size_t>(
            std::ranges::count(graph_.nodes(), Phase::Forward, &Node::phase))) {}

  /// They are the first nodes of the graph.
  std::size_t forward_count() const { return forward_count_; }
  static bool is_forward(const Node& node) { return node.phase == Phase::Forward; }
  static bool is_update(const Node& node) { return node.phase == Phase::Update; }
  /// The forward node that a backward node differentiates.
  std::size_t forward_of(const Node& node) const {
    return graph_.value(node.differentiates).producer.index();
  }

 private:
  const Graph& graph_;
  std::size_t forward_count_;
};

/// How many stages the costs need when none may take longer than `limit`.
int stages_within(const std::vector<double>& costs, double limit) {
  int stages = 1;
  double sum = 0;
  for (const double cost : costs) {
    if (sum + cost > limit) {
      ++stages;
      sum = 0;
    }
    sum += cost;
  }
  return stages;
}

class Stage {
 public:
  Stage(const TrainingGraph& training, const PipelineOptions& options)
      : training_(training),
        source_(training.graph),
        options_(options),
        anatomy_(training),
        forward_stages_(cut_stages(training, options)),
        micro_(static_cast<std::size_t>(options.micro_batches)) {
    find_places();
    find_traffic();
  }

  StageGraph run() {
    add_leaves();
    for (const auto& pass : pipeline_passes(options_)) {
      if (pass.forward) {
        forward(pass.micro_batch);
      } else {
        backward(pass.micro_batch);
      }
    }
    add_loss();
    // Before anything reads averages: data parallelism makes some of several of them at once.
    average_statistics();
    add_update();
    move_statistics();
    own_.graph = std::move(target_);
    return {std::move(own_), std::move(homes_), stage_sizes(forward_stages_)};
  }

 private:
  bool own(const Node& node) const { return stage_of(node) == options_.stage; }
  int stage_of(const Node& node) const {
    return forward_stages_[anatomy_.is_forward(node) ? node.id.index() : anatomy_.forward_of(node)];
  }
  bool last() const { return options_.stage == options_.stages - 1; }

  /// Each state is where its first reader is.
  void find_places() {
    for (const auto& node : source_.nodes()) {
      if (anatomy_.is_update(node)) continue;
      for (const auto input : node.inputs) {
        const auto& value = source_.value(input);
        if (value.kind == ValueKind::State) state_stage_.emplace(input, stage_of(node));
      }
    }
    const auto& update = update_node(training_);
    const auto count = training_.parameters.size();
    // Moments are with their parameters.
    const auto states = update.updates();
    for (std::size_t i = 0; i < states.size(); ++i) {
      const auto state = states[i].before;
      if (source_.spec(state).dtype != DType::F32) continue;
      const auto place = std::ranges::find(update.inputs, state) - update.inputs.begin();
      const auto which = (static_cast<std::size_t>(place) - 2) % count;
      state_stage_.emplace(state, state_stage_.at(update.inputs[2 + which]));
    }
    for (const auto& [state, stage] : state_stage_)
      homes_[source_.value(state).name] = {
          .rank = stage, .whole = source_.spec(state), .role = source_.value(state).role};
  }

  /// Values that cross from stage to stage, in each direction in the order of the nodes.
  void find_traffic() {
    std::set<std::pair<ValueId, int>> seen;
    for (const auto& node : source_.nodes()) {
      if (anatomy_.is_update(node)) continue;
      const int to = stage_of(node);
      for (const auto input : node.inputs) {
        const auto& value = source_.value(input);
        if (value.kind != ValueKind::Activation) continue;
        const auto& producer = source_.node(value.producer);
        const int from = stage_of(producer);
        if (from == to || !seen.emplace(input, to).second) continue;
        // Upwards with the forward pass, downwards with the backward pass.
        TRIPTYCH_ASSERT(from > to || anatomy_.is_forward(producer));
        traffic_[{from, to}].push_back(input);
      }
    }
  }

  void add_leaves() {
    for (const auto& [state, stage] : state_stage_) {
      if (stage == options_.stage) states_[state] = add_state(state);
    }
    for (const auto& input : training_.batch_inputs)
      if (reads(source_.find(input))) split_batch(input);
  }

  ValueId add_state(ValueId state) {
    const auto& value = source_.value(state);
    return target_.add_state(value.name, value.data, value.role);
  }

  /// True when a node of this stage reads the value, in either direction.
  bool reads(ValueId input) const {
    return std::ranges::any_of(source_.nodes(), [&](const Node& node) {
      return !anatomy_.is_update(node) && own(node) &&
             std::ranges::find(node.inputs, input) != node.inputs.end();
    });
  }

  /// The input of the whole batch; each micro-batch is a slice of it.
  void split_batch(const std::string& name) {
    const auto input = source_.find(name);
    auto spec = source_.spec(input);
    auto dims = spec.shape.dims();
    const auto rows = dims[0];
    dims[0] *= options_.micro_batches;
    const auto whole = target_.add_input(name, {spec.dtype, Shape(dims)});
    for (int m = 0; m < options_.micro_batches; ++m) {
      if (options_.micro_batches == 1) {
        micro_[0][input] = whole;
        continue;
      }
      Slice slice;
      slice.starts = {m * rows};
      slice.ends = {(m + 1) * rows};
      slice.axes = {0};
      slice.steps = {1};
      const std::vector<ValueId> inputs = {whole};
      micro_[static_cast<std::size_t>(m)][input] =
          target_.add_node(make_op(slice), inputs, fmt::format("{}.micro{}", name, m)).front();
    }
  }

  ValueId mapped(int m, ValueId old) {
    const auto& value = source_.value(old);
    if (value.kind == ValueKind::State) return states_.at(old);
    if (value.kind == ValueKind::Constant) {
      auto [found, added] = constants_.try_emplace(old);
      if (added) found->second = target_.add_constant(value.name, value.data);
      return found->second;
    }
    return micro_[static_cast<std::size_t>(m)].at(old);
  }

  void copy(int m, const Node& node) {
    std::vector<ValueId> inputs;
    for (const auto input : node.inputs) inputs.push_back(mapped(m, input));
    const auto name =
        options_.micro_batches == 1 ? node.name : fmt::format("micro{}.{}", m, node.name);
    const auto* norm = options_.tree ? op_cast<BatchNormalization>(*node.op) : nullptr;
    if (norm != nullptr) keep_running(node, norm->momentum);
    const auto phase = target_.phase(node.phase);
    const auto outputs =
        target_.add_node(norm == nullptr ? node.op : without_momentum(*norm), inputs, name);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      micro_[static_cast<std::size_t>(m)][node.outputs[i]] = outputs[i];
    // The next micro-batch updates what this one has updated.
    const auto updates = node.updates();
    for (const auto& update : updates) {
      const auto after = micro_[static_cast<std::size_t>(m)].at(update.after);
      states_[update.before] = after;
      // A copy, because the next micro-batch's are written over it.
      if (norm != nullptr) accumulate(update.before, times(after, 1));
    }
  }

  /// Share of the running statistics that stays, before they are written over.
  void keep_running(const Node& norm, float momentum) {
    const auto updates = norm.updates();
    for (const auto& update : updates) {
      if (running_.contains(update.before)) continue;
      running_[update.before] = {
          .momentum = momentum, .kept = times(states_.at(update.before), momentum), .mean = {}};
    }
  }

  /// Over the micro-batches, and over the ranks where gradients are averaged.
  void average_statistics() {
    for (auto& [state, running] : running_) {
      running.mean = average(state);
      own_.parameter_gradients.push_back(target_.value(running.mean).name);
    }
  }
  /// running' = momentum running + (1 - momentum) mean
  void move_statistics() {
    for (const auto& [state, running] : running_) {
      const std::vector<ValueId> inputs = {
          states_.at(state), add(running.kept, times(running.mean, 1 - running.momentum))};
      target_.add_node(make_op(Assign{}), inputs, source_.value(state).name);
    }
  }

  /// Leaves a micro-batch's own statistics where running ones are.
  static OpPtr without_momentum(BatchNormalization norm) {
    norm.momentum = 0;
    return make_op(norm);
  }

  void receive(int m, int from) {
    const auto traffic = traffic_.find({from, options_.stage});
    if (traffic == traffic_.end()) return;
    Receive op;
    op.axis = kAxis;
    op.from = from;
    for (const auto value : traffic->second) op.add_shape(source_.spec(value).shape);
    op.label = fmt::format("micro{}.from_stage{}", m, from);
    const auto values = target_.add_node(make_op(op), {}, op.label);
    for (std::size_t i = 0; i < values.size(); ++i)
      micro_[static_cast<std::size_t>(m)][traffic->second[i]] = values[i];
  }

  void send(int m, int to) {
    const auto traffic = traffic_.find({options_.stage, to});
    if (traffic == traffic_.end()) return;
    Send op;
    op.axis = kAxis;
    op.to = to;
    std::vector<ValueId> values;
    for (const auto value : traffic->second) values.push_back(mapped(m, value));
    op.label = fmt::format("micro{}.to_stage{}", m, to);
    target_.add_node(make_op(op), values, op.label);
  }

  void forward(int m) {
    for (int from = 0; from < options_.stage; ++from) receive(m, from);
    for (std::size_t i = 0; i < anatomy_.forward_count(); ++i)
      if (own(source_.nodes()[i])) copy(m, source_.nodes()[i]);
    for (int to = options_.stage + 1; to < options_.stages; ++to) send(m, to);
  }

  void backward(int m) {
    for (int from = options_.stages - 1; from > options_.stage; --from) receive(m, from);
    for (const auto& node : source_.nodes()) {
      if (anatomy_.is_forward(node) || anatomy_.is_update(node) || !own(node)) continue;
      copy(m, node);
    }
    for (int to = options_.stage - 1; to >= 0; --to) send(m, to);
    accumulate(m);
  }

  /// A sum of so many micro-batches.
  struct PartialSum {
    int terms;
    ValueId value;
  };

  ValueId add(ValueId a, ValueId b) {
    const std::vector<ValueId> terms = {a, b};
    return target_.add_node(make_op(Binary(BinaryKind::Add)), terms, "sum").front();
  }
  ValueId times(ValueId value, float factor) {
    const std::vector<ValueId> factors = {value, target_.constant(scalar_tensor(factor))};
    return target_.add_node(make_op(Binary(BinaryKind::Mul)), factors, "scaled").front();
  }
  /// In the order of the micro-batches, or, as a tree, sums of as many terms with one another.
  void accumulate(ValueId old, ValueId value) {
    auto& sums = sums_[old];
    sums.push_back({1, value});
    while (sums.size() > 1 && (!options_.tree || sums.back().terms == sums[sums.size() - 2].terms))
      add_last_two(sums);
  }
  void add_last_two(std::vector<PartialSum>& sums) {
    const auto last = sums.back();
    sums.pop_back();
    sums.back() = {sums.back().terms + last.terms, add(sums.back().value, last.value)};
  }
  void accumulate(int m) {
    for (std::size_t i = 0; i < training_.parameters.size(); ++i) {
      const auto parameter = source_.find(training_.parameters[i]);
      if (state_stage_.at(parameter) != options_.stage) continue;
      const auto gradient = source_.find(training_.parameter_gradients[i]);
      accumulate(gradient, mapped(m, gradient));
    }
    const auto& loss = loss_value(training_);
    if (last()) accumulate(loss.id, mapped(m, loss.id));
  }

  ValueId average(ValueId old) {
    auto& sums = sums_.at(old);
    while (sums.size() > 1) add_last_two(sums);
    const auto sum = sums.front().value;
    if (options_.micro_batches == 1) return sum;
    if (!share_.valid())
      share_ = target_.constant(scalar_tensor(1.0F / static_cast<float>(options_.micro_batches)));
    const std::vector<ValueId> factors = {sum, share_};
    return target_.add_node(make_op(Binary(BinaryKind::Mul)), factors, "average").front();
  }

  /// The last stage tells all.
  void add_loss() {
    AllReduce sum;
    sum.axis = kAxis;
    sum.label = "loss";
    const auto own =
        last() ? average(loss_value(training_).id) : target_.constant(scalar_tensor(0.0F));
    if (options_.stages == 1) return target_.mark_output("loss", own);
    const std::vector<ValueId> inputs = {own};
    target_.mark_output("loss", target_.add_node(make_op(sum), inputs, "loss.everywhere").front());
  }

  /// The optimiser's node with this stage's parameters alone.
  void add_update() {
    const auto& update = update_node(training_);
    const auto count = training_.parameters.size();
    std::vector<ValueId> inputs = {
        target_.add_input(source_.value(update.inputs[0]).name, source_.spec(update.inputs[0])),
        add_state(update.inputs[1])};
    for (std::size_t i = 2; i < update.inputs.size(); ++i) {
      const auto parameter = update.inputs[2 + (i - 2) % count];
      if (state_stage_.at(parameter) != options_.stage) continue;
      const auto kind = (i - 2) / count;  // parameters, gradients, moments
      inputs.push_back(kind == 1 ? average(update.inputs[i]) : states_.at(update.inputs[i]));
      const auto& name = target_.value(inputs.back()).name;
      if (kind == 0) own_.parameters.push_back(name);
      if (kind == 1) own_.parameter_gradients.push_back(name);
    }
    const auto phase = target_.phase(Phase::Update);
    if (inputs.size() > 2) target_.add_node(update.op, inputs, update.name);
  }

  const TrainingGraph& training_;
  const Graph& source_;
  PipelineOptions options_;
  Anatomy anatomy_;
  std::vector<int> forward_stages_;
  std::map<ValueId, int> state_stage_;
  std::map<std::pair<int, int>, std::vector<ValueId>> traffic_;  // by stages, from and to
  Graph target_;
  TrainingGraph own_;
  std::vector<std::map<ValueId, ValueId>> micro_;  // by micro-batch: values of `source_`
  std::map<ValueId, ValueId> states_;              // as last updated
  std::map<ValueId, ValueId> constants_;
  std::map<ValueId, std::vector<PartialSum>> sums_;
  /// Running statistics: what stays of them in this step, momentum times the value before it.
  struct Running {
    float momentum = 0;
    ValueId kept;
    ValueId mean;  ///< of the micro-batches' own
  };
  std::map<ValueId, Running> running_;  // by state
  ValueId share_;
  std::map<std::string, StateHome> homes_;
};

}  // namespace

std::vector<Pass> pipeline_passes(const PipelineOptions& options) {
  const int m = options.micro_batches;
  const bool gpipe = options.order == PipelineOrder::GPipe;
  // How many forward passes go before the first backward pass.
  const int ahead = gpipe ? m : std::min(m, options.stages - options.stage);
  std::vector<Pass> passes;
  int forward = 0, backward = 0;
  while (forward < ahead) passes.push_back({true, forward++});
  while (backward < m) {
    passes.push_back({false, backward++});
    if (forward < m) passes.push_back({true, forward++});
  }
  return passes;
}

std::vector<std::int64_t> stage_sizes(const std::vector<int>& stages) {
  std::vector<std::int64_t> sizes;
  for (const int stage : stages) {
    sizes.resize(std::max(sizes.size(), static_cast<std::size_t>(stage) + 1));
    ++sizes.back();
  }
  return sizes;
}

/// The stages of `nodes` forward nodes by a cut of before.
static std::vector<int> stages_of(const std::vector<std::int64_t>& cut, std::size_t nodes) {
  std::vector<int> stages;
  bool possible = true;
  for (std::size_t stage = 0; stage < cut.size() && possible; ++stage) {
    possible = cut[stage] >= 1 && std::cmp_less_equal(cut[stage], nodes - stages.size());
    if (possible)
      stages.insert(stages.end(), static_cast<std::size_t>(cut[stage]), static_cast<int>(stage));
  }
  if (!possible || stages.size() != nodes) {
    throw InvalidArgument(
        fmt::format("a cut into stages of {} nodes is of another model than this of {}",
                    fmt::join(cut, ", "), nodes));
  }
  return stages;
}

std::vector<int> cut_stages(const TrainingGraph& training, const PipelineOptions& options) {
  const Anatomy anatomy(training);
  std::vector<double> costs(anatomy.forward_count());
  if (std::ssize(costs) < options.stages) {
    throw InvalidArgument(fmt::format("{} stages of a model of {} nodes; use fewer ranks",
                                      options.stages, costs.size()));
  }
  if (std::ssize(options.cut) == options.stages) return stages_of(options.cut, costs.size());
  for (const auto& node : training.graph.nodes()) {
    if (anatomy.is_update(node)) continue;
    const auto known = options.node_seconds.find(node.name);
    const auto at = anatomy.is_forward(node) ? node.id.index() : anatomy.forward_of(node);
    costs[at] += known != options.node_seconds.end() ? known->second
                                                     : modelled_seconds(training.graph, node);
  }
  // The smallest limit that the stages can keep, by bisection.
  double low = std::ranges::max(costs), high = std::accumulate(costs.begin(), costs.end(), 0.0);
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (stages_within(costs, middle) <= options.stages ? high : low) = middle;
  }
  std::vector<int> stages;
  int stage = 0, nodes = 0;  // of the stage
  double sum = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const auto left = std::ssize(costs) - static_cast<std::ptrdiff_t>(i);
    const bool full = sum + costs[i] > high;
    const bool needed = left <= options.stages - 1 - stage;  // none stays empty
    if (nodes > 0 && (full || needed) && stage < options.stages - 1) {
      ++stage;
      nodes = 0;
      sum = 0;
    }
    ++nodes;
    sum += costs[i];
    stages.push_back(stage);
  }
  return stages;
}

StageGraph pipeline(const TrainingGraph& training, const PipelineOptions& options) {
  return Stage(training, options).run();
}

}  // namespace triptych::parallel
