// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention_gradient.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/ops/formula.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"

namespace triptych {
namespace {

AttentionGeometry geometry_of(const AttentionAttributes& op, const OpEmitter& emitter,
                              Values inputs) {
  const TensorSpec specs[] = {emitter.spec(inputs[0]), emitter.spec(inputs[1]),
                              emitter.spec(inputs[2])};
  return AttentionGeometry::of(op, specs);
}

AttentionGeometry geometry_of(const AttentionAttributes& op, std::span<const RefTensor> inputs) {
  const TensorSpec specs[] = {inputs[0].spec, inputs[1].spec, inputs[2].spec};
  return AttentionGeometry::of(op, specs);
}

Attention plain(const AttentionAttributes& op) {
  Attention attention;
  static_cast<AttentionAttributes&>(attention) = op;
  return attention;
}

Shape sums_shape(const AttentionGeometry& g) { return {g.batch, g.heads, g.queries}; }

/// A node whose gradients are wanted for all of its inputs.
struct Forward {
  std::vector<ValueId> inputs;
  ValueId output;
};

std::vector<ValueId> gradients_of(OpEmitter& emitter, const Op& op, const Forward& node,
                                  ValueId dy) {
  constexpr bool wanted[] = {true, true};
  return op.gradient(
      {emitter, node.inputs, {&node.output, 1}, {&dy, 1}, {wanted, node.inputs.size()}});
}

/// dq, dk or dv as its tensor has its heads.
ValueId shaped_as(OpEmitter& emitter, ValueId gradient, ValueId like, std::int64_t heads) {
  const Formula f(emitter);
  const Shape to = f.shape(like);
  if (to.rank() == 4) return f.reshape(gradient, to);
  const auto split = f.reshape(gradient, {to[0], heads, to[1], to[2] / heads});
  return merge_heads(emitter, split);
}

/// A head of q with its k and v, and their places in the tensors.
struct HeadPlace {
  const AttentionGeometry& g;
  std::int64_t batch, head;

  std::int64_t shared() const { return head / (g.heads / g.kv_heads); }
  std::size_t q(std::int64_t i) const { return element_of(g.q, batch, head, i); }
  std::size_t k(std::int64_t j) const { return element_of(g.k, batch, shared(), j); }
  std::size_t v(std::int64_t j) const { return element_of(g.v, batch, shared(), j); }
  std::size_t y(std::int64_t i) const { return element_of(g.y, batch, head, i); }
};

/// Calls row(place, i) for each query of each head.
template <class Row>
void for_each_query(const AttentionGeometry& g, const Row& row) {
  for (std::int64_t b = 0; b < g.batch; ++b) {
    for (std::int64_t h = 0; h < g.heads; ++h) {
      for (std::int64_t i = 0; i < g.queries; ++i) row(HeadPlace{g, b, h}, i);
    }
  }
}

/// Adds the terms of one query to the gradients.
void add_query(const HeadPlace& place, std::int64_t i, std::span<const RefTensor> inputs,
               std::span<RefTensor> outputs) {
  const auto& g = place.g;
  const double *q = &inputs[0].values[place.q(i)], *dy = &inputs[4].values[place.y(i)];
  const auto p = attention_probabilities(g, i, q, &inputs[1].values[place.k(0)]);
  std::vector<double> dp(p.size());
  double mean = 0;
  for (std::size_t j = 0; j < p.size(); ++j) {
    const double* v = &inputs[2].values[place.v(static_cast<std::int64_t>(j))];
    for (std::int64_t d = 0; d < g.value_size; ++d) dp[j] += dy[d] * v[d];
    mean += p[j] * dp[j];
  }
  double* dq = &outputs[0].values[place.q(i)];
  for (std::size_t j = 0; j < p.size(); ++j) {
    const auto key = static_cast<std::int64_t>(j);
    const double ds = double{g.scale} * p[j] * (dp[j] - mean);
    const double* k = &inputs[1].values[place.k(key)];
    double *dk = &outputs[1].values[place.k(key)], *dv = &outputs[2].values[place.v(key)];
    for (std::int64_t d = 0; d < g.head_size; ++d) {
      dq[d] += ds * k[d];
      dk[d] += ds * q[d];
    }
    for (std::int64_t d = 0; d < g.value_size; ++d) dv[d] += p[j] * dy[d];
  }
}

}  // namespace

std::vector<TensorSpec> AttentionWithSums::infer(Specs inputs) const {
  require_inputs(kName, inputs, 3, 3);
  const auto g = AttentionGeometry::of(*this, inputs);
  return {g.y_spec(inputs[0].shape.rank()), {DType::F32, sums_shape(g)}};
}

std::vector<ValueId> AttentionWithSums::expand(OpEmitter& emitter, Values inputs) const {
  const auto y = plain(*this).expand(emitter, inputs);
  const auto g = geometry_of(*this, emitter, inputs);
  const Formula f(emitter);
  const auto scores = emit_probabilities(emitter, g, inputs).scores;
  const auto largest = emitter.emit_one(make_op(Reduce(ReduceKind::Max, {-1})), {scores});
  const auto sum = f.sum(f.apply(UnaryKind::Exp, f.sub(scores, largest)), {-1});
  return {y[0], f.reshape(f.add(largest, f.apply(UnaryKind::Log, sum)), sums_shape(g))};
}

double AttentionWithSums::flops(Specs inputs, Specs outputs) const {
  return plain(*this).flops(inputs, outputs);
}

void AttentionWithSums::reference(std::span<const RefTensor> inputs,
                                  std::span<RefTensor> outputs) const {
  plain(*this).reference(inputs, outputs.first(1));
  const auto g = geometry_of(*this, inputs);
  std::size_t row = 0;
  for_each_query(g, [&](const HeadPlace& place, std::int64_t i) {
    const double *q = &inputs[0].values[place.q(i)], *k = &inputs[1].values[place.k(0)];
    // The first probability is exp(score - sum's logarithm).
    const auto p = attention_probabilities(g, i, q, k);
    const auto likeliest = std::ranges::max_element(p) - p.begin();
    double score = 0;
    for (std::int64_t d = 0; d < g.head_size; ++d) score += q[d] * k[likeliest * g.k.row + d];
    outputs[1].values[row++] =
        double{g.scale} * score - std::log(p[static_cast<std::size_t>(likeliest)]);
  });
}

ErrorBound AttentionWithSums::error_bound(Specs inputs) const {
  return plain(*this).error_bound(inputs);
}

std::vector<TensorSpec> AttentionGradient::infer(Specs inputs) const {
  require_inputs(kName, inputs, 5, 6);
  const auto g = AttentionGeometry::of(*this, inputs.first(3));
  const auto rank = inputs[0].shape.rank();
  for (const std::size_t i : {3, 4}) {
    require_dtype(kName, inputs, i, DType::F32);
    require_shape(kName, inputs, i, g.y_spec(rank).shape);
  }
  if (inputs.size() > kSums) {
    require_dtype(kName, inputs, kSums, DType::F32);
    require_shape(kName, inputs, kSums, sums_shape(g));
  }
  return {inputs[0], inputs[1], inputs[2]};
}

// Rule by rule, so that the results have the bits of the gradients of Attention's expansion.
std::vector<ValueId> AttentionGradient::expand(OpEmitter& emitter, Values inputs) const {
  const auto g = geometry_of(*this, emitter, inputs);
  const Formula f(emitter);
  const auto parts = emit_probabilities(emitter, g, inputs);
  auto dy = group_heads(emitter, split_heads(emitter, inputs[4], g.heads), g);
  const auto of_values =
      gradients_of(emitter, MatMul{}, {{parts.probabilities, parts.v}, ValueId{}}, dy);
  const auto of_scores =
      gradients_of(emitter, Softmax{}, {{parts.scores}, parts.probabilities}, of_values[0]);
  MatMul product;
  product.transpose_b = true;
  const auto of_operands = gradients_of(emitter, product, {{parts.q, parts.k}, ValueId{}},
                                        f.mul(of_scores[0], parts.scale));
  return {shaped_as(emitter, of_operands[0], inputs[0], g.heads),
          shaped_as(emitter, of_operands[1], inputs[1], g.kv_heads),
          shaped_as(emitter, of_values[1], inputs[2], g.kv_heads)};
}

double AttentionGradient::flops(Specs inputs, Specs) const {
  const auto g = AttentionGeometry::of(*this, inputs.first(3));
  // Five products, and per score a scaling, a difference, an exponential, and three of dS.
  return g.pairs() * (2 * static_cast<double>(3 * g.head_size + 2 * g.value_size) + 6);
}

void AttentionGradient::reference(std::span<const RefTensor> inputs,
                                  std::span<RefTensor> outputs) const {
  for (auto& output : outputs) std::ranges::fill(output.values, 0.0);
  for_each_query(geometry_of(*this, inputs), [&](const HeadPlace& place, std::int64_t i) {
    add_query(place, i, inputs, outputs);
  });
}

// For operands up to 1 a score errs by 2 (D + 2) D scale units, and dP, up to Dv, by Dv of its own.
// Queries that share heads add up in dk and dv. All signs count in dS, which may be a small
// difference: the bound is an absolute one, wide enough for what the bf16 contracts round.
ErrorBound AttentionGradient::error_bound(Specs inputs) const {
  const auto g = AttentionGeometry::of(*this, inputs.first(3));
  const auto depth = static_cast<double>(g.head_size), values = static_cast<double>(g.value_size);
  const double factor = std::fabs(double{g.scale});
  const double queries = static_cast<double>(g.queries * g.heads) / static_cast<double>(g.kv_heads);
  const double units = 2 * (depth + 2) * depth * factor + 2 * values + queries +
                       2 * static_cast<double>(g.keys) + 16;
  const double largest = queries * std::max(1.0, 2 * values * factor);
  return {.ulps = 4, .absolute = 0x1p-24 * units * largest};
}

void add_attention_gradient_ops(OpList& list) {
  list.push_back(make_op(AttentionWithSums{}));
  list.push_back(make_op(AttentionGradient{}));
}

}  // namespace triptych
