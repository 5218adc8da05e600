// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/graph/passes/attention_sums.h"
#include "core/graph/passes/lifetimes.h"
#include "core/graph/passes/passes.h"
#include "core/graph/passes/pool_index.h"
#include "core/ops/attention_gradient.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/fused_elementwise.h"
#include "core/ops/pool.h"
#include "core/ops/slice.h"
#include "core/runtime/collectives.h"
#include "core/runtime/formats.h"
#include "core/runtime/memory_plan.h"

namespace triptych {
namespace {

// Which outputs stay on their device for the next kernel there, and never come to memory.

constexpr auto kNone = std::numeric_limits<std::size_t>::max();

/// Per step: the next one that runs on the same device, or kNone.
std::vector<std::size_t> next_steps(const Plan& plan) {
  std::vector<std::size_t> next(plan.steps.size(), kNone);
  std::vector<std::size_t> later(plan.devices.size(), kNone);
  for (auto i = plan.steps.size(); i-- > 0;) {
    const auto& step = plan.steps[i];
    if (!step.kernel) continue;
    next[i] = std::exchange(later[step.device], i);
  }
  return next;
}

/// Per value: it is an activation, and no output of the graph.
std::vector<bool> inner_values(const Graph& graph) {
  std::vector<bool> is_inner;
  for (const auto& value : graph.values()) {
    is_inner.push_back(value.kind == ValueKind::Activation);
  }
  for (const auto& output : graph.outputs()) is_inner[output.value.index()] = false;
  return is_inner;
}

/// Asks the kernels (Kernel::keep_output_for) about each activation that one node alone reads, the
/// next to run on the device, and fills the steps' `keeps_output`. All kernels must be prepared.
void keep_outputs(Plan& plan) {
  const auto consumers = plan.graph.consumers();
  const auto roots = Lifetimes::of(plan.graph).root;
  const auto next = next_steps(plan);
  const auto is_inner = inner_values(plan.graph);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    auto& step = plan.steps[i];
    if (!step.kernel || next[i] == kNone) continue;
    const auto& outputs = plan.graph.node(step.node).outputs;
    if (outputs.size() != 1 || !is_inner[outputs[0].index()]) continue;
    const auto value = outputs[0];
    const auto& reader = plan.steps[next[i]];
    if (roots[value.index()] != value) continue;
    if (consumers[value.index()] != std::vector{reader.node}) continue;
    const auto& inputs = plan.graph.node(reader.node).inputs;
    if (std::ranges::count(inputs, value) != 1) continue;
    const auto input = static_cast<std::size_t>(std::ranges::find(inputs, value) - inputs.begin());
    step.keeps_output = step.kernel->keep_output_for(*reader.kernel, input);
  }
}

// Which values must be copied between devices, and before or after which step.

/// Walks the steps. A value's *version* is the value with the same content: a view has the version
/// of its input, an update is a version of its own.
class CrossingPlanner {
 public:
  explicit CrossingPlanner(Plan& plan) : plan_(plan) {
    const auto count = plan.graph.values().size();
    plan.homes.assign(count, 0);
    for (const auto& value : plan.graph.values()) version_.push_back(value.id);
    given_.assign(count, false);
  }

  void run() {
    for (auto& step : plan_.steps) {
      const auto& node = plan_.graph.node(step.node);
      if (node.op->view()) {
        version_[node.outputs[0].index()] = version_[node.inputs[0].index()];
        continue;
      }
      for (const auto input : node.inputs) bring(input, step);
      for (const auto output : node.outputs) {
        plan_.homes[output.index()] = step.device;
        present_.emplace(step.device, output);
      }
      for (const auto& update : node.updates()) write_back(update.after, step);
    }
    for (std::size_t i = 0; i < version_.size(); ++i) {
      plan_.homes[i] = plan_.homes[version_[i].index()];
    }
  }

 private:
  void bring(ValueId input, Step& step) {
    const auto version = version_[input.index()];
    const auto kind = plan_.graph.value(version).kind;
    auto& home = plan_.homes[version.index()];
    if (kind == ValueKind::Input || kind == ValueKind::Constant) {
      if (!given_[version.index()]) home = step.device;
      given_[version.index()] = true;
    } else if (home != step.device && present_.emplace(step.device, version).second) {
      step.crossings.push_back(crossing(version, home, step.device));
    }
  }

  void write_back(ValueId update, Step& step) {
    plan_.homes[update.index()] = 0;
    if (step.device != 0) step.write_backs.push_back(crossing(update, step.device, 0));
  }

  Crossing crossing(ValueId value, std::size_t from, std::size_t to) const {
    return {.value = value, .from = from, .to = to, .bytes = plan_.graph.spec(value).bytes()};
  }

  Plan& plan_;
  std::vector<ValueId> version_;  ///< per value
  std::vector<bool> given_;       ///< per input and constant: it has a home
  std::set<std::pair<std::size_t, ValueId>> present_;
};

/// Fills `homes` and each step's `crossings` and `write_backs`. Graph, devices and the steps'
/// nodes, devices and kernels must be set. A value is copied once to each device that reads it.
/// States live on device 0, and another device's update of one is copied back at once. Inputs and
/// constants never cross: every device that reads them has a copy.
void plan_crossings(Plan& plan) { CrossingPlanner(plan).run(); }

/// A composite stays whole where the preferred device has a kernel for it, or where a fallback has
/// one and the preferred device could not run all of the expansion either: unless it multiplies,
/// because products are the preferred device's. It also stays whole where a kernel of it is forced
/// by name, because the name would otherwise be ignored.
bool stays_whole(const Graph& graph, const Node& node, std::span<Device* const> devices,
                 const PlacementOptions& options) {
  if (options.forced_kernels.contains(node.op->name())) return true;
  const auto takes = [&](const Device* device) { return accepts(*device, graph, node, options); };
  if (takes(devices[0])) return true;
  const bool multiplies = !node.op->multiplicands().empty();
  if (multiplies || std::ranges::none_of(devices, takes)) return false;
  Graph expansion;
  std::map<ValueId, ValueId> own;  // a node may read a value twice
  std::vector<ValueId> inputs;
  for (const auto input : node.inputs) {
    if (!own.contains(input)) {
      own[input] = expansion.add_input(graph.value(input).name, graph.spec(input));
    }
    inputs.push_back(own.at(input));
  }
  node.op->expand(expansion, inputs);
  return !std::ranges::all_of(expansion.nodes(), [&](const Node& part) {
    return accepts(*devices[0], expansion, part, options);
  });
}

/// Expands composites until all that are left stay whole: expansions may contain composites.
Graph expand_for(Graph graph, std::span<Device* const> devices, const PlacementOptions& options) {
  for (;;) {
    std::set<std::string_view> kept;
    std::set<std::string_view> expanded;
    for (const auto& node : graph.nodes()) {
      if (!node.op->composite()) continue;
      (stays_whole(graph, node, devices, options) ? kept : expanded).insert(node.op->name());
    }
    if (expanded.empty()) return graph;
    std::vector<std::string_view> keep;
    std::ranges::set_difference(kept, expanded, std::back_inserter(keep));
    graph = expand_composites(graph, keep);
  }
}

bool is_normalization(const Node& node) {
  const auto op = node.op->name();
  return op == BatchNormalization::kName || op == BatchNormalizationGradient::kName;
}

bool is_max_pool_gradient(const Node& node) { return node.op->name() == MaxPoolGradient::kName; }

/// True when the device runs every node that fuse_normalization has created in a graph.
bool takes_fused_normalization(const Device& device, const Graph& fused,
                               const PlacementOptions& options) {
  return std::ranges::all_of(fused.nodes(), [&](const Node& node) {
    const bool is_fused = is_normalization(node) && node.op->composite();
    return !is_fused || accepts(device, fused, node, options);
  });
}

/// Lets gradients of attention read its sums, where the preferred device takes both so.
Graph with_attention_sums(Graph graph, const Device& device, const PlacementOptions& options) {
  const auto is_gradient = [](const Node& node) {
    return node.op->name() == AttentionGradient::kName;
  };
  if (std::ranges::none_of(graph.nodes(), is_gradient)) return graph;
  if (options.forced_kernels.contains(Attention::kName)) return graph;
  return save_attention_sums(graph, [&](const Graph& whole, const Node& node) {
    return accepts(device, whole, node, options);
  });
}

/// Fuses operators that the preferred device would run one by one, and can run as one.
/// A kernel that is forced by name keeps its operator.
Graph fuse_for(const Graph& graph, const Device& device, const PlacementOptions& options) {
  const auto kernels = device.kernels();
  const auto has = [&](std::string_view op, std::string_view name) {
    return std::ranges::any_of(kernels, [&](const KernelEntry& entry) {
      return entry.op == op && (name.empty() || entry.name == name);
    });
  };
  const auto joins_in = [&](const Graph& whole) {
    return [&](const Node& node) {
      const auto op = node.op->name();
      const bool forced = options.forced_kernels.contains(op) ||
                          (!options.forced.empty() && has(op, options.forced));
      return !forced && accepts(device, whole, node, options);
    };
  };
  Graph fused = graph.clone();
  if (std::ranges::any_of(graph.nodes(), is_normalization)) {
    auto normalized = fuse_normalization(fused, joins_in(fused));
    if (takes_fused_normalization(device, normalized, options)) fused = std::move(normalized);
  }
  const bool indexes = has(MaxPoolWithIndex::kName, {}) && has(MaxPoolIndexGradient::kName, {});
  if (indexes && std::ranges::any_of(graph.nodes(), is_max_pool_gradient)) {
    fused = index_max_pools(fused, joins_in(fused));
    fused = add_in_pool_gradients(fused, joins_in(fused));
  }
  if (!has(FusedElementwise::kName, {})) return fused;
  return fuse_elementwise(fused, joins_in(fused));
}

/// True for a concat whose inputs lie in its output, and for a slice whose output lies in its
/// input.
bool is_in_place(const Node& node, const ConcatParts& parts) {
  if (node.inputs.empty() || node.outputs.empty()) return false;
  const auto lies_in = [&](ValueId value, ValueId whole) {
    const auto part = parts.find(value);
    return part != parts.end() && part->second.whole == whole;
  };
  return lies_in(node.inputs[0], node.outputs[0]) || lies_in(node.outputs[0], node.inputs[0]);
}

std::vector<Step> make_steps(const Graph& graph, std::vector<NodePlacement> placements,
                             const ConcatParts& parts) {
  std::vector<Step> steps;
  for (const auto& node : graph.nodes()) {
    auto& placement = placements[node.id.index()];
    const bool runs = !is_in_place(node, parts);
    Step step;
    step.node = node.id;
    step.device = placement.device;
    step.entry = runs ? placement.kernel : nullptr;
    step.refusals = std::move(placement.refusals);
    step.choice = std::move(placement.choice);
    steps.push_back(std::move(step));
  }
  return steps;
}

/// A step waits for the collectives that it reads outputs of. They finish in their order, and are
/// ready for one another without waiting. Where nothing runs nothing waits: the outputs of such a
/// step are as late as its inputs.
void find_collectives_needed(Plan& plan) {
  const auto roots = Lifetimes::of(plan.graph).root;
  std::vector<std::size_t> made_by(roots.size(), 0);  // by root: the last collective, from 1 on
  std::size_t count = 0;
  for (auto& step : plan.steps) {
    const auto& node = plan.graph.node(step.node);
    std::size_t needed = 0;
    for (const auto input : node.inputs)
      needed = std::max(needed, made_by[roots[input.index()].index()]);
    if (step.entry == nullptr) {
      for (const auto output : node.outputs) made_by[roots[output.index()].index()] = needed;
      continue;
    }
    step.collectives_needed = needed;
    if (!node.op->collective()) continue;
    ++count;
    for (const auto output : node.outputs) made_by[roots[output.index()].index()] = count;
  }
  std::vector<Step*> unfinished;  // collectives that no step has waited for, in reverse order
  for (auto i = plan.steps.size(); i-- > 0;) {
    if (plan.graph.node(plan.steps[i].node).op->collective()) unfinished.push_back(&plan.steps[i]);
  }
  for (auto* step : unfinished) step->finished_by = plan.steps.size();
  std::size_t finished = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (; finished < plan.steps[i].collectives_needed; ++finished) {
      unfinished.back()->finished_by = i;
      unfinished.pop_back();
    }
  }
}

std::unique_ptr<Kernel> prepare(const KernelEntry& entry, const Node& node,
                                const KernelQuery& query, Device& device) {
  try {
    return entry.prepare(query, device);
  } catch (const UnsupportedError& error) {
    throw UnsupportedError(fmt::format("node \"{}\" cannot run with the kernel \"{}\": {}",
                                       node.name, entry.name, error.what()));
  }
}

void prepare_kernels(Plan& plan, const StoragePlan& storage) {
  OuterStrides strides;
  for (const auto& [value, part] : storage.parts) strides[value] = part.outer_stride;
  for (auto& step : plan.steps) {
    if (step.entry == nullptr) continue;
    const auto& node = plan.graph.node(step.node);
    const NodeQuery query(plan.graph, node, plan.options.placement, strides, storage.formats);
    step.kernel = prepare(*step.entry, node, query, *plan.devices[step.device]);
  }
}

void count_kernel_memory(Plan& plan) {
  plan.scratch_bytes.assign(plan.devices.size(), 0);
  plan.kernel_bytes.assign(plan.devices.size(), 0);
  for (const auto& step : plan.steps) {
    if (!step.kernel) continue;
    auto& scratch = plan.scratch_bytes[step.device];
    scratch = std::max(scratch, step.kernel->scratch_bytes());
    plan.kernel_bytes[step.device] += step.kernel->resident_bytes();
  }
}

std::vector<Operand> operands_of(const Plan& plan, const Step& step, Values values) {
  std::vector<Operand> operands;
  for (const auto value : values) {
    const auto& location = plan.locations[step.device][value.index()];
    operands.push_back(
        {plan.graph.spec(value), location.value().outer_stride, location->channels_last});
  }
  return operands;
}

}  // namespace

std::string reason_of(const Plan& plan, const Step& step) {
  if (step.entry == nullptr) {
    const auto& op = *plan.graph.node(step.node).op;
    if (op.view()) return "a view, nothing runs";
    return op.name() == Slice::kName ? "read in place, nothing runs"
                                     : "written in place, nothing runs";
  }
  std::string text = step.choice;
  if (!step.keeps_output.empty()) {
    text += (text.empty() ? "" : "; ") + fmt::format("its output stays in {}", step.keeps_output);
  }
  const auto outputs = plan.graph.node(step.node).outputs;
  if (!outputs.empty()) {
    const auto& format = plan.locations[step.device][outputs[0].index()]->channels_last;
    if (format) {
      text += (text.empty() ? "" : "; ") +
              fmt::format("its output is stored in {}, channels last", to_string(format->dtype));
    }
  }
  if (step.refusals.empty() && text.empty()) return "best kernel";
  for (const auto& refusal : step.refusals) {
    text += (text.empty() ? "" : "; ") + to_string(refusal);
  }
  return text;
}

std::size_t Plan::total_bytes(std::size_t device) const {
  return arena_bytes[device] + state_bytes[device] + constant_bytes[device] + kernel_bytes[device];
}

std::vector<Operand> Plan::input_operands(const Step& step) const {
  return operands_of(*this, step, graph.node(step.node).inputs);
}

std::vector<Operand> Plan::output_operands(const Step& step) const {
  return operands_of(*this, step, graph.node(step.node).outputs);
}

Plan make_plan(Graph graph, std::vector<Device*> devices, const PlanOptions& options) {
  if (devices.empty()) throw InvalidArgument("a plan needs at least one device");
  verify(graph);
  Plan plan;
  plan.devices = std::move(devices);
  plan.options = options;
  const bool channels_last = options.channels_last && !options.keep_values;
  plan.options.placement.channels_last = channels_last;
  graph = with_attention_sums(std::move(graph), *plan.devices[0], options.placement);
  plan.graph = expand_for(std::move(graph), plan.devices, options.placement);
  if (!options.keep_values) {
    // Composites that it does not take after all are expanded again.
    plan.graph = expand_for(fuse_for(plan.graph, *plan.devices[0], options.placement), plan.devices,
                            options.placement);
  }
  auto placements = place(plan.graph, plan.devices, plan.options.placement);
  StoragePlan storage;
  if (channels_last) storage = choose_formats(plan.graph, placements, options.placement);
  if (options.concat_in_place && !options.keep_values) {
    find_concats_in_place(plan.graph, placements, options.placement, storage);
    find_slices_in_place(plan.graph, placements, options.placement, storage);
  }
  plan.steps = make_steps(plan.graph, std::move(placements), storage.parts);
  const auto* collectives = options.placement.collectives;
  if (collectives != nullptr && collectives->overlaps()) find_collectives_needed(plan);
  plan_crossings(plan);
  prepare_kernels(plan, storage);
  if (options.keep_outputs && !options.keep_values) keep_outputs(plan);
  count_kernel_memory(plan);
  plan_memory(plan, storage);
  return plan;
}

}  // namespace triptych
