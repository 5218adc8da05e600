// Weighted losses of classes with an ignored index, and the optimiser steps of ONNX's preview of
// training.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "core/onnx/node_import.h"
#include "core/ops/gather.h"
#include "core/ops/softmax.h"

namespace triptych::onnx {
namespace {

/// One number per target from rows of classes: x [rows, classes] at [row, target[row]].
ValueId pick(const NodeImport& n, ValueId x, ValueId target) {
  const Shape shape = n.graph.spec(x).shape;
  Tensor starts(TensorSpec{DType::I64, {shape[0]}});
  const auto values = starts.as<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int64_t>(i) * shape[1];
  const auto places = n.f.add(n.graph.constant(std::move(starts)), target);
  return n.apply(make_op(Gather{}), {n.reshape(x, {shape.elements()}), places});
}

/// x [N, C, ...] as rows of classes: [N ..., C].
ValueId class_rows(const NodeImport& n, ValueId x) {
  const Shape shape = n.graph.spec(x).shape;
  std::vector<std::int64_t> perm = {0};
  for (std::int64_t axis = 2; axis < shape.rank(); ++axis) perm.push_back(axis);
  perm.push_back(1);
  return n.reshape(n.transpose(x, perm), {shape.elements() / shape[1], shape[1]});
}

/// The negative log-likelihood of `target` (input 1) under log-probabilities x, with the weights of
/// input 2 and the attributes of both losses.
ValueId likelihood_loss(NodeImport& n, ValueId x) {
  const auto reduction = n.text("reduction", "mean");
  n.refuse_unless(reduction == "mean" || reduction == "sum" || reduction == "none",
                  fmt::format("attribute reduction: {}", reduction));
  const Shape shape = n.graph.spec(x).shape;
  const Shape targets = n.shape(1);
  if (shape.rank() < 2 || shape.elements() == 0 ||
      targets.elements() != shape.elements() / shape[1]) {
    n.broken("its operands do not fit");
  }
  auto target = n.cast(n.reshape(n.in(1), {targets.elements()}), DType::I64);
  ValueId counts;
  if (n.has_attribute("ignore_index")) {
    const auto ignored = scalar_tensor(n.integer("ignore_index", 0));
    const auto is_ignored = n.f.apply(BinaryKind::Equal, target, n.graph.constant(ignored.clone()));
    target = n.f.select(is_ignored, 0.0, target);
    counts = n.cast(n.f.apply(UnaryKind::Not, is_ignored), DType::F32);
  }
  auto loss = n.f.apply(UnaryKind::Neg, pick(n, class_rows(n, x), target));
  ValueId weight;
  if (n.has(2)) {
    if (n.shape(2) != Shape{shape[1]}) n.broken("its weights are not one per class");
    weight = n.apply(make_op(Gather{}), {n.f32(2), target});
  }
  if (counts.valid()) weight = weight.valid() ? n.f.mul(weight, counts) : counts;
  if (weight.valid()) loss = n.f.mul(loss, weight);
  if (reduction == "none") return n.f.reshape(loss, targets);
  const auto sum = n.f.sum(loss, {0}, false);
  if (reduction == "sum") return sum;
  if (weight.valid()) return n.f.div(sum, n.f.sum(weight, {0}, false));
  return n.f.div(sum, static_cast<double>(targets.elements()));
}

std::vector<ValueId> negative_log_likelihood(NodeImport& n) {
  return {n.like(0, likelihood_loss(n, n.f32(0)))};
}

std::vector<ValueId> softmax_cross_entropy(NodeImport& n) {
  LogSoftmax op;
  op.axis = 1;
  const auto log = n.apply(make_op(op), {n.f32(0)});
  return {n.like(0, likelihood_loss(n, log)), n.like(0, log)};
}

/// Input `first + k * count + i` of an optimiser for `count` tensors: X, then G, then states.
struct Tensors {
  NodeImport& n;
  std::size_t count;

  Tensors(NodeImport& node, std::size_t kinds) : n(node), count((node.input_count() - 2) / kinds) {
    if (node.input_count() < 2 + kinds || (node.input_count() - 2) % kinds != 0) {
      node.broken("it has another number of inputs");
    }
  }
  ValueId at(std::size_t kind, std::size_t i) const { return n.f32(2 + kind * count + i); }
};

/// Adds the outputs of each tensor kind by kind.
template <class Step>
std::vector<ValueId> stepped(const Tensors& tensors, std::size_t kinds, const Step& step) {
  std::vector<std::vector<ValueId>> columns(kinds);
  for (std::size_t i = 0; i < tensors.count; ++i) {
    const auto results = step(i);
    for (std::size_t k = 0; k < kinds; ++k) columns[k].push_back(results[k]);
  }
  std::vector<ValueId> outputs;
  for (const auto& column : columns) outputs.insert(outputs.end(), column.begin(), column.end());
  return outputs;
}

/// G + the gradient of the L2 norm.
ValueId regularised(const NodeImport& n, ValueId x, ValueId g, double coefficient) {
  return coefficient == 0 ? g : n.f.add(g, n.f.mul(x, coefficient));
}

std::vector<ValueId> adagrad(NodeImport& n) {
  const double decay = n.number("decay_factor", 0), epsilon = n.number("epsilon", 0);
  const double norm = n.number("norm_coefficient", 0);
  const Tensors tensors(n, 3);
  const auto steps = n.cast(n.in(1), DType::F32);
  const auto rate = n.f.div(n.f32(0), n.f.add(n.f.mul(steps, decay), 1.0));
  return stepped(tensors, 2, [&](std::size_t i) {
    const auto x = tensors.at(0, i), g = regularised(n, x, tensors.at(1, i), norm);
    const auto h = n.f.add(tensors.at(2, i), n.f.mul(g, g));
    const auto root = n.f.add(n.f.apply(UnaryKind::Sqrt, h), epsilon);
    return std::vector{n.f.sub(x, n.f.div(n.f.mul(rate, g), root)), h};
  });
}

std::vector<ValueId> adam(NodeImport& n) {
  const double alpha = n.number("alpha", 0.9F), beta = n.number("beta", 0.999F);
  const double epsilon = n.number("epsilon", 0), norm = n.number("norm_coefficient", 0);
  const double after = n.number("norm_coefficient_post", 0);
  // ONNX's text has 0 for its default, ONNX's test 0.01.
  n.refuse_unless(n.has_attribute("epsilon"), "attribute epsilon is not given");
  const Tensors tensors(n, 4);
  const auto step = n.cast(n.in(1), DType::F32);
  const auto complement = [&](double base) {
    const auto power = n.f.apply(BinaryKind::Pow, n.filled({DType::F32, Shape{}}, base), step);
    return n.f.sub(1.0, power);
  };
  // At the first step, numbered 0, the rate is that of the caller.
  const auto corrected =
      n.f.mul(n.f32(0), n.f.div(n.f.apply(UnaryKind::Sqrt, complement(beta)), complement(alpha)));
  const auto rate = n.f.select(n.f.apply(BinaryKind::Greater, step, 0.0), corrected, n.f32(0));
  return stepped(tensors, 3, [&](std::size_t i) {
    const auto x = tensors.at(0, i), g = regularised(n, x, tensors.at(1, i), norm);
    const auto v = n.f.add(n.f.mul(tensors.at(2, i), alpha), n.f.mul(g, 1 - alpha));
    const auto h = n.f.add(n.f.mul(tensors.at(3, i), beta), n.f.mul(n.f.mul(g, g), 1 - beta));
    const auto root = n.f.add(n.f.apply(UnaryKind::Sqrt, h), epsilon);
    auto next = n.f.sub(x, n.f.div(n.f.mul(rate, v), root));
    if (after != 0) next = n.f.mul(next, 1 - after);
    return std::vector{next, v, h};
  });
}

std::vector<ValueId> momentum(NodeImport& n) {
  const double alpha = n.number("alpha", 0), beta = n.number("beta", 0);
  const double norm = n.number("norm_coefficient", 0);
  const auto mode = n.text("mode", "standard");
  n.refuse_unless(mode == "standard" || mode == "nesterov",
                  fmt::format("attribute mode: {}", mode));
  const Tensors tensors(n, 3);
  const auto first = n.f.apply(BinaryKind::Equal, n.cast(n.in(1), DType::F32), 0.0);
  const auto share = n.f.select(first, n.filled({DType::F32, Shape{}}, 1), beta);
  return stepped(tensors, 2, [&](std::size_t i) {
    const auto x = tensors.at(0, i), g = regularised(n, x, tensors.at(1, i), norm);
    const auto v = n.f.add(n.f.mul(tensors.at(2, i), alpha), n.f.mul(g, share));
    const auto step = mode == "standard" ? v : n.f.add(g, n.f.mul(v, alpha));
    return std::vector{n.f.sub(x, n.f.mul(n.f32(0), step)), v};
  });
}

}  // namespace

void add_losses_translations(TranslationList& list) {
  list.insert(list.end(), {{"NegativeLogLikelihoodLoss", negative_log_likelihood},
                           {"SoftmaxCrossEntropyLoss", softmax_cross_entropy},
                           {"ai.onnx.preview.training.Adagrad", adagrad},
                           {"ai.onnx.preview.training.Adam", adam},
                           {"ai.onnx.preview.training.Momentum", momentum}});
}

}  // namespace triptych::onnx
