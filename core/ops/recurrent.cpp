// SPDX-License-Identifier: Apache-2.0
#include "core/ops/recurrent.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/ops/concat.h"
#include "core/ops/formula.h"
#include "core/ops/matmul.h"
#include "core/ops/slice.h"

namespace triptych {
namespace {

std::vector<UnaryKind> parse_activations(std::string_view text) {
  std::vector<UnaryKind> kinds;
  while (true) {
    const auto comma = text.find(", ");
    const auto name = text.substr(0, comma);
    const auto kind = recurrent_activation(name);
    if (!kind)
      throw_invalid(Recurrent::kName,
                    fmt::format("the activation \"{}\"; it must be Sigmoid, Tanh or Relu", name));
    kinds.push_back(*kind);
    if (comma == std::string_view::npos) return kinds;
    text.remove_prefix(comma + 2);
  }
}

void require_shape(Specs inputs, std::size_t index, const Shape& shape) {
  require_dtype(Recurrent::kName, inputs, index, DType::F32);
  if (inputs[index].shape == shape) return;
  throw_invalid(Recurrent::kName, fmt::format("input {} is {}; it must be {}", index,
                                              to_string(inputs[index].shape), to_string(shape)));
}

/// The steps as operators.
class Expansion {
 public:
  Expansion(const Recurrent& op, const RecurrentGeometry& g, OpEmitter& emitter, Values inputs)
      : op_(op), g_(g), emitter_(emitter), f_(emitter), inputs_(inputs) {}

  std::vector<ValueId> run() {
    h_ = inputs_[3];
    if (g_.cell == RecurrentCell::Lstm) c_ = inputs_[4];
    const auto rows = f_.reshape(inputs_[0], {g_.steps * g_.batch, g_.gates * g_.hidden});
    std::vector<ValueId> y(static_cast<std::size_t>(g_.steps));
    for (std::int64_t i = 0; i < g_.steps; ++i) {
      const auto t = op_.reverse ? g_.steps - 1 - i : i;
      step(slice(rows, 0, t * g_.batch, (t + 1) * g_.batch));
      y[static_cast<std::size_t>(t)] = f_.reshape(h_, {1, g_.batch, g_.hidden});
    }
    std::vector<ValueId> outputs = {emitter_.emit(make_op(Concat{}), y).front(), h_};
    if (g_.cell == RecurrentCell::Lstm) outputs.push_back(c_);
    return outputs;
  }

 private:
  void step(ValueId x) {
    if (g_.cell == RecurrentCell::Lstm) return lstm(x);
    const auto own = projected();
    h_ = g_.cell == RecurrentCell::Gru ? gru(x, own) : activated(0, f_.add(x, own));
  }

  void lstm(ValueId x) {
    const auto sum = f_.add(x, projected());
    const auto gate_of = [&](std::int64_t g, ValueId seen) {
      auto value = gate(sum, g);
      if (g_.has_peepholes) value = f_.add(value, f_.mul(gate(inputs_[5], g), seen));
      return activated(0, value);
    };
    const auto fresh = activated(1, gate(sum, 3));
    c_ = f_.add(f_.mul(gate_of(2, c_), c_), f_.mul(gate_of(0, c_), fresh));
    h_ = f_.mul(gate_of(1, c_), activated(2, c_));
  }

  ValueId gru(ValueId x, ValueId own) {
    const auto gate_of = [&](std::int64_t g) {
      return activated(0, f_.add(gate(x, g), gate(own, g)));
    };
    const auto z = gate_of(0), r = gate_of(1);
    auto candidate = f_.mul(r, gate(own, 2));
    if (!op_.linear_before_reset) {
      const auto from = 2 * g_.hidden, to = 3 * g_.hidden;
      const auto reset = product(f_.mul(r, h_), slice(inputs_[1], 0, from, to));
      candidate = f_.add(reset, slice(inputs_[2], 0, from, to));
    }
    const auto h = activated(1, f_.add(gate(x, 2), candidate));
    return f_.add(f_.mul(f_.sub(1.0, z), h), f_.mul(z, h_));
  }

  ValueId projected() const { return f_.add(product(h_, inputs_[1]), inputs_[2]); }
  ValueId product(ValueId a, ValueId b) const {
    MatMul op;
    op.transpose_b = true;
    return emitter_.emit_one(make_op(op), {a, b});
  }
  ValueId activated(std::size_t number, ValueId x) const {
    return f_.apply(g_.activations[number], x);
  }
  ValueId slice(ValueId x, std::int64_t axis, std::int64_t begin, std::int64_t end) const {
    Slice op;
    op.axes = {axis};
    op.starts = {begin};
    op.ends = {end};
    return emitter_.emit_one(make_op(op), {x});
  }
  /// Gate `g` of the last axis.
  ValueId gate(ValueId x, std::int64_t g) const {
    return slice(x, -1, g * g_.hidden, (g + 1) * g_.hidden);
  }

  const Recurrent& op_;
  const RecurrentGeometry& g_;
  OpEmitter& emitter_;
  Formula f_;
  Values inputs_;
  ValueId h_, c_;
};

double activated(UnaryKind kind, double x) {
  if (kind == UnaryKind::Tanh) return std::tanh(x);
  return kind == UnaryKind::Relu ? std::max(x, 0.0) : 1 / (1 + std::exp(-x));
}

/// One batch entry in float64.
class ReferenceRow {
 public:
  ReferenceRow(const Recurrent& op, const RecurrentGeometry& g, std::span<const RefTensor> inputs,
               std::int64_t entry)
      : op_(op), g_(g), inputs_(inputs), entry_(entry) {
    h = state(3);
    if (g.cell == RecurrentCell::Lstm) c = state(4);
  }

  void step(std::int64_t t) {
    x_ = &inputs_[0].values[index(t * g_.batch + entry_, g_.gates * g_.hidden)];
    const auto before = h;
    for (std::int64_t j = 0; j < g_.hidden; ++j) h[index(j)] = next(before, j);
  }

  std::vector<double> h, c;

 private:
  static std::size_t index(std::int64_t i, std::int64_t size = 1) {
    return static_cast<std::size_t>(i * size);
  }
  std::vector<double> state(std::size_t input) const {
    const auto begin = inputs_[input].values.begin() + entry_ * g_.hidden;
    return {begin, begin + g_.hidden};
  }
  double own(const std::vector<double>& before, std::int64_t row) const {
    double sum = inputs_[2].values[index(row)];
    for (std::int64_t k = 0; k < g_.hidden; ++k)
      sum += before[index(k)] * inputs_[1].values[index(row * g_.hidden + k)];
    return sum;
  }
  double gate(const std::vector<double>& before, std::int64_t g, std::int64_t j,
              double seen = 0) const {
    const auto row = g * g_.hidden + j;
    const double peep = g_.has_peepholes ? inputs_[5].values[index(row)] * seen : 0;
    return activated(g_.activations[0], x_[row] + own(before, row) + peep);
  }

  double next(const std::vector<double>& before, std::int64_t j) {
    if (g_.cell == RecurrentCell::Rnn) return gate(before, 0, j);
    if (g_.cell == RecurrentCell::Gru) return gru(before, j);
    const auto row = 3 * g_.hidden + j;
    const double old = c[index(j)];
    const double fresh = activated(g_.activations[1], x_[row] + own(before, row));
    c[index(j)] = gate(before, 2, j, old) * old + gate(before, 0, j, old) * fresh;
    return gate(before, 1, j, c[index(j)]) * activated(g_.activations[2], c[index(j)]);
  }

  double gru(const std::vector<double>& before, std::int64_t j) const {
    const auto row = 2 * g_.hidden + j;
    const double z = gate(before, 0, j);
    double candidate = gate(before, 1, j) * own(before, row);
    if (!op_.linear_before_reset) {
      auto reset = before;
      for (std::int64_t k = 0; k < g_.hidden; ++k) reset[index(k)] *= gate(before, 1, k);
      candidate = own(reset, row);
    }
    return (1 - z) * activated(g_.activations[1], x_[row] + candidate) + z * before[index(j)];
  }

  const Recurrent& op_;
  const RecurrentGeometry& g_;
  std::span<const RefTensor> inputs_;
  std::int64_t entry_;
  const double* x_ = nullptr;
};

}  // namespace

const RecurrentRule& recurrent_rule(std::string_view cell) {
  using enum UnaryKind;
  static const std::vector<RecurrentRule> rules = {
      {"RNN", RecurrentCell::Rnn, 1, {Tanh}},
      {"GRU", RecurrentCell::Gru, 3, {Sigmoid, Tanh}},
      {"LSTM", RecurrentCell::Lstm, 4, {Sigmoid, Tanh, Tanh}},
  };
  const auto found = std::ranges::find(rules, cell, &RecurrentRule::name);
  if (found == rules.end())
    throw_invalid(Recurrent::kName,
                  fmt::format("cell is \"{}\"; it must be RNN, GRU or LSTM", cell));
  return *found;
}

std::optional<UnaryKind> recurrent_activation(std::string_view name) {
  if (name == "Sigmoid") return UnaryKind::Sigmoid;
  if (name == "Tanh") return UnaryKind::Tanh;
  if (name == "Relu") return UnaryKind::Relu;
  return {};
}

RecurrentGeometry RecurrentGeometry::of(const Recurrent& op, Specs inputs) {
  const auto& rule = recurrent_rule(op.cell);
  const bool is_lstm = rule.cell == RecurrentCell::Lstm;
  require_inputs(Recurrent::kName, inputs, is_lstm ? 5 : 4, is_lstm ? 6 : 4);
  require_rank(Recurrent::kName, inputs, 0, 3);
  require_rank(Recurrent::kName, inputs, 3, 2);
  const auto& x = inputs[0].shape;
  RecurrentGeometry g = {.cell = rule.cell,
                         .steps = x[0],
                         .batch = x[1],
                         .gates = rule.gates,
                         .hidden = inputs[3].shape[1],
                         .has_peepholes = inputs.size() > 5};
  if (x.elements() == 0 || g.hidden == 0)
    throw_invalid(Recurrent::kName, fmt::format("x is {}; it must not be empty", to_string(x)));
  const auto rows = g.gates * g.hidden;
  const Shape state = {g.batch, g.hidden};
  require_shape(inputs, 0, {g.steps, g.batch, rows});
  require_shape(inputs, 1, {rows, g.hidden});
  require_shape(inputs, 2, {rows});
  require_shape(inputs, 3, state);
  if (is_lstm) require_shape(inputs, 4, state);
  if (g.has_peepholes) require_shape(inputs, 5, {3 * g.hidden});
  g.activations = op.activations.empty() ? rule.activations : parse_activations(op.activations);
  const auto wanted = rule.activations.size();
  if (g.activations.size() != wanted)
    throw_invalid(Recurrent::kName, fmt::format("{} has {} activations, not \"{}\"", op.cell,
                                                wanted, op.activations));
  return g;
}

std::vector<TensorSpec> Recurrent::infer(Specs inputs) const {
  const auto g = RecurrentGeometry::of(*this, inputs);
  const TensorSpec state = {DType::F32, {g.batch, g.hidden}};
  std::vector<TensorSpec> outputs = {{DType::F32, {g.steps, g.batch, g.hidden}}, state};
  if (g.cell == RecurrentCell::Lstm) outputs.push_back(state);
  return outputs;
}

std::vector<ValueId> Recurrent::expand(OpEmitter& emitter, Values inputs) const {
  std::vector<TensorSpec> specs;
  for (const auto input : inputs) specs.push_back(emitter.spec(input));
  const auto g = RecurrentGeometry::of(*this, specs);
  return Expansion(*this, g, emitter, inputs).run();
}

double Recurrent::flops(Specs inputs, Specs) const {
  const auto g = RecurrentGeometry::of(*this, inputs);
  // The products, and per hidden unit the sums, gates and activations.
  const auto per_unit = static_cast<double>(g.gates) * (2 * static_cast<double>(g.hidden) + 3) + 6;
  return static_cast<double>(g.steps * g.batch * g.hidden) * per_unit;
}

void Recurrent::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  std::vector<TensorSpec> specs;
  for (const auto& input : inputs) specs.push_back(input.spec);
  const auto g = RecurrentGeometry::of(*this, specs);
  for (std::int64_t b = 0; b < g.batch; ++b) {
    ReferenceRow row(*this, g, inputs, b);
    for (std::int64_t i = 0; i < g.steps; ++i) {
      const auto t = reverse ? g.steps - 1 - i : i;
      row.step(t);
      std::ranges::copy(row.h, outputs[0].values.begin() + (t * g.batch + b) * g.hidden);
    }
    std::ranges::copy(row.h, outputs[1].values.begin() + b * g.hidden);
    if (outputs.size() > 2) std::ranges::copy(row.c, outputs[2].values.begin() + b * g.hidden);
  }
}

// The sum of a gate errs by a unit per term of magnitude 1. With rows of r that sum to 1, an error
// of h goes into the next step's sums as it is, that of a cell is carried on: it grows with each
// step. Activations have slopes up to 1.
ErrorBound Recurrent::error_bound(Specs inputs) const {
  const auto g = RecurrentGeometry::of(*this, inputs);
  const auto steps = static_cast<double>(g.steps);
  const double terms = 2 * static_cast<double>(g.hidden) + 32;
  return {.terms = 0, .ulps = 4, .absolute = 0x1p-24 * terms * steps * steps};
}

void add_recurrent_ops(OpList& list) { list.push_back(make_op(Recurrent{})); }

}  // namespace triptych
