// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/concat_in_place.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/graph/passes/lifetimes.h"
#include "core/ops/concat.h"

namespace triptych {

namespace {

class ConcatFinder {
 public:
  ConcatFinder(const Graph& graph, std::span<const NodePlacement> placements,
               const PlacementOptions& options)
      : graph_(graph),
        placements_(placements),
        options_(options),
        roots_(Lifetimes::of(graph).root),
        consumers_(graph.consumers()) {
    for (const auto& output : graph.outputs()) outputs_.insert(output.value);
  }

  ConcatParts run() {
    for (const auto& node : graph_.nodes()) {
      const auto* concat = op_cast<Concat>(*node.op);
      if (concat != nullptr && has_free_inputs(node)) try_concat(node, concat->axis);
    }
    return std::move(parts_);
  }

 private:
  bool has_free_inputs(const Node& concat) const {
    const std::set<ValueId> distinct(concat.inputs.begin(), concat.inputs.end());
    return distinct.size() == concat.inputs.size() &&
           std::ranges::all_of(concat.inputs,
                               [&](ValueId input) { return is_free(input, concat.id); });
  }

  /// True when `input` may move into the output of `concat`, as far as its kernels allow.
  bool is_free(ValueId input, NodeId concat) const {
    const auto device = placements_[concat.index()].device;
    const auto runs_here = [&](NodeId node) {
      const auto& placement = placements_[node.index()];
      return placement.kernel != nullptr && placement.device == device;
    };
    const auto& value = graph_.value(input);
    return value.kind == ValueKind::Activation && roots_[input.index()] == input &&
           runs_here(value.producer) && !in_place_.contains(value.producer) &&
           !parts_.contains(input) && !outputs_.contains(input) &&
           std::ranges::all_of(consumers_[input.index()], runs_here);
  }

  void try_concat(const Node& concat, std::int64_t axis) {
    const auto parts = layout(concat, axis);
    if (!parts) return;
    for (const auto& [input, part] : *parts) strides_[input] = part.outer_stride;
    if (!kernels_accept(concat, *parts)) {
      for (const auto& [input, part] : *parts) strides_.erase(input);
      return;
    }
    parts_.insert(parts->begin(), parts->end());
    in_place_.insert(concat.id);
  }

  /// True when all that write or read the parts take their strides.
  bool kernels_accept(const Node& concat, const ConcatParts& parts) const {
    std::set<NodeId> touched;
    for (const auto& [input, part] : parts) {
      touched.insert(graph_.value(input).producer);
      for (const auto reader : consumers_[input.index()]) touched.insert(reader);
    }
    touched.erase(concat.id);
    return std::ranges::all_of(touched, [&](NodeId id) {
      const NodeQuery query(graph_, graph_.node(id), options_, strides_);
      return placements_[id.index()].kernel->accepts(query).accepted;
    });
  }

  /// The places of the inputs in the output; nothing when they are not aligned slabs at one
  /// distance along dimension 0.
  std::optional<ConcatParts> layout(const Node& concat, std::int64_t concat_axis) const {
    const auto whole = concat.outputs[0];
    const auto& shape = graph_.spec(whole).shape;
    const auto axis = normalize_axis(concat_axis, shape.rank());
    if (axis > 0 && shape.elements_between(1, axis) != 1) return std::nullopt;
    const auto row = axis > 0 ? shape.elements_between(1, shape.rank()) : 0;
    ConcatParts parts;
    std::size_t offset = 0;
    for (const auto input : concat.inputs) {
      const auto dense = Operand::dense(graph_.spec(input));
      const bool repeats = axis > 0 && dense.spec.shape[0] > 1;
      parts[input] = {whole, offset, repeats ? row : dense.outer_stride};
      const auto rows = repeats ? dense.spec.shape[0] : 1;
      const auto slab = dense.spec.bytes() / static_cast<std::size_t>(rows);
      if (slab % kAlignment != 0) return std::nullopt;
      offset += slab;
    }
    return parts;
  }

  const Graph& graph_;
  std::span<const NodePlacement> placements_;
  const PlacementOptions& options_;
  std::vector<ValueId> roots_;
  std::vector<std::vector<NodeId>> consumers_;
  std::set<ValueId> outputs_;
  ConcatParts parts_;
  OuterStrides strides_;
  std::set<NodeId> in_place_;
};

}  // namespace

ConcatParts find_concats_in_place(const Graph& graph, std::span<const NodePlacement> placements,
                                  const PlacementOptions& options) {
  return ConcatFinder(graph, placements, options).run();
}

}  // namespace triptych
