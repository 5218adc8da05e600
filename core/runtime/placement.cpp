// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/runtime/formats.h"

namespace triptych {

namespace {

std::vector<Operand> operands_of(const Graph& graph, Values values, const OuterStrides& strides,
                                 const Formats& formats) {
  std::vector<Operand> operands;
  for (const auto value : values) {
    operands.push_back(Operand::dense(graph.spec(value)));
    const auto strided = strides.find(value);
    if (strided != strides.end()) operands.back().outer_stride = strided->second;
    const auto format = formats.find(value);
    if (format != formats.end()) operands.back().channels_last = format->second;
  }
  return operands;
}

std::string_view backend_name(const Device& device) {
  const std::string_view name = device.info().name;
  return name.substr(0, name.find(':'));
}

std::string list_of_specs(const Graph& graph, Values values) {
  std::vector<std::string> specs;
  for (const auto value : values) specs.push_back(to_string(graph.spec(value)));
  return fmt::format("{}", fmt::join(specs, ", "));
}

/// The placement of one node after another. It knows the memory of views.
class Placer {
 public:
  Placer(const Graph& graph, std::span<Device* const> devices, const PlacementOptions& options)
      : graph_(graph),
        devices_(devices),
        options_(options),
        home_(graph.values().size(), 0),
        storable_(graph.values().size(), false) {
    if (!options.channels_last) return;
    for (const auto& value : graph.values()) {
      storable_[value.id.index()] =
          value.kind == ValueKind::Activation && channels_last_format(value.spec).has_value();
    }
    for (const auto& output : graph.outputs()) storable_[output.value.index()] = false;
  }

  NodePlacement place(const Node& node) {
    auto placement = node.op->view()         ? NodePlacement{.device = home_of(node)}
                     : node.op->collective() ? place_collective(node)
                                             : place_kernel(node);
    for (const auto output : node.outputs) home_[output.index()] = placement.device;
    return placement;
  }

 private:
  std::size_t home_of(const Node& node) const {
    return node.inputs.empty() ? 0 : home_[node.inputs[0].index()];
  }

  /// Where its first operand is: a collective has no device of its own.
  NodePlacement place_collective(const Node& node) const {
    NodePlacement placement = {.device = home_of(node)};
    if (options_.collectives == nullptr) {
      placement.refusals.push_back({{}, "it needs several ranks, and this run has one", 0});
      fail(node, placement.refusals);
    }
    const NodeQuery query(graph_, node, options_);
    for (const auto& entry : options_.collectives->kernels()) {
      if (entry.op != node.op->name()) continue;
      auto verdict = entry.accepts(query);
      placement.kernel = &entry;
      if (verdict.accepted) return placement;
      placement.refusals.push_back({entry.name, std::move(verdict.reason), placement.device});
    }
    fail(node, placement.refusals);
  }

  NodePlacement place_kernel(const Node& node) const {
    const NodeQuery query(graph_, node, options_);
    const Rule rule = rule_for(*node.op);
    NodePlacement placement;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (d > 0 && d == options_.host && !leaves_to_host(*devices_[0], *node.op)) continue;
      bool has_entry = false;
      std::vector<const KernelEntry*> accepting;
      for (const auto& entry : devices_[d]->kernels()) {
        if (entry.op != node.op->name() || !rule.admits(entry)) continue;
        has_entry = true;
        auto verdict = entry.accepts(query);
        const bool chosen_freely = !rule.forces() && (d > 0 || options_.chooser == nullptr);
        if (verdict.accepted && chosen_freely && entry.worth != nullptr) {
          verdict = entry.worth(query);
        }
        if (verdict.accepted) {
          accepting.push_back(&entry);
          // A kernel that accepts may name the unit of the device that it runs on.
          if (accepting.size() == 1) placement.choice = std::move(verdict.reason);
          if (d > 0 || options_.chooser == nullptr) break;
        } else {
          placement.refusals.push_back({entry.name, std::move(verdict.reason), d});
        }
      }
      if (!accepting.empty()) {
        placement.device = d;
        choose(placement, node, query, accepting);
        return placement;
      }
      if (has_entry && rule.forces()) break;
      if (!has_entry) placement.refusals.push_back({{}, missing(d, node, rule), d});
    }
    fail(node, placement.refusals);
  }

  void choose(NodePlacement& placement, const Node& node, const KernelQuery& query,
              const std::vector<const KernelEntry*>& accepting) const {
    placement.kernel = accepting.front();
    if (accepting.size() == 1) return;
    const auto choice = options_.chooser->choose({query, storable_operands(node)},
                                                 *devices_[placement.device], accepting);
    placement.kernel = choice.entry;
    placement.choice = choice.reason;
  }

  ChannelsLastOperands storable_operands(const Node& node) const {
    ChannelsLastOperands storable;
    for (const auto input : node.inputs) storable.inputs.push_back(storable_[input.index()]);
    storable.output = !node.outputs.empty() && storable_[node.outputs[0].index()];
    return storable;
  }

  /// The permitted entries of an operator: one by name, or those of some roles.
  struct Rule {
    std::string_view name;
    bool libraries_only = false, no_libraries = false, no_transformed = false;

    bool forces() const { return !name.empty() || libraries_only; }
    bool admits(const KernelEntry& entry) const {
      if (!name.empty()) return entry.name == name;
      if (entry.role == KernelRole::Lesson) return false;
      if (no_transformed && entry.accuracy == Accuracy::Transformed) return false;
      const bool library = entry.role == KernelRole::Library;
      return library ? !no_libraries : !libraries_only;
    }
  };

  Rule rule_for(const Op& op) const {
    const auto forced = options_.forced_kernels.find(op.name());
    if (forced != options_.forced_kernels.end()) return {.name = forced->second};
    const bool no_transformed = !options_.transformed;
    if (options_.forced == "own") return {.no_libraries = true, .no_transformed = no_transformed};
    const auto is_on_a_device = [&](const auto& matches) {
      return std::ranges::any_of(devices_, [&](const Device* device) {
        return std::ranges::any_of(device->kernels(), [&](const KernelEntry& entry) {
          return entry.op == op.name() && matches(entry);
        });
      });
    };
    if (options_.forced == "library") {
      return {.libraries_only = is_on_a_device(
                  [](const KernelEntry& entry) { return entry.role == KernelRole::Library; }),
              .no_transformed = no_transformed};
    }
    const auto has_name = [&](const KernelEntry& entry) { return entry.name == options_.forced; };
    return is_on_a_device(has_name) ? Rule{.name = options_.forced}
                                    : Rule{.no_transformed = no_transformed};
  }

  /// True when all kernels that the device has for the operator are optional.
  static bool leaves_to_host(const Device& device, const Op& op) {
    return std::ranges::all_of(device.kernels(), [&](const KernelEntry& entry) {
      return entry.op != op.name() || entry.optional;
    });
  }

  std::string missing(std::size_t device, const Node& node, const Rule& rule) const {
    const auto backend = backend_name(*devices_[device]);
    const auto op = node.op->name();
    if (!rule.forces()) return fmt::format("the backend {} has no kernel for {}", backend, op);
    if (rule.libraries_only) {
      return fmt::format("the backend {} has no library kernel for {}", backend, op);
    }
    std::vector<std::string_view> names;
    for (const auto& entry : devices_[device]->kernels()) {
      if (entry.op == op) names.push_back(entry.name);
    }
    return fmt::format("the backend {} has no kernel \"{}\" for {}; its kernels: {}", backend,
                       rule.name, op,
                       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  }

  [[noreturn]] void fail(const Node& node, const std::vector<Refusal>& refusals) const {
    auto message = fmt::format("node \"{}\" cannot run: {}, inputs {}, outputs {}, contract {}",
                               node.name, to_string(*node.op), list_of_specs(graph_, node.inputs),
                               list_of_specs(graph_, node.outputs), to_string(options_.contract));
    for (const auto& refusal : refusals) {
      message +=
          fmt::format("\n  {}: {}", devices_[refusal.device]->info().name, to_string(refusal));
    }
    if (node.op->collective()) throw UnsupportedError(message);  // no other device would help
    const bool has_fallback = devices_.size() > (options_.host > 0 ? 2U : 1U);
    const bool is_forced = options_.forced_kernels.contains(node.op->name());
    if (!has_fallback && !is_forced && backend_name(*devices_[0]) != "cpu") {
      message += "\nadd the option fallback cpu to run it on the CPU";
    }
    throw UnsupportedError(message);
  }

  const Graph& graph_;
  std::span<Device* const> devices_;
  const PlacementOptions& options_;
  std::vector<std::size_t> home_;  ///< per value
  std::vector<bool> storable_;     ///< per value
};

}  // namespace

std::string to_string(const Refusal& refusal) {
  if (refusal.kernel.empty()) return refusal.reason;
  return fmt::format("kernel \"{}\": {}", refusal.kernel, refusal.reason);
}

NodeQuery::NodeQuery(const Graph& graph, const Node& node, const PlacementOptions& options,
                     const OuterStrides& strides, const Formats& formats)
    : op_(*node.op),
      inputs_(operands_of(graph, node.inputs, strides, formats)),
      outputs_(operands_of(graph, node.outputs, strides, formats)),
      options_(options) {
  for (const auto input : node.inputs) {
    const auto& value = graph.value(input);
    constants_.push_back(value.kind == ValueKind::Constant ? value.data.get() : nullptr);
  }
}

bool accepts(const Device& device, const Graph& graph, const Node& node,
             const PlacementOptions& options) {
  if (node.op->view()) return true;
  const NodeQuery query(graph, node, options);
  return std::ranges::any_of(device.kernels(), [&](const KernelEntry& entry) {
    return entry.op == node.op->name() && entry.accepts(query).accepted;
  });
}

namespace {

/// A name that forces nothing is a mistake of the user.
void require_known_kernel(const Graph& graph, std::span<Device* const> devices,
                          const std::string& name) {
  if (name.empty() || name == "own") return;
  std::set<std::string_view> ops, names;
  for (const auto& node : graph.nodes()) ops.insert(node.op->name());
  for (const auto* device : devices) {
    for (const auto& entry : device->kernels()) {
      if (!ops.contains(entry.op)) continue;
      names.insert(entry.name);
      if (entry.role == KernelRole::Library) names.insert("library");
    }
  }
  if (names.contains(name)) return;
  throw InvalidArgument(
      fmt::format("no operator of the graph has a kernel \"{}\"; use own or one of: {}", name,
                  fmt::join(names, ", ")));
}

}  // namespace

std::vector<NodePlacement> place(const Graph& graph, std::span<Device* const> devices,
                                 const PlacementOptions& options) {
  require_known_kernel(graph, devices, options.forced);
  Placer placer(graph, devices, options);
  std::vector<NodePlacement> placements;
  placements.reserve(graph.nodes().size());
  for (const auto& node : graph.nodes()) placements.push_back(placer.place(node));
  return placements;
}

}  // namespace triptych
