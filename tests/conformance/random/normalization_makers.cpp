// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/batch_normalization.h"
#include "core/ops/normalization.h"
#include "tests/conformance/random/makers.h"

namespace triptych::conformance {
namespace {

// The bounds of normalisations hold for operands of about size 1 and variances that are not tiny.
constexpr double kLimit = 3;
constexpr float kEpsilon = 0.1F;

ValueId vector_of(Grower& g, std::int64_t channels) { return g.operand_of(Shape{channels}, 1); }

void add_batch_normalization(Grower& g) {
  const auto x = g.operand({.min_rank = 2, .limit = kLimit});
  const auto channels = g.shape_of(x)[1];
  BatchNormalization op;
  const auto variance = g.leaf({DType::F32, {channels}}, 0.25, 2);
  g.add(make_op(op),
        {x, vector_of(g, channels), vector_of(g, channels), vector_of(g, channels), variance});
}

void add_training_batch_normalization(Grower& g) {
  const auto x = g.operand({.min_rank = 2, .limit = kLimit});
  const auto channels = g.shape_of(x)[1];
  BatchNormalization op;
  op.training_mode = true;
  op.epsilon = kEpsilon;
  op.momentum = g.one_of<float>({0.9F, 0.5F});
  const auto scale = vector_of(g, channels), bias = vector_of(g, channels);
  const auto mean = g.state({DType::F32, {channels}}, -1, 1);
  const auto variance = g.state({DType::F32, {channels}}, 0.25, 2);
  g.add(make_op(op), {x, scale, bias, mean, variance});
}

void add_batch_normalization_gradient(Grower& g) {
  const auto x = g.operand({.min_rank = 2, .limit = kLimit});
  const auto channels = g.shape_of(x)[1];
  const auto dy = g.operand_of(g.shape_of(x), 1);
  const auto inverse = g.leaf({DType::F32, {channels}}, 0.5, 2);
  g.add(make_op(BatchNormalizationGradient{}),
        {x, dy, vector_of(g, channels), vector_of(g, channels), inverse});
}

void add_layer_normalization(Grower& g) {
  const auto x = g.operand({.min_rank = 1, .limit = kLimit});
  const Shape shape = g.shape_of(x);
  LayerNormalization op;
  op.axis = some_axis(g, shape.rank());
  op.epsilon = kEpsilon;
  const Shape tail(
      Dims(shape.dims().begin() + normalize_axis(op.axis, shape.rank()), shape.dims().end()));
  std::vector<ValueId> inputs = {x, g.operand_of(g.chance(0.7) ? tail : Shape{}, 1)};
  if (g.chance(0.7)) inputs.push_back(g.operand_of(g.chance(0.7) ? tail : Shape{}, 1));
  g.add(make_op(op), inputs);
}

void add_group_normalization(Grower& g) {
  const auto x = g.operand({.min_rank = 2, .limit = kLimit});
  const auto channels = g.shape_of(x)[1];
  const auto scale = vector_of(g, channels), bias = vector_of(g, channels);
  if (g.chance(0.4)) {
    InstanceNormalization op;
    op.epsilon = kEpsilon;
    g.add(make_op(op), {x, scale, bias});
    return;
  }
  GroupNormalization op;
  op.epsilon = kEpsilon;
  op.num_groups = g.between(1, channels);
  if (channels % op.num_groups != 0) op.num_groups = 1;
  g.add(make_op(op), {x, scale, bias});
}

}  // namespace

void add_normalization_makers(std::vector<Maker>& makers) {
  makers.insert(makers.end(), {{add_batch_normalization},
                               {add_training_batch_normalization, 2},
                               {add_batch_normalization_gradient, 1, false},
                               {add_layer_normalization},
                               {add_group_normalization, 2}});
}

}  // namespace triptych::conformance
