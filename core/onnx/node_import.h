// One node of a model during translation: its inputs as values of the graph, its attributes, and
// helpers that the translations of many operators share. An attribute or input that no one asks for
// is refused, so that nothing is ignored that would change a result.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/onnx/import_graph.h"
#include "core/onnx/model.h"
#include "core/ops/formula.h"

namespace triptych::onnx {

class NodeImport {
 public:
  NodeImport(const ModelNode& node, std::int64_t operator_set, ImportGraph& into,
             std::vector<ValueId> inputs)
      : graph(into),
        f(into),
        opset(operator_set),
        node_(node),
        inputs_(std::move(inputs)),
        asked_(inputs_.size()),
        used_(node.attributes.size()) {}

  ImportGraph& graph;
  const Formula f;
  const std::int64_t opset;

  const std::string& op() const { return node_.op; }
  std::size_t output_count() const { return node_.outputs.size(); }
  /// An output that somebody may read.
  bool wants(std::size_t output) const {
    return output < node_.outputs.size() && !node_.outputs[output].empty();
  }

  std::size_t input_count() const { return inputs_.size(); }
  bool has(std::size_t input) const {
    if (input < inputs_.size()) asked_[input] = true;
    return input < inputs_.size() && inputs_[input].valid();
  }
  /// Throws IoError when the input is left out.
  ValueId in(std::size_t input) const;
  /// All of them. None may be left out.
  std::vector<ValueId> all() const;
  const TensorSpec& spec(std::size_t input) const { return graph.spec(in(input)); }
  Shape shape(std::size_t input) const { return spec(input).shape; }
  std::int64_t rank(std::size_t input) const { return spec(input).shape.rank(); }
  DType dtype(std::size_t input) const { return spec(input).dtype; }

  /// Attributes. The default where the node has none. Throw IoError for another type.
  std::int64_t integer(std::string_view name, std::int64_t otherwise);
  bool flag(std::string_view name, bool otherwise = false);
  float number(std::string_view name, float otherwise);
  std::string text(std::string_view name, const std::string& otherwise);
  std::vector<std::int64_t> integers(std::string_view name);
  std::vector<float> numbers(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  TensorPtr tensor(std::string_view name);
  bool has_attribute(std::string_view name) const;
  /// For attributes that have no effect here.
  void ignore(std::string_view name) { find(name); }
  void ignore_input(std::size_t input) const { has(input); }

  /// An input that must be known before the model runs: from a constant, from shapes, or given.
  /// Throws UnsupportedError.
  TensorPtr known(std::size_t input) const;
  std::vector<std::int64_t> known_integers(std::size_t input) const;
  std::vector<float> known_numbers(std::size_t input) const;
  /// The same for an input of one element and any shape.
  double known_number(std::size_t input) const;
  std::int64_t known_integer(std::size_t input) const;
  /// From input `input`, or before operator set `since` from the attribute `name`. Nothing when
  /// there is neither.
  std::optional<std::vector<std::int64_t>> input_or_attribute(std::size_t input,
                                                              std::string_view name,
                                                              std::int64_t since);

  ValueId apply(OpPtr op, std::initializer_list<ValueId> inputs) const {
    return graph.emit_one(std::move(op), inputs);
  }
  ValueId apply(OpPtr op, const std::vector<ValueId>& inputs) const {
    return graph.emit(std::move(op), inputs).front();
  }
  ValueId transpose(ValueId x, std::vector<std::int64_t> perm) const;
  ValueId slice(ValueId x, std::int64_t axis, std::int64_t start, std::int64_t end,
                std::int64_t step = 1) const;
  ValueId reshape(ValueId x, Dims dims) const { return f.reshape(x, Shape(std::move(dims))); }
  /// The input in float32, Triptych's type for computation. Throws UnsupportedError for integers.
  ValueId f32(std::size_t input) const;
  /// `y` in the dtype of an input.
  ValueId like(std::size_t input, ValueId y) const { return cast(y, dtype(input)); }
  /// x itself when it has that dtype already.
  ValueId cast(ValueId x, DType to) const { return graph.spec(x).dtype == to ? x : f.cast(x, to); }
  /// A constant that holds one value everywhere.
  ValueId filled(const TensorSpec& spec, double value) const;

  /// Throws UnsupportedError: "Resize: attribute mode: cubic".
  [[noreturn]] void refuse(const std::string& reason) const;
  /// Throws IoError.
  [[noreturn]] void broken(const std::string& reason) const;
  void refuse_unless(bool holds, const std::string& reason) const {
    if (!holds) refuse(reason);
  }
  /// Throws UnsupportedError when an attribute or an input was not asked for.
  void finish() const;

 private:
  const NodeAttribute* find(std::string_view name);
  template <class T>
  const T* find_as(std::string_view name, const char* kind);

  const ModelNode& node_;
  std::vector<ValueId> inputs_;
  mutable std::vector<bool> asked_;
  std::vector<bool> used_;
};

/// The outputs of a node. There may be fewer than the node names, when the rest is never read.
using Translate = std::vector<ValueId> (*)(NodeImport&);

/// How one of ONNX's operators becomes Triptych's.
struct Translation {
  std::string_view op;
  Translate translate;
};
using TranslationList = std::vector<Translation>;

}  // namespace triptych::onnx
