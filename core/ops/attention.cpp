// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/attention_gradient.h"
#include "core/ops/formula.h"
#include "core/ops/matmul.h"
#include "core/ops/softmax.h"
#include "core/ops/transpose.h"

namespace triptych {
namespace {

constexpr int kOperands[] = {0, 1, 2};
constexpr const char* kNames[] = {"q", "k", "v"};

/// A tensor of either rank as [batch, heads, rows, size].
struct Heads {
  std::int64_t batch, heads, rows, size;

  /// Strides of a tensor of this rank.
  HeadStrides strides(std::int64_t rank) const {
    if (rank == 4) return {heads * rows * size, rows * size, size};
    return {heads * rows * size, size, heads * size};
  }
};

Heads heads_of(Specs inputs, std::size_t index, std::int64_t number) {
  const auto& shape = inputs[index].shape;
  const auto* name = kNames[index];
  if (shape.rank() == 4) {
    if (number != 0 && number != shape[1]) {
      throw_invalid(Attention::kName, fmt::format("{} is {}: its {} heads are not {}", name,
                                                  to_string(shape), shape[1], number));
    }
    return {shape[0], shape[1], shape[2], shape[3]};
  }
  if (number < 1 || shape[2] % number != 0) {
    throw_invalid(
        Attention::kName,
        fmt::format("{} is {}; rank 3 needs q_num_heads and kv_num_heads that divide the last "
                    "size, got {}",
                    name, to_string(shape), number));
  }
  return {shape[0], number, shape[1], shape[2] / number};
}

void require_operands(Specs inputs) {
  require_inputs(Attention::kName, inputs, 3, 3);
  const auto rank = inputs[0].shape.rank();
  if (rank != 3 && rank != 4) {
    throw_invalid(Attention::kName,
                  fmt::format("q is {}; its rank must be 3 or 4", to_string(inputs[0].shape)));
  }
  for (std::size_t i = 0; i < 3; ++i) {
    require_dtype(Attention::kName, inputs, i, DType::F32);
    require_rank(Attention::kName, inputs, i, rank);
    if (inputs[i].shape.elements() == 0) {
      throw_invalid(Attention::kName, fmt::format("{} is {}; it must not be empty", kNames[i],
                                                  to_string(inputs[i].shape)));
    }
  }
}

void require_fit(const Heads& q, const Heads& k, const Heads& v) {
  const auto fail = [](const char* what, std::int64_t a, std::int64_t b) {
    throw_invalid(Attention::kName, fmt::format("{}: {} and {}", what, a, b));
  };
  if (q.batch != k.batch) fail("q and k differ in batch entries", q.batch, k.batch);
  if (k.batch != v.batch) fail("k and v differ in batch entries", k.batch, v.batch);
  if (k.heads != v.heads) fail("k and v differ in heads", k.heads, v.heads);
  if (q.heads % k.heads != 0) fail("heads of k do not divide those of q", k.heads, q.heads);
  if (q.size != k.size) fail("heads of q and k differ in size", q.size, k.size);
  if (k.rows != v.rows) fail("k and v differ in rows", k.rows, v.rows);
}

ValueId product(OpEmitter& emitter, ValueId a, ValueId b, bool transpose_b) {
  MatMul op;
  op.transpose_b = transpose_b;
  return emitter.emit_one(make_op(op), {a, b});
}

ValueId swap_heads_and_rows(OpEmitter& emitter, ValueId x) {
  Transpose op;
  op.perm = {0, 2, 1, 3};
  return emitter.emit_one(make_op(op), {x});
}

/// 0 where query i sees key j, else -inf.
Tensor causal_mask(const AttentionGeometry& g) {
  Tensor mask(TensorSpec{DType::F32, Shape{g.queries, g.keys}});
  auto values = mask.as<float>();
  for (std::int64_t i = 0; i < g.queries; ++i) {
    for (auto j = i + 1; j < g.keys; ++j) {
      values[static_cast<std::size_t>(i * g.keys + j)] = -std::numeric_limits<float>::infinity();
    }
  }
  return mask;
}

}  // namespace

AttentionGeometry AttentionGeometry::of(const AttentionAttributes& op, Specs inputs) {
  require_operands(inputs);
  const auto q = heads_of(inputs, 0, op.q_num_heads);
  const auto k = heads_of(inputs, 1, op.kv_num_heads);
  const auto v = heads_of(inputs, 2, op.kv_num_heads);
  require_fit(q, k, v);
  const auto rank = inputs[0].shape.rank();
  const Heads y = {q.batch, q.heads, q.rows, v.size};
  const auto standard = static_cast<float>(1 / std::sqrt(static_cast<double>(q.size)));
  return {.batch = q.batch,
          .heads = q.heads,
          .kv_heads = k.heads,
          .queries = q.rows,
          .keys = k.rows,
          .head_size = q.size,
          .value_size = v.size,
          .is_causal = op.is_causal,
          .scale = op.scale == 0 ? standard : op.scale,
          .q = q.strides(rank),
          .k = k.strides(rank),
          .v = v.strides(rank),
          .y = y.strides(rank)};
}

double AttentionGeometry::pairs() const {
  const auto rows = static_cast<double>(queries), columns = static_cast<double>(keys);
  const auto square = std::min(rows, columns);
  const double each =
      is_causal ? square * (square + 1) / 2 + (rows - square) * columns : rows * columns;
  return static_cast<double>(batch * heads) * each;
}

TensorSpec AttentionGeometry::y_spec(std::int64_t rank) const {
  if (rank == 3) return {DType::F32, Shape{batch, queries, heads * value_size}};
  return {DType::F32, Shape{batch, heads, queries, value_size}};
}

ValueId split_heads(OpEmitter& emitter, ValueId x, std::int64_t heads) {
  const Formula f(emitter);
  const Shape shape = f.shape(x);
  if (shape.rank() == 4) return x;
  const auto split = f.reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
  return swap_heads_and_rows(emitter, split);
}

ValueId merge_heads(OpEmitter& emitter, ValueId x) {
  const Formula f(emitter);
  const Shape shape = f.shape(x);
  return f.reshape(swap_heads_and_rows(emitter, x), {shape[0], shape[2], shape[1] * shape[3]});
}

ValueId group_heads(OpEmitter& emitter, ValueId x, const AttentionGeometry& g) {
  if (g.heads == g.kv_heads) return x;
  const Formula f(emitter);
  const Shape shape = f.shape(x);
  return f.reshape(x, {shape[0], g.kv_heads, shape[1] / g.kv_heads, shape[2], shape[3]});
}

AttentionParts emit_probabilities(OpEmitter& emitter, const AttentionGeometry& g, Values inputs) {
  const Formula f(emitter);
  AttentionParts parts;
  parts.q = group_heads(emitter, split_heads(emitter, inputs[0], g.heads), g);
  parts.k = group_heads(emitter, split_heads(emitter, inputs[1], g.kv_heads), g);
  parts.v = group_heads(emitter, split_heads(emitter, inputs[2], g.kv_heads), g);
  const auto products = product(emitter, parts.q, parts.k, true);
  const double factor = g.scale;
  parts.scale = emitter.constant(from_doubles({DType::F32, {}}, {&factor, 1}));
  parts.scores = f.mul(products, parts.scale);
  if (g.is_causal) parts.scores = f.add(parts.scores, emitter.constant(causal_mask(g)));
  parts.probabilities = emitter.emit_one(make_op(Softmax{}), {parts.scores});
  return parts;
}

std::vector<double> attention_probabilities(const AttentionGeometry& g, std::int64_t i,
                                            const double* q, const double* k) {
  std::vector<double> p(static_cast<std::size_t>(g.seen(i)));
  for (std::size_t j = 0; j < p.size(); ++j) {
    double sum = 0;
    for (std::int64_t d = 0; d < g.head_size; ++d) {
      sum += q[d] * k[static_cast<std::int64_t>(j) * g.k.row + d];
    }
    p[j] = sum * double{g.scale};
  }
  const double largest = std::ranges::max(p);
  double sum = 0;
  for (auto& value : p) sum += value = std::exp(value - largest);
  for (auto& value : p) value /= sum;
  return p;
}

std::vector<TensorSpec> Attention::infer(Specs inputs) const {
  return {AttentionGeometry::of(*this, inputs).y_spec(inputs[0].shape.rank())};
}

std::vector<ValueId> Attention::expand(OpEmitter& emitter, Values inputs) const {
  const TensorSpec specs[] = {emitter.spec(inputs[0]), emitter.spec(inputs[1]),
                              emitter.spec(inputs[2])};
  const auto g = AttentionGeometry::of(*this, specs);
  const auto parts = emit_probabilities(emitter, g, inputs);
  const auto y = Formula(emitter).reshape(product(emitter, parts.probabilities, parts.v, false),
                                          {g.batch, g.heads, g.queries, g.value_size});
  return {specs[0].shape.rank() == 3 ? merge_heads(emitter, y) : y};
}

std::vector<ValueId> Attention::gradient(const GradientContext& context) const {
  const auto dy = context.output_gradients[0];
  if (!dy.valid()) return std::vector<ValueId>(3);
  AttentionGradient op;
  static_cast<AttentionAttributes&>(op) = *this;
  std::vector<ValueId> inputs(context.inputs.begin(), context.inputs.end());
  inputs.insert(inputs.end(), {context.outputs[0], dy});
  return context.emitter.emit(make_op(op), inputs);
}

double Attention::flops(Specs inputs, Specs) const {
  const auto g = AttentionGeometry::of(*this, inputs);
  // Two products, and per score a scaling and the five of Softmax.
  return g.pairs() * (2 * static_cast<double>(g.head_size + g.value_size) + 6);
}

void Attention::reference(std::span<const RefTensor> inputs, std::span<RefTensor> outputs) const {
  const TensorSpec specs[] = {inputs[0].spec, inputs[1].spec, inputs[2].spec};
  const auto g = AttentionGeometry::of(*this, specs);
  for (std::int64_t b = 0; b < g.batch; ++b) {
    for (std::int64_t h = 0; h < g.heads; ++h) {
      const auto shared = h / (g.heads / g.kv_heads);
      const double* k = inputs[1].values.data() + element_of(g.k, b, shared, 0);
      const double* v = inputs[2].values.data() + element_of(g.v, b, shared, 0);
      for (std::int64_t i = 0; i < g.queries; ++i) {
        const auto p =
            attention_probabilities(g, i, inputs[0].values.data() + element_of(g.q, b, h, i), k);
        double* y = outputs[0].values.data() + element_of(g.y, b, h, i);
        for (std::int64_t d = 0; d < g.value_size; ++d) {
          y[d] = 0;
          for (std::int64_t j = 0; j < g.seen(i); ++j) {
            y[d] += p[static_cast<std::size_t>(j)] * v[j * g.v.row + d];
          }
        }
      }
    }
  }
}

// For operands up to 1: a score is at most scale D with an error of D units of that, which counts
// in the numerator and in the sum. The sums over keys err by a unit per key and probability. Other
// signs of q and k would be other probabilities.
ErrorBound Attention::error_bound(Specs inputs) const {
  const auto g = AttentionGeometry::of(*this, inputs);
  const auto depth = static_cast<double>(g.head_size);
  const double score = 2 * (depth + 2) * depth * std::fabs(double{g.scale});
  const double terms = score + 2 * static_cast<double>(g.keys) + 16;
  return {.terms = terms, .ulps = 4, .absolute = 0x1p-24 * terms, .linear_in = 2};
}

void add_attention_ops(OpList& list) { list.push_back(make_op(Attention{})); }

}  // namespace triptych
