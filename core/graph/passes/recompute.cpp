// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "core/graph/passes/lifetimes.h"
#include "core/graph/passes/passes.h"
#include "core/graph/passes/rewrite.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"
#include "core/ops/cast.h"
#include "core/ops/normalization.h"
#include "core/ops/pool.h"
#include "core/ops/unary.h"
#include "core/ops/where.h"

// Vocabulary. A value is *split* before a late reader: that reader and all later ones get a second
// copy, computed just before it. The *cone* of a split is the set of nodes that are repeated for
// it: the producer and, as far as they are cheap, producers of inputs that are no longer in memory
// by then. The *frontier* of a cone is everything that it reads and does not compute. It stays
// alive until the split.

namespace triptych {

namespace {

constexpr std::size_t kLargestCone = 16;
constexpr auto kNever = std::numeric_limits<std::size_t>::max();

/// Outputs of a training BatchNormalization that its gradient reads, too.
constexpr std::size_t kBatchMean = 3, kInverseDeviation = 4;

bool is_training_norm(const Op& op) {
  const auto* norm = op_cast<BatchNormalization>(op);
  return norm != nullptr && norm->training_mode;
}

template <class... Ops>
bool is_one_of(const Op& op) {
  return ((op_cast<Ops>(op) != nullptr) || ...);
}

/// True when output 0 of `node` can be computed again, cheaply and with no other effect.
bool is_repeatable(const Node& node) {
  if (is_training_norm(*node.op)) return true;
  return node.outputs.size() == 1 &&
         is_one_of<Unary, Binary, Cast, Where, MaxPool, AveragePool, BatchNormalization,
                   LayerNormalization, GroupNormalization, InstanceNormalization>(*node.op);
}

/// Inputs of a repetition of `node`: a training BatchNormalization has its statistics already.
std::vector<ValueId> inputs_of_repetition(const Node& node) {
  if (!is_training_norm(*node.op)) return node.inputs;
  return {node.inputs[0], node.inputs[1], node.inputs[2], node.outputs[kBatchMean],
          node.outputs[kInverseDeviation]};
}

struct Split {
  ValueId value;
  std::size_t before = 0;      ///< number of the late reader
  std::vector<NodeId> cone;    ///< in order of execution
  std::int64_t freed_at_peak;  ///< bytes
};

/// Peak first. The bytes above the limit, summed over time, decide between equal peaks.
struct Pressure {
  std::size_t peak = 0;
  double excess = 0;

  bool operator<(const Pressure& other) const {
    return std::tie(peak, excess) < std::tie(other.peak, other.excess);
  }

  static Pressure of(const Lifetimes& times, std::size_t limit) {
    Pressure pressure{.peak = times.peak()};
    for (const auto bytes : times.live) {
      if (bytes > limit) pressure.excess += static_cast<double>(bytes - limit);
    }
    return pressure;
  }
};

/// Lists the splits of a graph that free memory at the time of its peak.
class SplitFinder {
 public:
  SplitFinder(const Graph& graph, const Lifetimes& times)
      : graph_(graph),
        times_(times),
        consumers_(graph.consumers()),
        overwritten_(graph.values().size(), kNever),
        peak_time_(static_cast<std::size_t>(std::max_element(times.live.begin(), times.live.end()) -
                                            times.live.begin())) {
    for (auto i = graph.nodes().size(); i-- > 0;) {  // a view comes before the update of its input
      const auto& node = graph.nodes()[i];
      if (node.op->view()) overwritten(node.outputs[0]) = overwritten(node.inputs[0]);
      for (const auto& update : node.updates()) overwritten(update.before) = i;
    }
  }

  /// The best first.
  std::vector<Split> find() const {
    std::vector<Split> splits;
    for (const auto& node : graph_.nodes()) {
      if (!is_repeatable(node)) continue;
      if (auto split = split_of(node); split && split->freed_at_peak > 0) {
        splits.push_back(std::move(*split));
      }
    }
    std::stable_sort(splits.begin(), splits.end(), [](const Split& a, const Split& b) {
      return a.freed_at_peak > b.freed_at_peak;
    });
    return splits;
  }

 private:
  std::size_t& overwritten(ValueId value) { return overwritten_[value.index()]; }

  /// The split of output 0 of `node` at its gap around the peak: it has early and late readers, but
  /// none at the peak.
  std::optional<Split> split_of(const Node& node) const {
    const auto value = node.outputs.front();
    std::size_t early = 0, late = kNever;
    for (const auto reader : consumers_[value.index()]) {
      const auto time = reader.index();
      if (time == peak_time_ || graph_.node(reader).op->view()) return std::nullopt;
      if (time < peak_time_) ++early;
      if (time > peak_time_) late = std::min(late, time);
    }
    const bool is_output = times_.alive(value, graph_.nodes().size());
    if (early == 0 || late == kNever || is_output) return std::nullopt;
    Split split{.value = value, .before = late, .cone = {}, .freed_at_peak = 0};
    if (!collect(node, split)) return std::nullopt;
    std::sort(split.cone.begin(), split.cone.end());
    split.freed_at_peak = static_cast<std::int64_t>(value_bytes(value)) - prolonged_bytes(split);
    return split;
  }

  std::size_t value_bytes(ValueId value) const {
    return times_.bytes[times_.root[value.index()].index()];
  }

  /// Adds `node` and the nodes that must be repeated for it to the cone. False when the cone gets
  /// too large or reads a state that is overwritten before the split.
  bool collect(const Node& node, Split& split) const {
    if (std::find(split.cone.begin(), split.cone.end(), node.id) != split.cone.end()) return true;
    if (split.cone.size() == kLargestCone) return false;
    split.cone.push_back(node.id);
    for (const auto input : inputs_of_repetition(node)) {
      if (overwritten_[input.index()] < split.before) return false;
      const auto& value = graph_.value(input);
      if (value.kind != ValueKind::Activation || times_.alive(input, split.before)) continue;
      const auto& producer = graph_.node(value.producer);
      const bool is_repeated = value.output_index == 0 && is_repeatable(producer);
      if (is_repeated && !collect(producer, split)) return false;
    }
    return true;
  }

  /// Bytes of the frontier that would have been free at the peak.
  std::int64_t prolonged_bytes(const Split& split) const {
    std::vector<ValueId> computed, frontier;
    for (const auto id : split.cone) computed.push_back(graph_.node(id).outputs.front());
    for (const auto id : split.cone) {
      for (const auto input : inputs_of_repetition(graph_.node(id))) {
        const auto root = times_.root[input.index()];
        const bool is_new = std::find(frontier.begin(), frontier.end(), root) == frontier.end();
        const bool is_computed =
            std::find(computed.begin(), computed.end(), input) != computed.end();
        if (is_new && !is_computed && !times_.alive(root, peak_time_)) frontier.push_back(root);
      }
    }
    std::int64_t bytes = 0;
    for (const auto root : frontier) bytes += static_cast<std::int64_t>(value_bytes(root));
    return bytes;
  }

  const Graph& graph_;
  const Lifetimes& times_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<std::size_t> overwritten_;  ///< per value: the node that updates it in place
  std::size_t peak_time_;
};

ValueId repeat_training_norm(Rewriter& rewriter, const Node& node) {
  const auto scope = rewriter.target().scope(node.name + ".again");
  const auto operands = rewriter.mapped(inputs_of_repetition(node));
  return normalize_again(rewriter.target(), {.x = operands[0],
                                             .scale = operands[1],
                                             .bias = operands[2],
                                             .mean = operands[3],
                                             .inverse_deviation = operands[4]});
}

Graph apply(const Graph& graph, const Split& split) {
  Rewriter rewriter(graph);
  for (const auto& node : graph.nodes()) {
    if (node.id.index() == split.before) {
      for (const auto id : split.cone) {
        const auto& repeated = graph.node(id);
        const auto y = is_training_norm(*repeated.op)
                           ? repeat_training_norm(rewriter, repeated)
                           : rewriter.target()
                                 .add_node(repeated.op, rewriter.mapped(repeated.inputs),
                                           repeated.name + ".again")
                                 .front();
        rewriter.map(repeated.outputs.front(), y);
      }
    }
    rewriter.copy(node);
  }
  return rewriter.finish();
}

/// The graph after the first of the listed splits that lowers the pressure.
std::optional<Graph> improved(const Graph& graph, const Lifetimes& times, std::size_t limit) {
  const auto before = Pressure::of(times, limit);
  for (const auto& split : SplitFinder(graph, times).find()) {
    auto candidate = apply(graph, split);
    if (Pressure::of(Lifetimes::of(candidate), limit) < before) return candidate;
  }
  return std::nullopt;
}

}  // namespace

Graph recompute_activations(const Graph& graph, std::size_t limit_bytes) {
  Graph current = graph.clone();
  for (;;) {
    const auto times = Lifetimes::of(current);
    if (times.peak() <= limit_bytes) return current;
    auto next = improved(current, times, limit_bytes);
    if (!next) return current;
    current = std::move(*next);
  }
}

}  // namespace triptych
