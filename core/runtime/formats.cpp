// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/formats.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <vector>

#include "core/base/float16.h"
#include "core/graph/passes/lifetimes.h"
#include "core/ops/concat.h"
#include "core/ops/slice.h"

namespace triptych {
namespace {

bool joins_channels(const Op& op) {
  const auto* concat = op_cast<Concat>(op);
  return concat != nullptr && (concat->axis == 1 || concat->axis == -3);
}

/// The first channel of a slice that takes neighbouring channels and nothing else. None: another.
std::optional<std::int64_t> first_channel(const Graph& graph, const Node& node) {
  const auto* slice = op_cast<Slice>(*node.op);
  if (slice == nullptr) return std::nullopt;
  const auto& x = graph.spec(node.inputs[0]).shape;
  if (x.rank() != 4) return std::nullopt;
  const auto geometry = SliceGeometry::of(*slice, x);
  if (geometry.steps[1] != 1) return std::nullopt;
  for (const std::int64_t axis : {0, 2, 3}) {
    if (geometry.output[axis] != x[axis] || geometry.steps[static_cast<std::size_t>(axis)] != 1) {
      return std::nullopt;
    }
  }
  return geometry.starts[1];
}

/// Parts of a position begin at multiples of 16 bytes, which kernels read at once.
constexpr std::size_t kPartAlignment = 16;

class FormatChooser {
 public:
  FormatChooser(const Graph& graph, std::span<const NodePlacement> placements,
                const PlacementOptions& options)
      : graph_(graph), placements_(placements), consumers_(graph.consumers()) {
    for (const auto& node : graph.nodes()) takes_.push_back(operands_taken(node, options));
    find_candidates();
  }

  StoragePlan run() {
    drop_incomplete();
    spread_pads();
    StoragePlan plan;
    for (const auto& value : graph_.values()) {
      if (!chosen_[value.id.index()]) continue;
      auto format = channels_last_format(value.spec).value();
      format.pad = pad_[value.id.index()];
      plan.formats[value.id] = format;
    }
    for (const auto& node : graph_.nodes()) {
      if (is_chosen_concat(node)) place_parts(node, plan);
      if (is_chosen_slice(node)) place_slice(node, plan);
    }
    return plan;
  }

 private:
  ChannelsLastOperands operands_taken(const Node& node, const PlacementOptions& options) {
    const auto* kernel = placements_[node.id.index()].kernel;
    if (kernel == nullptr) return {};
    if (joins_channels(*node.op)) return operands_of_concat(node);
    if (first_channel(graph_, node)) return operands_of_slice(node);
    if (kernel->channels_last == nullptr) return {};
    return kernel->channels_last(NodeQuery(graph_, node, options));
  }

  /// In place, so that every input is in one concat, which is in no other.
  ChannelsLastOperands operands_of_concat(const Node& node) {
    const bool is_free = std::ranges::all_of(node.inputs, [&](ValueId input) {
      if (graph_.value(input).kind != ValueKind::Activation || in_concats_.contains(input)) {
        return false;
      }
      const auto& producer = graph_.node(graph_.value(input).producer);
      return !joins_channels(*producer.op) && !first_channel(graph_, producer);
    });
    const std::set<ValueId> distinct(node.inputs.begin(), node.inputs.end());
    if (!is_free || distinct.size() != node.inputs.size()) return {};
    in_concats_.insert(distinct.begin(), distinct.end());
    return {
        .inputs = std::vector<bool>(node.inputs.size(), true), .output = true, .all_or_none = true};
  }

  /// In place, where only such slices read its input, which is no slice itself.
  ChannelsLastOperands operands_of_slice(const Node& node) const {
    const auto whole = node.inputs[0];
    const auto format = channels_last_format(graph_.spec(whole));
    if (!format) return {};
    const auto offset =
        static_cast<std::size_t>(*first_channel(graph_, node)) * dtype_size(format->dtype);
    const bool is_free = graph_.value(whole).kind == ValueKind::Activation &&
                         !joins_channels(*graph_.node(graph_.value(whole).producer).op) &&
                         !first_channel(graph_, graph_.node(graph_.value(whole).producer)) &&
                         std::ranges::all_of(consumers_[whole.index()], [&](NodeId reader) {
                           return first_channel(graph_, graph_.node(reader)).has_value();
                         });
    if (!is_free || offset % kPartAlignment != 0) return {};
    return {.inputs = {true}, .output = true, .all_or_none = true};
  }

  void find_candidates() {
    const auto roots = Lifetimes::of(graph_).root;
    for (const auto& value : graph_.values()) {
      chosen_.push_back(roots[value.id.index()] == value.id && is_candidate(value));
    }
    for (const auto& output : graph_.outputs()) chosen_[output.value.index()] = false;
    pad_.assign(chosen_.size(), 0);
  }

  bool is_candidate(const Value& value) const {
    if (value.kind != ValueKind::Activation || !channels_last_format(value.spec)) return false;
    const auto device = placements_[value.producer.index()].device;
    const auto& node = graph_.node(value.producer);
    return takes_[node.id.index()].output && node.outputs[0] == value.id &&
           std::ranges::all_of(consumers_[value.id.index()], [&](NodeId reader) {
             return placements_[reader.index()].device == device && takes_input(reader, value.id);
           });
  }

  bool takes_input(NodeId reader, ValueId value) const {
    const auto& inputs = graph_.node(reader).inputs;
    const auto& taken = takes_[reader.index()].inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == value && (i >= taken.size() || !taken[i])) return false;
    }
    return true;
  }

  /// The operands of a node that it takes channels last.
  std::vector<ValueId> taken_operands(const Node& node) const {
    const auto& takes = takes_[node.id.index()];
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < takes.inputs.size(); ++i) {
      if (takes.inputs[i]) operands.push_back(node.inputs[i]);
    }
    if (takes.output) operands.push_back(node.outputs[0]);
    return operands;
  }

  /// Planes for all operands of a node that takes all or none, where one must be planes.
  void drop_incomplete() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& node : graph_.nodes()) {
        if (!takes_[node.id.index()].all_or_none) continue;
        const auto operands = taken_operands(node);
        const auto is_chosen = [&](ValueId value) { return chosen_[value.index()]; };
        if (std::ranges::all_of(operands, is_chosen) || std::ranges::none_of(operands, is_chosen))
          continue;
        for (const auto value : operands) chosen_[value.index()] = false;
        changed = true;
      }
    }
  }

  bool is_chosen_concat(const Node& node) const {
    return joins_channels(*node.op) && chosen_[node.outputs[0].index()];
  }

  bool is_chosen_slice(const Node& node) const {
    return first_channel(graph_, node) && chosen_[node.outputs[0].index()];
  }

  /// The most that a reader wants; the same for a whole and its parts.
  void spread_pads() {
    for (const auto& node : graph_.nodes()) {
      const auto pad = takes_[node.id.index()].pad;
      for (const auto input : node.inputs) widen(input, pad);
    }
    for (const auto& node : graph_.nodes()) {
      if (!is_chosen_concat(node)) continue;
      for (const auto input : node.inputs) widen(node.outputs[0], pad_[input.index()]);
      for (const auto input : node.inputs) widen(input, pad_[node.outputs[0].index()]);
    }
    for (const auto& node : graph_.nodes()) {
      if (is_chosen_slice(node)) widen(node.inputs[0], pad_[node.outputs[0].index()]);
    }
    for (const auto& node : graph_.nodes()) {
      if (is_chosen_slice(node)) widen(node.outputs[0], pad_[node.inputs[0].index()]);
    }
  }

  void widen(ValueId value, std::int64_t pad) {
    auto& own = pad_[value.index()];
    own = std::max(own, pad);
  }

  void place_parts(const Node& concat, StoragePlan& plan) const {
    const auto whole = concat.outputs[0];
    std::int64_t channel = 0;
    for (const auto input : concat.inputs) {
      plan.formats[input].pitch = graph_.spec(whole).shape[1];
      plan.parts[input] = {
          whole, static_cast<std::size_t>(channel) * dtype_size(plan.formats[input].dtype),
          Operand::dense(graph_.spec(input)).outer_stride};
      channel += graph_.spec(input).shape[1];
    }
  }

  void place_slice(const Node& slice, StoragePlan& plan) const {
    const auto whole = slice.inputs[0], part = slice.outputs[0];
    auto& format = plan.formats[part];
    format.pitch = graph_.spec(whole).shape[1];
    plan.parts[part] = {
        whole, static_cast<std::size_t>(*first_channel(graph_, slice)) * dtype_size(format.dtype),
        Operand::dense(graph_.spec(part)).outer_stride};
  }

  const Graph& graph_;
  std::span<const NodePlacement> placements_;
  std::vector<std::vector<NodeId>> consumers_;
  std::set<ValueId> in_concats_;
  std::vector<ChannelsLastOperands> takes_;  ///< per node
  std::vector<bool> chosen_;                 ///< per value
  std::vector<std::int64_t> pad_;            ///< per value
};

}  // namespace

StoragePlan choose_formats(const Graph& graph, std::span<const NodePlacement> placements,
                           const PlacementOptions& options) {
  return FormatChooser(graph, placements, options).run();
}

std::optional<ChannelsLast> channels_last_format(const TensorSpec& spec) {
  const auto& shape = spec.shape;
  if (shape.rank() != 4 || shape.elements() == 0) return std::nullopt;
  // Channels are whole in the words of a matrix unit.
  if (spec.dtype == DType::F32 && shape[1] % 2 == 0) return ChannelsLast{DType::BF16, 0, shape[1]};
  if (spec.dtype == DType::I8 && shape[1] % 4 == 0) return ChannelsLast{DType::I8, 0, shape[1]};
  return std::nullopt;
}

void planes_from_channels_last(const Shape& shape, const ChannelsLast& format,
                               std::span<const std::byte> stored, std::span<float> planes) {
  const auto rows = shape[2] + 2 * format.pad, columns = shape[3] + 2 * format.pad;
  std::size_t i = 0;
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      for (std::int64_t y = 0; y < shape[2]; ++y) {
        for (std::int64_t x = 0; x < shape[3]; ++x) {
          const auto position = (n * rows + y + format.pad) * columns + x + format.pad;
          const auto element = static_cast<std::size_t>(position * format.pitch + c);
          BFloat16 value;
          std::memcpy(&value, stored.data() + element * sizeof(value), sizeof(value));
          planes[i++] = static_cast<float>(value);
        }
      }
    }
  }
}

}  // namespace triptych
