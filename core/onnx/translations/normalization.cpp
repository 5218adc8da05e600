// Normalisation: of a batch's channels in its inference form, of instances, layers and groups, and
// of neighbouring channels.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/normalization.h"

#include "core/onnx/node_import.h"
#include "core/onnx/translations/arithmetic.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/pad.h"
#include "core/ops/reduce.h"

namespace triptych::onnx {
namespace {

std::vector<ValueId> f32_inputs(const NodeImport& n) {
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < n.input_count(); ++i) values.push_back(n.f32(i));
  return values;
}

/// The same where the running mean and variance are states, which it updates.
std::vector<ValueId> training_step(NodeImport& n, const std::vector<ValueId>& in,
                                   BatchNormalization op) {
  op.training_mode = true;
  auto outputs = n.graph.emit(make_op(std::move(op)), in);
  outputs.resize(3);
  outputs[0] = n.like(0, outputs[0]);
  return outputs;
}

/// In training mode, with the batch's own mean and variance: y, and the running ones' next values.
std::vector<ValueId> training_form(NodeImport& n, const std::vector<ValueId>& in, float epsilon,
                                   float momentum) {
  const auto rank = n.rank(0);
  std::vector<std::int64_t> axes;
  Dims per_channel(static_cast<std::size_t>(rank), 1);
  per_channel[1] = n.shape(0)[1];
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    if (axis != 1) axes.push_back(axis);
  }
  const auto mean_of = [&](ValueId x) {
    return n.apply(make_op(Reduce(ReduceKind::Mean, axes)), {x});
  };
  const auto mean = mean_of(in[0]);
  const auto centered = n.f.sub(in[0], mean);
  const auto variance = mean_of(n.f.mul(centered, centered));
  const auto deviation = n.f.apply(UnaryKind::Sqrt, n.f.add(variance, double{epsilon}));
  const auto scale = n.reshape(in[1], per_channel), bias = n.reshape(in[2], per_channel);
  const auto y = n.f.add(n.f.mul(n.f.div(centered, deviation), scale), bias);
  const auto next = [&](ValueId running, ValueId now) {
    const auto flat = n.reshape(now, {per_channel[1]});
    return n.f.add(n.f.mul(running, double{momentum}), n.f.mul(flat, 1.0 - double{momentum}));
  };
  return {y, next(in[3], mean), next(in[4], variance)};
}

std::vector<ValueId> batch_normalization(NodeImport& n) {
  BatchNormalization op;
  op.epsilon = n.number("epsilon", 1e-5F);
  const float momentum = n.number("momentum", 0.9F);
  if (n.opset < 9) n.refuse_unless(n.flag("spatial", true), "attribute spatial=0");
  if (n.opset < 7) {
    n.refuse_unless(n.flag("is_test"), "attribute is_test=0 (training)");
    n.ignore("consumed_inputs");
  }
  const auto in = f32_inputs(n);
  if (in.size() != 5 || n.rank(0) < 2)
    n.broken("it takes x of two dimensions and more, scale, bias, mean, var");
  if (n.opset >= 14 && n.flag("training_mode")) {
    if (!n.graph.is_state(in[3]) || !n.graph.is_state(in[4]))
      return training_form(n, in, op.epsilon, momentum);
    op.momentum = momentum;
    return training_step(n, in, op);
  }
  n.refuse_unless(!n.wants(1), "the outputs of training are not supported");
  return {n.like(0, n.apply(make_op(op), in))};
}

std::vector<ValueId> instance_normalization(NodeImport& n) {
  InstanceNormalization op;
  op.epsilon = n.number("epsilon", 1e-5F);
  n.ignore("consumed_inputs");
  return {n.like(0, n.apply(make_op(op), f32_inputs(n)))};
}

std::vector<ValueId> group_normalization(NodeImport& n) {
  GroupNormalization op;
  op.epsilon = n.number("epsilon", 1e-5F);
  op.num_groups = n.integer("num_groups", 0);
  n.ignore("stash_type");
  n.refuse_unless(n.opset >= 21, "in operator sets below 21 scale and bias are those of groups");
  return {n.like(0, n.apply(make_op(op), f32_inputs(n)))};
}

/// Written out, because mean and inverse deviation are outputs, too.
std::vector<ValueId> layer_normalization(NodeImport& n) {
  const float epsilon = n.number("epsilon", 1e-5F);
  const auto rank = n.rank(0);
  const auto axis = normalize_axis(n.integer("axis", -1), rank);
  n.refuse_unless(n.integer("stash_type", 1) == 1, "attribute stash_type is not float");
  if (!n.wants(1) && !n.wants(2) && n.shape(0).elements() > 0) {
    LayerNormalization op;
    op.axis = axis;
    op.epsilon = epsilon;
    std::vector inputs = {n.f32(0), n.f32(1)};
    if (n.has(2)) inputs.push_back(n.f32(2));
    return {n.like(0, n.apply(make_op(op), inputs))};
  }
  std::vector<std::int64_t> axes;
  for (auto a = axis; a < rank; ++a) axes.push_back(a);
  const auto mean_of = [&](ValueId x) {
    return n.apply(make_op(Reduce(ReduceKind::Mean, axes)), {x});
  };
  const auto mean = mean_of(n.f32(0));
  const auto centered = n.f.sub(n.f32(0), mean);
  const auto variance = mean_of(n.f.mul(centered, centered));
  const auto inverse = n.f.apply(UnaryKind::Reciprocal,
                                 n.f.apply(UnaryKind::Sqrt, n.f.add(variance, double{epsilon})));
  auto y = n.f.mul(n.f.mul(centered, inverse), n.f32(1));
  if (n.has(2)) y = n.f.add(y, n.f32(2));
  return {n.like(0, y), mean, inverse};
}

/// x without its mean over `axes`, divided by its deviation.
std::vector<ValueId> mean_variance_normalization(NodeImport& n) {
  auto axes = n.integers("axes");
  if (!n.has_attribute("axes")) axes = {0, 2, 3};
  const auto mean_of = [&](ValueId x) {
    return n.apply(make_op(Reduce(ReduceKind::Mean, axes)), {x});
  };
  const auto x = n.f32(0);
  const auto centered = n.f.sub(x, mean_of(x));
  const auto deviation = norm_of(n.f, mean_of(n.f.mul(centered, centered)));
  // ONNX's function adds this to the deviation.
  return {n.like(0, n.f.div(centered, n.f.add(deviation, 1e-9)))};
}

/// x / (bias + alpha / size * sum of squares over neighbouring channels)^beta.
std::vector<ValueId> local_response_normalization(NodeImport& n) {
  const auto size = n.integer("size", 0);
  const auto rank = n.rank(0);
  if (rank < 2 || size < 1 || size > 2 * n.shape(0)[1] + 1)
    n.broken("attribute size is out of range");
  const double alpha = n.number("alpha", 1e-4F), beta = n.number("beta", 0.75F);
  const double bias = n.number("bias", 1);
  const auto x = n.f32(0);
  Pad pad;
  pad.pads.assign(static_cast<std::size_t>(2 * rank), 0);
  pad.pads[1] = (size - 1) / 2;
  pad.pads[static_cast<std::size_t>(rank) + 1] = size / 2;
  const auto squares = n.apply(make_op(pad), {n.f.mul(x, x)});
  ValueId sum;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto part = n.slice(squares, 1, i, i + n.shape(0)[1]);
    sum = i == 0 ? part : n.f.add(sum, part);
  }
  const auto root = n.f.add(n.f.mul(sum, alpha / static_cast<double>(size)), bias);
  return {n.like(0, n.f.div(x, n.f.apply(BinaryKind::Pow, root, beta)))};
}

/// x / the norm along `axis`.
std::vector<ValueId> lp_normalization(NodeImport& n) {
  const auto p = n.integer("p", 2);
  const auto axis = n.integer("axis", -1);
  n.refuse_unless(p == 1 || p == 2, "attribute p is neither 1 nor 2");
  const auto x = n.f32(0);
  const auto terms = p == 1 ? n.f.apply(UnaryKind::Abs, x) : n.f.mul(x, x);
  auto norm = n.f.sum(terms, {axis});
  if (p == 2) norm = norm_of(n.f, norm);
  // A vector of zeros does not change.
  norm = n.f.select(n.f.apply(BinaryKind::Equal, norm, 0.0), 1.0, norm);
  return {n.like(0, n.f.div(x, norm))};
}

}  // namespace

void add_normalization_translations(TranslationList& list) {
  list.insert(list.end(), {{"BatchNormalization", batch_normalization},
                           {"InstanceNormalization", instance_normalization},
                           {"GroupNormalization", group_normalization},
                           {"LayerNormalization", layer_normalization},
                           {"LpNormalization", lp_normalization},
                           {"MeanVarianceNormalization", mean_variance_normalization},
                           {"LRN", local_response_normalization}});
}

}  // namespace triptych::onnx
