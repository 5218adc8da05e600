// The graph that an import grows. Values that are known at load are computed at once: arithmetic
// with shapes leaves no nodes. A node is added only when each of its outputs fits the memory
// budget.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"
#include "core/onnx/model.h"

namespace triptych::onnx {

class ImportGraph final : public OpEmitter {
 public:
  /// An input. `given` is its content in the run that the import is for, which shapes may follow.
  ValueId add_input(const std::string& name, TensorSpec spec, TensorPtr given);
  ValueId add_constant(const std::string& name, TensorPtr value);
  ValueId add_state(const std::string& name, TensorPtr initial, StateRole role);
  bool is_state(ValueId value) const { return graph_.value(value).kind == ValueKind::State; }
  void mark_output(const std::string& name, ValueId value);

  std::vector<ValueId> emit(OpPtr op, Values inputs) override;
  ValueId constant(Tensor value) override;
  const TensorSpec& spec(ValueId value) const override { return graph_.spec(value); }

  /// Throws MemoryLimitError when a constant of that spec needs more memory than is left.
  static void require_room(const TensorSpec& spec);
  /// Content of `value` where it is known before the graph runs, otherwise nullptr.
  TensorPtr known(ValueId value) const;
  /// Names the nodes that are added from now on.
  void begin_node(std::string name) { node_ = std::move(name); }
  /// Lets dropout draw from `seed`.
  void draw_from(std::int64_t seed) { seed_ = seed; }
  /// Whether draw_from was called: the file is one of a network in training.
  bool draws() const { return seed_.has_value(); }
  /// y and mask of a dropout of x in training, f32, each with random numbers of its own. Throws
  /// UnsupportedError without draw_from.
  std::vector<ValueId> dropout(ValueId x, double ratio);
  /// Counts a run, if a dropout goes by their number. To be called at the end.
  void count_run();

  /// Everything that was added so far.
  const Graph& graph() const { return graph_; }
  Graph take() { return std::move(graph_); }

 private:
  void check(const Op& op, Specs inputs, Specs outputs);
  bool is_constant(ValueId value) const { return graph_.value(value).kind == ValueKind::Constant; }
  std::vector<TensorPtr> evaluate(const Op& op, Values inputs, Specs outputs) const;

  Graph graph_;
  double flops_left_ = 1e16;
  std::string node_;
  /// Contents of inputs, and everything that follows from them.
  std::unordered_map<ValueId, TensorPtr> given_;
  std::optional<std::int64_t> seed_;
  std::int64_t dropouts_ = 0;
  ValueId step_;  ///< of dropout: the number of finished runs
};

}  // namespace triptych::onnx
