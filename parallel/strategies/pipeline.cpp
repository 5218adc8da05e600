// SPDX-License-Identifier: Apache-2.0
#include "parallel/strategies/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/ops/assign.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"
#include "core/ops/collectives.h"
#include "core/ops/optimizers.h"
#include "core/ops/slice.h"
#include "parallel/strategies/shares.h"
#include "parallel/strategies/step_parts.h"

namespace triptych::parallel {
namespace {

constexpr const char* kAxis = "pp";

class Stage {
 public:
  Stage(const TrainingGraph& training, const PipelineOptions& options)
      : training_(training),
        source_(training.graph),
        options_(options),
        places_(training, options),
        step_(update_node(training).inputs[1]),
        micro_(static_cast<std::size_t>(options.micro_batches)) {
    for (const auto& [state, stage] : places_.states())
      homes_[source_.value(state).name] = {
          .rank = stage, .whole = source_.spec(state), .role = source_.value(state).role};
  }

  StageGraph run() {
    add_leaves();
    exchange_states();
    for (const auto& level : places_.sums()) add_sums(level);
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
    return {std::move(own_), std::move(homes_), places_.sizes()};
  }

 private:
  bool own(const Node& node) const { return places_.stage_of(node) == options_.stage; }
  bool one_by_one() const { return options_.micro_batches > 1; }
  bool has_loss() const { return own(source_.node(loss_value(training_).producer)); }
  bool is_home(ValueId state) const { return places_.states().at(state) == options_.stage; }

  void add_leaves() {
    for (const auto& [state, stage] : places_.states()) {
      if (stage == options_.stage) states_[state] = add_state(state);
    }
    for (const auto& input : training_.batch_inputs)
      if (reads(source_.find(input))) split_batch(input);
  }

  /// A state that another stage reads is sent to it once. The gradients come back as all do.
  void exchange_states() {
    for (const auto& [way, states] : places_.lent()) {
      const auto& [from, to] = way;
      std::vector<ValueId> own;
      if (from == options_.stage) {
        for (const auto state : states) own.push_back(states_.at(state));
        send(to, own, fmt::format("states.to_stage{}", to));
      } else if (to == options_.stage) {
        own = receive(from, states, fmt::format("states.from_stage{}", from));
        for (std::size_t i = 0; i < own.size(); ++i) states_[states[i]] = own[i];
      }
    }
  }

  /// The forward passes of all micro-batches, as far as these sums need them.
  void add_sums(const StagePlaces::SumLevel& level) {
    for (int m = 0; m < options_.micro_batches; ++m) {
      const auto name = fmt::format("sums.micro{}", m);
      for (int from = 0; from < options_.stage; ++from) receive(m, from, level.traffic, name);
      for (std::size_t i = 0; i < places_.forward_count(); ++i) {
        const auto& node = source_.nodes()[i];
        if (own(node) && level.nodes.contains(node.id)) copy(m, node, name);
      }
      for (const auto mean : level.means) {
        const auto& node = source_.node(mean);
        if (own(node)) accumulate(node.outputs[0], mapped(m, node.inputs[0]));
      }
      for (int to = options_.stage + 1; to < options_.stages; ++to)
        send(m, to, level.traffic, name);
    }
    for (const auto mean : level.means)
      if (own(source_.node(mean))) add_mean(source_.node(mean));
  }

  /// A quotient, which is exact where the sums are whole numbers.
  void add_mean(const Node& node) {
    const std::vector<ValueId> operands = {
        sum(node.outputs[0]),
        target_.constant(scalar_tensor(static_cast<float>(options_.micro_batches)))};
    const auto mean = target_.add_node(make_op(Binary(BinaryKind::Div)), operands, "share_mean");
    const auto marked = target_.add_node(node.op, mean, node.name).front();
    own_.share_means.push_back(target_.value(marked).name);
    for (auto& values : micro_) values[node.outputs[0]] = marked;
  }

  ValueId add_state(ValueId state) {
    const auto& value = source_.value(state);
    return target_.add_state(value.name, value.data, value.role);
  }

  /// True when a node of this stage reads the value, in either direction.
  bool reads(ValueId input) const {
    return std::ranges::any_of(source_.nodes(), [&](const Node& node) {
      return !Anatomy::is_update(node) && own(node) &&
             std::ranges::find(node.inputs, input) != node.inputs.end();
    });
  }

  /// The input of the whole batch. Each micro-batch is a slice of it.
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
    if (value.kind == ValueKind::State) {
      if (old == step_ && !states_.contains(old)) states_[old] = add_state(old);
      return states_.at(old);
    }
    auto& values = micro_[static_cast<std::size_t>(m)];
    if (value.kind == ValueKind::Activation || values.contains(old)) return values.at(old);
    auto [found, added] = leaves_.try_emplace(old);
    if (added && value.kind == ValueKind::Constant)
      found->second = target_.add_constant(value.name, value.data);
    if (added && value.kind == ValueKind::Input)
      found->second = target_.add_input(value.name, value.spec);
    return found->second;
  }

  void copy(int m, const Node& node) {
    const bool there = micro_[static_cast<std::size_t>(m)].contains(node.outputs[0]);
    if (one_by_one() && there && (places_.is_mean(node) || places_.of_batch_alone(node))) return;
    const auto* norm = op_cast<BatchNormalization>(*node.op);
    const bool moves = options_.tree && norm != nullptr;
    if (moves) keep_running(node, norm->momentum);
    const auto outputs = copy(m, node, fmt::format("micro{}", m), moves ? 0.0F : -1.0F);
    if (places_.is_mean(node)) own_.share_means.push_back(target_.value(outputs[0]).name);
    if (!moves) return;
    // A copy, because the next micro-batch's are written over it.
    for (const auto& update : node.updates())
      accumulate(update.before, times(states_.at(update.before), 1));
  }

  /// With `momentum` of at least 0 for batch normalisation: 1 leaves the running statistics as they
  /// are, 0 leaves a micro-batch's own in their place.
  std::vector<ValueId> copy(int m, const Node& node, const std::string& pass, float momentum = 1) {
    std::vector<ValueId> inputs;
    for (const auto input : node.inputs) inputs.push_back(mapped(m, input));
    auto op = drawn_later(training_, node, m);
    if (const auto* norm = op_cast<BatchNormalization>(*op); norm != nullptr && momentum >= 0) {
      auto own = *norm;
      own.momentum = momentum;
      op = make_op(own);
    }
    const auto phase = target_.phase(node.phase);
    const auto name = one_by_one() ? fmt::format("{}.{}", pass, node.name) : node.name;
    auto outputs = target_.add_node(std::move(op), inputs, name);
    auto& values = micro_[static_cast<std::size_t>(m)];
    for (std::size_t i = 0; i < outputs.size(); ++i) values[node.outputs[i]] = outputs[i];
    // The next micro-batch updates the same state again.
    for (const auto& update : node.updates()) {
      const auto known = updated_.find(update.before);
      const auto state = known == updated_.end() ? update.before : known->second;
      updated_[update.after] = state;
      states_[state] = values.at(update.after);
    }
    return outputs;
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

  void receive(int m, int from, const StagePlaces::Traffic& traffic, const std::string& name) {
    const auto found = traffic.find({from, options_.stage});
    if (found == traffic.end()) return;
    const auto values = receive(from, found->second, fmt::format("{}.from_stage{}", name, from));
    for (std::size_t i = 0; i < values.size(); ++i)
      micro_[static_cast<std::size_t>(m)][found->second[i]] = values[i];
  }
  std::vector<ValueId> receive(int from, const std::vector<ValueId>& like,
                               const std::string& name) {
    Receive op;
    op.axis = kAxis;
    op.from = from;
    for (const auto value : like) op.add(source_.spec(value));
    op.label = name;
    return target_.add_node(make_op(op), {}, name);
  }

  void send(int m, int to, const StagePlaces::Traffic& traffic, const std::string& name) {
    const auto found = traffic.find({options_.stage, to});
    if (found == traffic.end()) return;
    std::vector<ValueId> values;
    for (const auto value : found->second) values.push_back(mapped(m, value));
    send(to, values, fmt::format("{}.to_stage{}", name, to));
  }
  void send(int to, const std::vector<ValueId>& values, const std::string& name) {
    Send op;
    op.axis = kAxis;
    op.to = to;
    op.label = name;
    target_.add_node(make_op(op), values, name);
  }

  void forward(int m) {
    const auto name = fmt::format("micro{}", m);
    for (int from = 0; from < options_.stage; ++from) receive(m, from, places_.traffic(), name);
    for (std::size_t i = 0; i < places_.forward_count(); ++i)
      if (own(source_.nodes()[i])) copy(m, source_.nodes()[i]);
    for (int to = options_.stage + 1; to < options_.stages; ++to)
      send(m, to, places_.traffic(), name);
  }

  void backward(int m) {
    const auto name = fmt::format("micro{}", m);
    for (int from = options_.stages - 1; from > options_.stage; --from)
      receive(m, from, places_.traffic(), name);
    for (const auto& node : source_.nodes()) {
      if (Anatomy::is_forward(node) || Anatomy::is_update(node) || !own(node)) continue;
      copy(m, node);
    }
    for (int to = options_.stage - 1; to >= 0; --to) send(m, to, places_.traffic(), name);
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
    std::set<ValueId> gradients;  // several parameters may have the same one
    for (std::size_t i = 0; i < training_.parameters.size(); ++i) {
      if (!is_home(source_.find(training_.parameters[i]))) continue;
      const auto gradient = source_.find(training_.parameter_gradients[i]);
      if (gradients.insert(gradient).second) accumulate(gradient, mapped(m, gradient));
    }
    const auto& loss = loss_value(training_);
    if (has_loss()) accumulate(loss.id, mapped(m, loss.id));
  }

  ValueId sum(ValueId old) {
    auto& sums = sums_.at(old);
    while (sums.size() > 1) add_last_two(sums);
    return sums.front().value;
  }
  ValueId average(ValueId old) {
    const auto sum = this->sum(old);
    if (options_.micro_batches == 1) return sum;
    if (!share_.valid())
      share_ = target_.constant(scalar_tensor(1.0F / static_cast<float>(options_.micro_batches)));
    const std::vector<ValueId> factors = {sum, share_};
    return target_.add_node(make_op(Binary(BinaryKind::Mul)), factors, "average").front();
  }

  /// The stage that has it tells all.
  void add_loss() {
    AllReduce sum;
    sum.axis = kAxis;
    sum.label = "loss";
    const auto own =
        has_loss() ? average(loss_value(training_).id) : target_.constant(scalar_tensor(0.0F));
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
        mapped(0, step_)};
    for (std::size_t i = 2; i < update.inputs.size(); ++i) {
      const auto parameter = update.inputs[2 + (i - 2) % count];
      if (!is_home(parameter)) continue;
      const auto kind = (i - 2) / count;  // parameters, gradients, moments
      inputs.push_back(kind == 1 ? average(update.inputs[i]) : states_.at(update.inputs[i]));
      const auto& name = target_.value(inputs.back()).name;
      if (kind == 0) own_.parameters.push_back(name);
      if (kind == 1) own_.parameter_gradients.push_back(name);
    }
    const auto phase = target_.phase(Phase::Update);
    if (inputs.size() > 2) {
      target_.add_node(update.op, inputs, update.name);
    } else if (reads(step_)) {  // a stage without parameters counts, too
      const std::vector<ValueId> terms = {inputs[1],
                                          target_.constant(scalar_tensor<std::int64_t>(1))};
      const std::vector<ValueId> next = {
          inputs[1], target_.add_node(make_op(Binary(BinaryKind::Add)), terms, "step").front()};
      target_.add_node(make_op(Assign{}), next, "step");
    }
  }

  const TrainingGraph& training_;
  const Graph& source_;
  PipelineOptions options_;
  StagePlaces places_;
  ValueId step_;  ///< the optimiser's count
  Graph target_;
  TrainingGraph own_;
  std::vector<std::map<ValueId, ValueId>> micro_;  // by micro-batch: values of `source_`
  std::map<ValueId, ValueId> states_;              // as last updated
  std::map<ValueId, ValueId> updated_;             // the state that a value is an update of
  std::map<ValueId, ValueId> leaves_;              // constants and inputs without rows
  std::map<ValueId, std::vector<PartialSum>> sums_;
  /// Running statistics: the remainder of the previous value in this step, momentum times it.
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

StageGraph pipeline(const TrainingGraph& training, const PipelineOptions& options) {
  return Stage(training, options).run();
}

}  // namespace triptych::parallel
