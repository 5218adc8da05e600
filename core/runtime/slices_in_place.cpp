// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include "core/graph/passes/lifetimes.h"
#include "core/ops/slice.h"
#include "core/runtime/memory_plan.h"

namespace triptych {
namespace {

class SliceFinder {
 public:
  SliceFinder(const Graph& graph, std::span<const NodePlacement> placements,
              const PlacementOptions& options, StoragePlan& storage)
      : graph_(graph),
        placements_(placements),
        options_(options),
        storage_(storage),
        roots_(Lifetimes::of(graph).root),
        consumers_(graph.consumers()) {
    for (const auto& output : graph.outputs()) outputs_.insert(output.value);
    for (const auto& [value, part] : storage.parts) strides_[value] = part.outer_stride;
  }

  void run() {
    for (const auto& value : graph_.values()) {
      const auto& readers = consumers_[value.id.index()];
      if (!readers.empty() && is_free(value.id)) try_slices(value.id, readers);
    }
  }

 private:
  /// True when `value` has memory of its own, in planes.
  bool is_free(ValueId value) const {
    return graph_.value(value).kind == ValueKind::Activation && roots_[value.index()] == value &&
           !outputs_.contains(value) && !storage_.parts.contains(value) &&
           !storage_.formats.contains(value);
  }

  void try_slices(ValueId whole, const std::vector<NodeId>& readers) {
    const auto& producer = placements_[graph_.value(whole).producer.index()];
    ConcatParts parts;
    for (const auto reader : readers) {
      const auto& node = graph_.node(reader);
      const auto part = part_of(whole, node);
      if (!part || placements_[reader.index()].device != producer.device) return;
      parts[node.outputs[0]] = *part;
    }
    for (const auto& [value, part] : parts) strides_[value] = part.outer_stride;
    const bool accepted = std::ranges::all_of(
        parts, [&](const auto& part) { return readers_accept(part.first, producer.device); });
    if (accepted) {
      storage_.parts.insert(parts.begin(), parts.end());
      return;
    }
    for (const auto& [value, part] : parts) strides_.erase(value);
  }

  /// The place of a slice in its input. Nothing for other operators, and where it is no aligned
  /// slab with one distance along dimension 0.
  std::optional<ConcatPart> part_of(ValueId whole, const Node& node) const {
    const auto* slice = op_cast<Slice>(*node.op);
    if (slice == nullptr || !is_free(node.outputs[0])) return std::nullopt;
    const auto& input = graph_.spec(whole);
    const auto dense = Operand::dense(graph_.spec(node.outputs[0]));
    const auto& shape = dense.spec.shape;
    if (shape.rank() == 0 || shape.elements() == 0) return std::nullopt;
    const auto view = slice->view_of(dense_view(input.shape));
    for (std::int64_t axis = 1; axis < shape.rank(); ++axis) {
      const bool repeats = shape[axis] > 1;
      const auto stride = view.strides[static_cast<std::size_t>(axis)];
      if (repeats && stride != shape.elements_between(axis + 1, shape.rank())) return std::nullopt;
    }
    const auto distance = shape[0] > 1 ? view.strides[0] : dense.outer_stride;
    const auto size = dtype_size(input.dtype);
    const auto offset = static_cast<std::size_t>(view.offset) * size;
    const bool aligned = (offset | (static_cast<std::size_t>(distance) * size)) % kAlignment == 0;
    if (distance < dense.outer_stride || !aligned) return std::nullopt;
    return ConcatPart{whole, offset, distance};
  }

  /// True when all that read a part run on the device of the whole and take its distance.
  bool readers_accept(ValueId value, std::size_t device) const {
    return std::ranges::all_of(consumers_[value.index()], [&](NodeId reader) {
      const auto& placement = placements_[reader.index()];
      if (placement.kernel == nullptr || placement.device != device) return false;
      const NodeQuery query(graph_, graph_.node(reader), options_, strides_, storage_.formats);
      return placement.kernel->accepts(query).accepted;
    });
  }

  const Graph& graph_;
  std::span<const NodePlacement> placements_;
  const PlacementOptions& options_;
  StoragePlan& storage_;
  std::vector<ValueId> roots_;
  std::vector<std::vector<NodeId>> consumers_;
  std::set<ValueId> outputs_;
  OuterStrides strides_;
};

}  // namespace

void find_slices_in_place(const Graph& graph, std::span<const NodePlacement> placements,
                          const PlacementOptions& options, StoragePlan& storage) {
  SliceFinder(graph, placements, options, storage).run();
}

}  // namespace triptych
