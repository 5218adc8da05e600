// SPDX-License-Identifier: Apache-2.0
// The stages of values, and the values that cross between them.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/error.h"
#include "parallel/strategies/pipeline.h"

namespace triptych::parallel {
namespace {

/// Adds the value to those that go that way, unless it is there already.
void add_once(StagePlaces::Traffic& traffic, int from, int to, ValueId value) {
  if (from == to) return;
  auto& values = traffic[{from, to}];
  if (std::ranges::find(values, value) == values.end()) values.push_back(value);
}

}  // namespace

StagePlaces::StagePlaces(const TrainingGraph& training, const PipelineOptions& options)
    : training_(training),
      graph_(training.graph),
      anatomy_(training),
      forward_(cut_stages(training, options)) {
  require_separate_updates(options);
  for (const auto& name : training.share_means)
    means_.insert(graph_.value(graph_.find(name)).producer);
  find_states();
  find_traffic();
  if (options.micro_batches > 1) find_sums();
}

/// Independent of the cut, which follows measured times.
void StagePlaces::require_separate_updates(const PipelineOptions& options) const {
  if (options.stages == 1 && !options.tree) return;
  for (const auto& node : graph_.nodes()) {
    for (const auto& update : node.updates()) {
      const auto& before = graph_.value(update.before);
      if (before.kind == ValueKind::State) continue;
      throw UnsupportedError(fmt::format(
          "the nodes \"{}\" and \"{}\" update the same state, as a batch normalisation does that "
          "is "
          "applied twice, and {}; or give each node its own state",
          graph_.node(before.producer).name, node.name,
          options.stages == 1 ? "the order shard-tree sums each state once: choose another order"
                              : "a pipeline's stages cannot: use the strategy dp"));
    }
  }
}

void StagePlaces::find_states() {
  const auto& update = update_node(training_);
  const auto step = update.inputs[1];
  for (const auto& node : graph_.nodes()) {
    if (anatomy_.is_update(node)) continue;
    for (const auto input : node.inputs) {
      if (graph_.value(input).kind == ValueKind::State && input != step)
        states_.emplace(input, stage_of(node));
    }
  }
  for (const auto& name : training_.parameters) states_.emplace(graph_.find(name), 0);  // unread
  const auto count = training_.parameters.size();
  const auto states = update.updates();
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto state = states[i].before;
    if (state == step) continue;
    const auto place = std::ranges::find(update.inputs, state) - update.inputs.begin();
    const auto which = (static_cast<std::size_t>(place) - 2) % count;
    states_.emplace(state, states_.at(update.inputs[2 + which]));
  }
}

void StagePlaces::find_traffic() {
  const auto step = update_node(training_).inputs[1];
  for (const auto& node : graph_.nodes()) {
    if (anatomy_.is_update(node)) continue;
    const int to = stage_of(node);
    for (const auto input : node.inputs) {
      const auto& value = graph_.value(input);
      if (value.kind == ValueKind::State && input != step)
        add_once(lent_, states_.at(input), to, input);
      if (value.kind != ValueKind::Activation) continue;
      const auto& producer = graph_.node(value.producer);
      const int from = stage_of(producer);
      // Upwards with the forward pass, downwards with the backward pass.
      TRIPTYCH_ASSERT(from >= to || anatomy_.is_forward(producer));
      add_once(traffic_, from, to, input);
    }
  }
  // A parameter may be read before the first reader that has a gradient for it.
  for (std::size_t i = 0; i < training_.parameters.size(); ++i) {
    const auto& gradient = graph_.value(graph_.find(training_.parameter_gradients[i]));
    if (gradient.kind != ValueKind::Activation) continue;
    add_once(traffic_, stage_of(graph_.node(gradient.producer)),
             states_.at(graph_.find(training_.parameters[i])), gradient.id);
  }
}

void StagePlaces::find_sums() {
  std::vector<std::size_t> levels(graph_.values().size());
  std::vector<std::vector<NodeId>> means;
  for (std::size_t i = 0; i < forward_count(); ++i) {
    const auto& node = graph_.nodes()[i];
    std::size_t level = 0;
    bool of_batch = node.updates().empty();
    for (const auto input : node.inputs) {
      const auto& value = graph_.value(input);
      level = std::max(level, levels[input.index()]);
      of_batch = of_batch && (value.kind == ValueKind::Constant || of_batch_.contains(input) ||
                              std::ranges::find(training_.batch_inputs, value.name) !=
                                  training_.batch_inputs.end());
    }
    if (is_mean(node)) {
      means.resize(std::max(means.size(), level + 1));
      means[level++].push_back(node.id);
      of_batch = false;
    }
    for (const auto output : node.outputs) {
      levels[output.index()] = level;
      if (of_batch) of_batch_.insert(output);
    }
  }
  for (const auto& level : means) sums_.push_back(level_of(level));
}

StagePlaces::SumLevel StagePlaces::level_of(const std::vector<NodeId>& means) const {
  SumLevel level = {.nodes = {}, .means = means, .traffic = {}};
  auto open = means;
  while (!open.empty()) {
    const auto& node = graph_.node(open.back());
    open.pop_back();
    for (const auto input : node.inputs) {
      const auto& value = graph_.value(input);
      if (value.kind != ValueKind::Activation || means_.contains(value.producer)) continue;
      if (level.nodes.insert(value.producer).second) open.push_back(value.producer);
    }
  }
  for (std::size_t i = 0; i < forward_count(); ++i) {
    const auto& node = graph_.nodes()[i];
    if (!level.nodes.contains(node.id) && std::ranges::find(means, node.id) == means.end())
      continue;
    for (const auto input : node.inputs) {
      const auto& value = graph_.value(input);
      if (value.kind == ValueKind::Activation)
        add_once(level.traffic, stage_of(graph_.node(value.producer)), stage_of(node), input);
    }
  }
  return level;
}

}  // namespace triptych::parallel
