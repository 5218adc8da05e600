// Recurrent layers in one or both directions, a Recurrent for each: RNN, GRU and LSTM.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/onnx/node_import.h"
#include "core/ops/concat.h"
#include "core/ops/matmul.h"
#include "core/ops/recurrent.h"

namespace triptych::onnx {
namespace {

constexpr std::size_t kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kH = 5, kC = 6, kPeepholes = 7;

/// Sizes and attributes of a layer with so many gates in a cell.
struct Layer {
  NodeImport& n;
  std::int64_t gates;
  std::int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1;
  bool backward = false, batch_first = false;
  std::vector<std::string> activations;  ///< empty: the defaults
  ValueId x;                             ///< [steps, batch, inputs]

  Layer(NodeImport& node, const RecurrentRule& rule);

  /// Input `input` of direction `d`, with directions as first axis.
  ValueId part(std::size_t input, std::int64_t d) const {
    const Shape shape = n.shape(input);
    return n.reshape(n.slice(n.f32(input), 0, d, d + 1),
                     Dims(shape.dims().begin() + 1, shape.dims().end()));
  }
  /// The initial state of direction `d`: [batch, hidden].
  ValueId state(std::size_t input, std::int64_t d) const {
    if (!n.has(input)) return n.filled({DType::F32, {batch, hidden}}, 0);
    const auto value = batch_first ? n.transpose(n.f32(input), {1, 0, 2}) : n.f32(input);
    return n.reshape(n.slice(value, 0, d, d + 1), {batch, hidden});
  }
  /// Both biases of direction `d`, [gates * hidden] each.
  std::pair<ValueId, ValueId> biases(std::int64_t d) const {
    const auto half = gates * hidden;
    if (!n.has(kB)) {
      const auto zero = n.filled({DType::F32, {half}}, 0);
      return {zero, zero};
    }
    const auto both = part(kB, d);
    return {n.slice(both, 0, 0, half), n.slice(both, 0, half, 2 * half)};
  }
  /// The activations of direction `d`, as Recurrent spells them.
  std::string activations_of(std::int64_t d) const {
    const auto size = std::ssize(activations) / directions;
    const auto begin = activations.begin() + d * size;
    return fmt::format("{}", fmt::join(begin, begin + size, ", "));
  }
};

Layer::Layer(NodeImport& node, const RecurrentRule& rule) : n(node), gates(rule.gates) {
  const auto direction = n.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    n.broken("attribute direction is unknown");
  }
  directions = direction == "bidirectional" ? 2 : 1;
  backward = direction == "reverse";
  batch_first = n.flag("layout");
  n.refuse_unless(!n.has_attribute("clip") && !n.has_attribute("activation_alpha") &&
                      !n.has_attribute("activation_beta"),
                  "attributes clip, activation_alpha and activation_beta");
  activations = n.texts("activations");
  const auto wanted = rule.activations.size() * static_cast<std::size_t>(directions);
  if (!activations.empty() && activations.size() != wanted) {
    n.broken("it has another number of activations");
  }
  for (const auto& name : activations)
    n.refuse_unless(recurrent_activation(name).has_value(), "the activation " + name);
  if (n.rank(kX) != 3 || n.rank(kW) != 3 || n.rank(kR) != 3) n.broken("its operands do not fit");
  x = batch_first ? n.transpose(n.f32(kX), {1, 0, 2}) : n.f32(kX);
  const Shape shape = n.graph.spec(x).shape;
  steps = shape[0];
  batch = shape[1];
  inputs = shape[2];
  hidden = n.shape(kR)[2];
  const auto given = n.integer("hidden_size", hidden);
  const auto rows = gates * hidden;
  if (given != hidden || n.shape(kW) != Shape{directions, rows, inputs} ||
      n.shape(kR) != Shape{directions, rows, hidden} || shape.elements() == 0) {
    n.broken("its operands do not fit");
  }
  if (!n.has(kLengths)) return;
  const auto lengths = n.known_integers(kLengths);
  n.refuse_unless(std::ranges::all_of(lengths, [&](std::int64_t l) { return l == steps; }),
                  "sequences of several lengths");
}

ValueId input_product(const Layer& layer, std::int64_t d, ValueId input_bias) {
  const auto& n = layer.n;
  MatMul op;
  op.transpose_b = true;
  const auto flat = n.reshape(layer.x, {layer.steps * layer.batch, layer.inputs});
  const auto product = n.apply(make_op(op), {flat, layer.part(kW, d)});
  return n.reshape(n.f.add(product, input_bias),
                   {layer.steps, layer.batch, layer.gates * layer.hidden});
}

/// Y, Y_h and, of an LSTM, Y_c.
std::vector<ValueId> translated(NodeImport& n, const Recurrent& cell) {
  const auto& rule = recurrent_rule(cell.cell);
  const Layer layer(n, rule);
  const bool has_cell = rule.cell == RecurrentCell::Lstm;
  std::vector<std::vector<ValueId>> parts(has_cell ? 3 : 2);  // by output, of each direction
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    const auto [input_bias, hidden_bias] = layer.biases(d);
    std::vector inputs = {input_product(layer, d, input_bias), layer.part(kR, d), hidden_bias,
                          layer.state(kH, d)};
    if (has_cell) inputs.push_back(layer.state(kC, d));
    if (n.has(kPeepholes)) inputs.push_back(layer.part(kPeepholes, d));
    Recurrent op = cell;
    op.activations = layer.activations_of(d);
    op.reverse = layer.backward || d == 1;
    const auto outputs = n.graph.emit(make_op(op), inputs);
    parts[0].push_back(n.reshape(outputs[0], {layer.steps, 1, layer.batch, layer.hidden}));
    for (std::size_t i = 1; i < outputs.size(); ++i)
      parts[i].push_back(n.reshape(outputs[i], {1, layer.batch, layer.hidden}));
  }
  std::vector<ValueId> results;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Concat op;
    op.axis = i == 0 ? 1 : 0;
    const auto joined = n.apply(make_op(op), parts[i]);
    const std::vector<std::int64_t> batch_first =
        i == 0 ? std::vector<std::int64_t>{2, 0, 1, 3} : std::vector<std::int64_t>{1, 0, 2};
    results.push_back(n.like(kX, layer.batch_first ? n.transpose(joined, batch_first) : joined));
  }
  return results;
}

std::vector<ValueId> rnn(NodeImport& n) {
  Recurrent op;
  op.cell = "RNN";
  return translated(n, op);
}

std::vector<ValueId> gru(NodeImport& n) {
  Recurrent op;
  op.cell = "GRU";
  op.linear_before_reset = n.flag("linear_before_reset");
  return translated(n, op);
}

std::vector<ValueId> lstm(NodeImport& n) {
  n.refuse_unless(!n.flag("input_forget"), "attribute input_forget");
  return translated(n, Recurrent{});
}

}  // namespace

void add_recurrent_translations(TranslationList& list) {
  list.insert(list.end(), {{"RNN", rnn}, {"GRU", gru}, {"LSTM", lstm}});
}

}  // namespace triptych::onnx
