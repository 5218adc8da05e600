// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/memory_plan.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/graph/passes/lifetimes.h"
#include "core/ops/concat.h"
#include "core/runtime/arena.h"

namespace triptych {
namespace {

class ConcatFinder {
 public:
  ConcatFinder(const Graph& graph, std::span<const NodePlacement> placements,
               const PlacementOptions& options, StoragePlan& storage)
      : graph_(graph),
        placements_(placements),
        options_(options),
        storage_(storage),
        parts_(storage.parts),
        roots_(Lifetimes::of(graph).root),
        consumers_(graph.consumers()) {
    for (const auto& output : graph.outputs()) outputs_.insert(output.value);
  }

  void run() {
    for (const auto& node : graph_.nodes()) {
      const auto* concat = op_cast<Concat>(*node.op);
      if (concat != nullptr && has_free_inputs(node)) try_concat(node, concat->axis);
    }
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
           !storage_.formats.contains(input) &&
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
      const NodeQuery query(graph_, graph_.node(id), options_, strides_, storage_.formats);
      return placements_[id.index()].kernel->accepts(query).accepted;
    });
  }

  /// The places of the inputs in the output. Nothing when they are not aligned slabs at one
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
  const StoragePlan& storage_;
  ConcatParts& parts_;
  std::vector<ValueId> roots_;
  std::vector<std::vector<NodeId>> consumers_;
  std::set<ValueId> outputs_;
  OuterStrides strides_;
  std::set<NodeId> in_place_;
};

class DevicePlanner {
 public:
  DevicePlanner(Plan& plan, const StoragePlan& storage, const std::vector<ValueId>& roots,
                std::size_t device)
      : plan_(plan),
        graph_(plan.graph),
        formats_(storage.formats),
        parts_(storage.parts),
        roots_(roots),
        device_(device),
        end_(plan.steps.size()),
        used_(roots.size(), false),
        blocks_(roots.size()) {
    for (const auto& value : graph_.values()) owner_.push_back(value.id);
    for (const auto& [value, part] : parts_) wholes_.insert(part.whole);
  }

  void run() {
    collect_uses();
    if (plan_.options.keep_values) {
      for (auto& block : blocks_) block = {block.bytes, 0, end_};
    } else {
      join_concats();
      join_overwrites();
    }
    locate();
  }

 private:
  const Value& root_of(ValueId value) const { return graph_.value(roots_[value.index()]); }

  std::size_t stored_bytes(const Value& value) const {
    const auto format = formats_.find(value.id);
    return format == formats_.end() ? value.spec.bytes()
                                    : bytes_of(value.spec.shape, format->second);
  }

  void use(std::size_t device, ValueId value, std::size_t time) {
    if (device != device_) return;
    const auto root = roots_[value.index()].index();
    auto& block = blocks_[root];
    if (!used_[root]) block = {stored_bytes(graph_.values()[root]), time, time};
    used_[root] = true;
    block.first = std::min(block.first, time);
    block.last = std::max(block.last, time);
  }

  void use_throughout(std::size_t device, ValueId value) {
    use(device, value, 0);
    use(device, value, end_);
  }

  void collect_uses() {
    for (const auto& value : graph_.values()) {
      if (value.kind != ValueKind::Activation)
        use_throughout(plan_.homes[value.id.index()], value.id);
    }
    for (std::size_t time = 0; time < end_; ++time) collect_uses(plan_.steps[time], time);
    for (const auto& output : graph_.outputs()) {
      use(plan_.homes[output.value.index()], output.value, end_);
    }
  }

  void collect_uses(const Step& step, std::size_t time) {
    const auto& node = graph_.node(step.node);
    if (node.op->view()) return;
    for (const auto input : node.inputs) {
      const bool fixed = root_of(input).kind != ValueKind::Activation;
      fixed ? use_throughout(step.device, input) : use(step.device, input, time);
    }
    for (const auto output : node.outputs) {
      use(step.device, output, time);
      use(step.device, output, std::max(time, step.finished_by));  // written as late as that
    }
    for (const auto* list : {&step.crossings, &step.write_backs}) {
      for (const auto& crossing : *list) {
        use(crossing.from, crossing.value, time);
        use(crossing.to, crossing.value, time);
      }
    }
  }

  void join(ValueId value, ValueId owner) {
    owner_[value.index()] = owner;
    const auto& joined = blocks_[value.index()];
    auto& block = blocks_[owner.index()];
    block.first = std::min(block.first, joined.first);
    block.last = std::max(block.last, joined.last);
  }

  void join_concats() {
    for (const auto& [value, part] : parts_) {
      if (used_[value.index()]) join(value, part.whole);
    }
  }

  void join_overwrites() {
    for (std::size_t time = 0; time < end_; ++time) {
      const auto& step = plan_.steps[time];
      if (step.device != device_ || step.entry == nullptr) continue;
      const auto& node = graph_.node(step.node);
      if (!node.outputs.empty() && is_free(node.outputs[0])) join_overwrite(node, time);
    }
  }

  /// True when the place of this output is still open.
  bool is_free(ValueId output) const {
    return roots_[output.index()] == output && !parts_.contains(output) &&
           !wholes_.contains(output);
  }

  void join_overwrite(const Node& node, std::size_t time) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (may_overwrite(node, i, time)) return join(node.outputs[0], owner_of(node.inputs[i]));
    }
  }

  ValueId owner_of(ValueId value) const { return owner_[roots_[value.index()].index()]; }

  /// True when output 0 of `node`, at `time`, may take the memory of this input.
  bool may_overwrite(const Node& node, std::size_t index, std::size_t time) const {
    const auto input = node.inputs[index];
    const auto owner = owner_of(input);
    if (root_of(input).kind != ValueKind::Activation || blocks_[owner.index()].last != time) {
      return false;
    }
    // Every input in the same memory is overwritten with it, element by element.
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (owner_of(node.inputs[i]) != owner) continue;
      const bool same = graph_.spec(node.inputs[i]) == graph_.spec(node.outputs[0]) &&
                        !formats_.contains(node.inputs[i]) && !formats_.contains(node.outputs[0]) &&
                        !parts_.contains(roots_[node.inputs[i].index()]);
      if (!same || !node.op->may_overwrite(static_cast<int>(i))) return false;
    }
    return true;
  }

  bool in_arena(const Value& root) const {
    const bool held_by_store = root.kind == ValueKind::State && device_ == 0;
    return root.kind != ValueKind::Constant && !held_by_store;
  }

  /// One for each step that is on this device.
  std::vector<Block> scratch_blocks() const {
    std::vector<Block> blocks;
    for (std::size_t time = 0; time < end_; ++time) {
      const auto& step = plan_.steps[time];
      if (step.device != device_ || !step.kernel) continue;
      blocks.push_back({step.kernel->scratch_bytes(), time, time, true});
    }
    return blocks;
  }

  /// Offsets of the roots that belong, next to `others`.
  std::vector<std::size_t> pack(std::size_t& total, const std::vector<Block>& others,
                                auto&& belongs) const {
    std::vector<Block> blocks(blocks_.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto& value = graph_.values()[i];
      if (used_[i] && owner_[i] == value.id && belongs(value)) blocks[i] = blocks_[i];
    }
    blocks.insert(blocks.end(), others.begin(), others.end());
    auto packing = pack_arena(blocks);
    total = packing.bytes;
    return std::move(packing.offsets);
  }

  void locate() {
    const auto arena = pack(plan_.arena_bytes[device_], scratch_blocks(),
                            [&](const Value& value) { return in_arena(value); });
    const auto constants = pack(plan_.constant_bytes[device_], {}, [](const Value& value) {
      return value.kind == ValueKind::Constant;
    });
    for (const auto& value : graph_.values()) {
      const auto root = roots_[value.id.index()];
      if (!used_[root.index()]) continue;
      const auto owner = owner_[root.index()];
      Location location{.outer_stride = Operand::dense(value.spec).outer_stride, .root = owner};
      if (in_arena(graph_.value(root))) {
        location.offset = arena[owner.index()];
      } else if (graph_.value(root).kind == ValueKind::Constant) {
        location.storage = Storage::Constant;
        location.offset = constants[owner.index()];
      } else {
        location.storage = Storage::State;
        if (value.id == root) plan_.state_bytes[device_] += value.spec.bytes();
      }
      if (const auto part = parts_.find(root); part != parts_.end()) {
        location.offset += part->second.offset;
        location.outer_stride = part->second.outer_stride;
      }
      if (const auto format = formats_.find(value.id); format != formats_.end()) {
        location.channels_last = format->second;
      }
      plan_.locations[device_][value.id.index()] = location;
    }
  }

  Plan& plan_;
  const Graph& graph_;
  const Formats& formats_;
  const ConcatParts& parts_;
  std::set<ValueId> wholes_;  ///< that the parts lie in
  const std::vector<ValueId>& roots_;
  std::size_t device_;
  std::size_t end_;             ///< the time after the last step
  std::vector<bool> used_;      ///< per root: it is on this device
  std::vector<Block> blocks_;   ///< per root
  std::vector<ValueId> owner_;  ///< per root: the owner of its block
};

}  // namespace

void find_concats_in_place(const Graph& graph, std::span<const NodePlacement> placements,
                           const PlacementOptions& options, StoragePlan& storage) {
  ConcatFinder(graph, placements, options, storage).run();
}

void plan_memory(Plan& plan, const StoragePlan& storage) {
  const auto count = plan.devices.size();
  plan.locations.assign(count, {});
  for (auto* sizes : {&plan.arena_bytes, &plan.state_bytes, &plan.constant_bytes}) {
    sizes->assign(count, 0);
  }
  const auto roots = Lifetimes::of(plan.graph).root;
  for (std::size_t device = 0; device < count; ++device) {
    plan.locations[device].resize(plan.graph.values().size());
    DevicePlanner(plan, storage, roots, device).run();
  }
}

}  // namespace triptych
