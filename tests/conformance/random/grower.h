// Grows one random graph from a seed. Every value is evaluated by the float64 references as soon as
// it is added, so that makers can choose operands by their values, too: no logarithm of a negative
// number, no overflow. The idea of valid-by-construction random graphs is NNSmith's (Liu et al.,
// "NNSmith: generating diverse and valid test cases for deep learning compilers", ASPLOS 2023).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/random.h"
#include "core/graph/graph.h"

namespace triptych::conformance {

/// A valid graph and the values of its inputs.
struct RandomGraph {
  Graph graph;
  std::unordered_map<ValueId, RefTensor> inputs;
};

struct GraphOptions {
  bool smooth = false;    ///< for gradients: differentiable, leaves without equal or special values
  bool large = false;     ///< tensors that are worth several threads
  bool products = false;  ///< many of the products that an array computes
};

/// Condition on an operand. The default is a small float32 tensor of any rank.
struct Want {
  std::vector<DType> dtypes = {DType::F32};
  std::int64_t min_rank = 0;
  std::int64_t max_rank = 4;
  double limit = 32;  ///< the largest magnitude of its elements
};

class Grower {
 public:
  Grower(std::uint64_t seed, const GraphOptions& options) : random_(seed, 0), options_(options) {}

  bool smooth() const { return options_.smooth; }

  /// Uniform in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + random_.below(high - low + 1);
  }
  bool chance(double probability) { return random_.uniform() < probability; }
  template <class T>
  T one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(random_.below(std::ssize(list)))];
  }
  Shape shape(std::int64_t min_rank, std::int64_t max_rank);
  /// The same axes as often as not of size 1 or, in front, missing.
  Shape broadcast_variant(const Shape& shape);

  const TensorSpec& spec(ValueId value) const { return graph_.spec(value); }
  const Shape& shape_of(ValueId value) const { return spec(value).shape; }
  double least(ValueId value) const;
  double largest_magnitude(ValueId value) const { return magnitudes_[value.index()].second; }
  double smallest_magnitude(ValueId value) const { return magnitudes_[value.index()].first; }
  const std::vector<double>& values(ValueId value) const { return values_[value.index()].values; }

  /// A value that exists and suits, the newer the more likely. Invalid when there is none.
  ValueId existing(const std::function<bool(ValueId)>& suits);
  /// An operand like this: mostly one that exists, else a new leaf.
  ValueId operand(const Want& want = {});
  ValueId operand_of(const TensorSpec& spec, double limit = 32);
  ValueId operand_of(const Shape& shape, double limit = 32) {
    return operand_of({DType::F32, shape}, limit);
  }
  /// An operand of x's dtype with a shape that broadcasts with x's.
  ValueId partner(ValueId x);
  /// A float32 picture [N, C, (H,) W].
  ValueId image(double limit = 32);

  /// A new input, constant or state with values in [low, high).
  ValueId leaf(const TensorSpec& spec, double low, double high);
  ValueId constant(const TensorSpec& spec, double low, double high);
  ValueId scalar(DType dtype, double value);
  ValueId state(const TensorSpec& spec, double low, double high);

  /// Appends a node and evaluates it. Afterwards nothing reads the old values of states that it
  /// updates.
  std::vector<ValueId> add(const OpPtr& op, const std::vector<ValueId>& inputs);
  /// The same for an operator with one output.
  ValueId add_one(const OpPtr& op, const std::vector<ValueId>& inputs) {
    return add(op, inputs).front();
  }
  /// No later node reads `value`, nor is it an output.
  void retire(ValueId value) { retired_[version_[value.index()].index()] = true; }

  std::size_t node_count() const { return graph_.nodes().size(); }
  const Graph& graph() const { return graph_; }
  /// Marks unread values, and some more, as outputs.
  RandomGraph finish();

 private:
  Tensor fill(const TensorSpec& spec, double low, double high);
  void record(ValueId value, RefTensor tensor, bool usable);
  std::int64_t most_elements() const { return options_.large ? 100'000 : 2048; }
  std::int64_t most_leaf_elements() const { return options_.large ? 40'000 : 640; }
  std::int64_t stretch() { return options_.large ? between(1, 8) : 1; }
  bool broadcasts(const Shape& a, const Shape& b) const;
  bool is_retired(ValueId value) const { return retired_[version_[value.index()].index()]; }

  RandomStream random_;
  GraphOptions options_;
  Graph graph_;
  std::unordered_map<ValueId, RefTensor> inputs_;
  std::vector<RefTensor> values_;
  std::vector<std::pair<double, double>> magnitudes_;  ///< smallest and largest
  std::vector<ValueId> version_;                       ///< the value that owns its memory
  std::vector<bool> retired_;                          ///< per version
  std::vector<ValueId> pool_;                          ///< values that makers may read
  int leaf_count_ = 0;
};

}  // namespace triptych::conformance
