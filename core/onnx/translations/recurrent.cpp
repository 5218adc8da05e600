// Recurrent layers, written out step by step: RNN, GRU and LSTM in one or both directions.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "core/onnx/node_import.h"
#include "core/ops/concat.h"
#include "core/ops/matmul.h"

namespace triptych::onnx {
namespace {

constexpr std::size_t kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kH = 5, kC = 6, kPeepholes = 7;

ValueId times_transposed(const NodeImport& n, ValueId a, ValueId b) {
  MatMul op;
  op.transpose_b = true;
  return n.apply(make_op(op), {a, b});
}

ValueId activated(const NodeImport& n, const std::string& name, ValueId x) {
  if (name == "Sigmoid") return n.f.apply(UnaryKind::Sigmoid, x);
  if (name == "Tanh") return n.f.apply(UnaryKind::Tanh, x);
  if (name == "Relu") return n.f.apply(UnaryKind::Relu, x);
  n.refuse(fmt::format("the activation {}", name));
}

/// Sizes and attributes of a layer with so many gates in a cell.
struct Layer {
  NodeImport& n;
  std::int64_t gates;
  std::int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1;
  bool backward = false, batch_first = false;
  std::vector<std::string> activations;
  ValueId x;  ///< [steps, batch, inputs]

  Layer(NodeImport& node, std::int64_t cell_gates, const std::vector<std::string>& defaults);

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
  const std::string& activation(std::int64_t d, std::size_t i) const {
    return activations[static_cast<std::size_t>(d) *
                           (activations.size() / static_cast<std::size_t>(directions)) +
                       i];
  }
  /// Gate `g` of [batch, gates * hidden].
  ValueId gate(ValueId all, std::int64_t g) const {
    return n.slice(all, -1, g * hidden, (g + 1) * hidden);
  }
};

Layer::Layer(NodeImport& node, std::int64_t cell_gates, const std::vector<std::string>& defaults)
    : n(node), gates(cell_gates) {
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
  if (activations.empty()) {
    for (std::int64_t d = 0; d < directions; ++d) {
      activations.insert(activations.end(), defaults.begin(), defaults.end());
    }
  }
  if (activations.size() != defaults.size() * static_cast<std::size_t>(directions)) {
    n.broken("it has another number of activations");
  }
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

/// Hidden state and, of an LSTM, cell.
struct State {
  ValueId h, c;
};

/// One direction of a layer. Every step reads its parts.
struct Direction {
  std::int64_t index = 0;
  ValueId weights, bias;  ///< of the hidden state
  ValueId peepholes;
};

/// Runs `cell(direction, step's input projection, state)` along the sequence. Outputs Y, Y_h, Y_c.
template <class Cell>
std::vector<ValueId> unrolled(const Layer& layer, bool has_cell, const Cell& cell) {
  const auto& n = layer.n;
  const auto flat = n.reshape(layer.x, {layer.steps * layer.batch, layer.inputs});
  std::vector<ValueId> sequences, last, last_cells;
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    const auto [input_bias, hidden_bias] = layer.biases(d);
    const auto projected = n.f.add(times_transposed(n, flat, layer.part(kW, d)), input_bias);
    const Direction direction{d, layer.part(kR, d), hidden_bias,
                              n.has(kPeepholes) ? layer.part(kPeepholes, d) : ValueId{}};
    State state{layer.state(kH, d), has_cell ? layer.state(kC, d) : ValueId{}};
    const bool backward = layer.backward || d == 1;
    std::vector<ValueId> outputs(static_cast<std::size_t>(layer.steps));
    for (std::int64_t i = 0; i < layer.steps; ++i) {
      const auto t = backward ? layer.steps - 1 - i : i;
      state = cell(direction, n.slice(projected, 0, t * layer.batch, (t + 1) * layer.batch), state);
      outputs[static_cast<std::size_t>(t)] = n.reshape(state.h, {1, 1, layer.batch, layer.hidden});
    }
    sequences.push_back(n.apply(make_op(Concat{}), outputs));  // [steps, 1, batch, hidden]
    last.push_back(n.reshape(state.h, {1, layer.batch, layer.hidden}));
    if (has_cell) last_cells.push_back(n.reshape(state.c, {1, layer.batch, layer.hidden}));
  }
  const auto joined = [&](const std::vector<ValueId>& parts, std::int64_t axis) {
    Concat op;
    op.axis = axis;
    return n.apply(make_op(op), parts);
  };
  const auto turned = [&](ValueId y, std::vector<std::int64_t> perm) {
    return n.like(kX, layer.batch_first ? n.transpose(y, std::move(perm)) : y);
  };
  std::vector<ValueId> results = {turned(joined(sequences, 1), {2, 0, 1, 3}),
                                  turned(joined(last, 0), {1, 0, 2})};
  if (has_cell) results.push_back(turned(joined(last_cells, 0), {1, 0, 2}));
  return results;
}

std::vector<ValueId> rnn(NodeImport& n) {
  const Layer layer(n, 1, {"Tanh"});
  return unrolled(layer, false, [&](const Direction& d, ValueId x, const State& state) {
    const auto own = n.f.add(times_transposed(n, state.h, d.weights), d.bias);
    return State{activated(n, layer.activation(d.index, 0), n.f.add(x, own)), {}};
  });
}

/// Gates: update z, reset r, hidden h.
std::vector<ValueId> gru(NodeImport& n) {
  const bool linear = n.flag("linear_before_reset");
  const Layer layer(n, 3, {"Sigmoid", "Tanh"});
  return unrolled(layer, false, [&](const Direction& d, ValueId x, const State& state) {
    const auto own = n.f.add(times_transposed(n, state.h, d.weights), d.bias);
    const auto gate = [&](std::int64_t g) {
      return activated(n, layer.activation(d.index, 0),
                       n.f.add(layer.gate(x, g), layer.gate(own, g)));
    };
    const auto z = gate(0), r = gate(1);
    const auto from = 2 * layer.hidden, to = 3 * layer.hidden;
    auto candidate = n.f.mul(r, layer.gate(own, 2));
    if (!linear) {
      const auto reset = times_transposed(n, n.f.mul(r, state.h), n.slice(d.weights, 0, from, to));
      candidate = n.f.add(reset, n.slice(d.bias, 0, from, to));
    }
    const auto h = activated(n, layer.activation(d.index, 1), n.f.add(layer.gate(x, 2), candidate));
    return State{n.f.add(n.f.mul(n.f.sub(1.0, z), h), n.f.mul(z, state.h)), {}};
  });
}

/// Gates: input i, output o, forget f, cell c.
std::vector<ValueId> lstm(NodeImport& n) {
  n.refuse_unless(!n.flag("input_forget"), "attribute input_forget");
  const Layer layer(n, 4, {"Sigmoid", "Tanh", "Tanh"});
  return unrolled(layer, true, [&](const Direction& d, ValueId x, const State& state) {
    const auto own = n.f.add(times_transposed(n, state.h, d.weights), d.bias);
    const auto sum = n.f.add(x, own);
    /// Peepholes have the order i, o, f.
    const auto gate = [&](std::int64_t g, ValueId seen) {
      auto value = layer.gate(sum, g);
      if (d.peepholes.valid()) value = n.f.add(value, n.f.mul(layer.gate(d.peepholes, g), seen));
      return activated(n, layer.activation(d.index, 0), value);
    };
    const auto fresh = activated(n, layer.activation(d.index, 1), layer.gate(sum, 3));
    const auto c = n.f.add(n.f.mul(gate(2, state.c), state.c), n.f.mul(gate(0, state.c), fresh));
    const auto h = n.f.mul(gate(1, c), activated(n, layer.activation(d.index, 2), c));
    return State{h, c};
  });
}

}  // namespace

void add_recurrent_translations(TranslationList& list) {
  list.insert(list.end(), {{"RNN", rnn}, {"GRU", gru}, {"LSTM", lstm}});
}

}  // namespace triptych::onnx
