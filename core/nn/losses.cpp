// SPDX-License-Identifier: Apache-2.0
#include "core/nn/losses.h"

#include <numeric>
#include <optional>

#include "core/base/error.h"
#include "core/ops/concat.h"
#include "core/ops/formula.h"
#include "core/ops/losses.h"
#include "core/ops/reduce.h"
#include "core/ops/slice.h"
#include "core/ops/softmax.h"
#include "core/ops/transpose.h"

namespace triptych {
namespace {

/// Values that the logits are compared with, as f32 [N, 1, H, W].
struct Targets {
  ValueId classes;
  std::optional<ValueId> weights;
};

ValueId channels(Graph& graph, ValueId x, std::int64_t begin, std::int64_t end) {
  Slice slice;
  slice.starts = {begin};
  slice.ends = {end};
  slice.axes = {1};
  return graph.emit_one(make_op(slice), {x});
}

Targets take_apart(Graph& graph, ValueId target, bool weighted) {
  if (weighted) return {channels(graph, target, 0, 1), channels(graph, target, 1, 2)};
  const auto& spec = graph.spec(target);
  if (spec.dtype == DType::F32) return {target, {}};
  const Formula f(graph);
  const auto shape = f.shape(target);
  return {f.cast(f.reshape(target, {shape[0], 1, shape[1], shape[2]}), DType::F32), {}};
}

/// Cross-entropy of each pixel by its weight. A logit is the softmax of itself and a second score
/// 0.
ValueId weighted_cross_entropy(Graph& graph, ValueId logits, const Targets& targets) {
  const Formula f(graph);
  const auto shape = f.shape(logits);
  const Shape map = {shape[0], shape[2], shape[3]};
  if (shape[1] == 1) {
    Concat concat;
    concat.axis = 1;
    const auto zeros = graph.constant(Tensor(TensorSpec{DType::F32, shape}));
    logits = graph.emit_one(make_op(concat), {zeros, logits});
  }
  SoftmaxCrossEntropyLoss each;
  each.reduction = "none";
  const auto labels = f.cast(f.reshape(targets.classes, map), DType::I64);
  const auto losses = graph.emit_one(make_op(each), {logits, labels});
  const auto weighted = f.mul(losses, f.reshape(*targets.weights, map));
  return graph.emit_one(make_op(Reduce(ReduceKind::Mean, {}, false)), {weighted});
}

/// The loss from sums with one element per class.
ValueId soft_dice(Graph& graph, ValueId logits, const Targets& targets) {
  const Formula f(graph);
  const auto count = f.shape(logits)[1];
  ValueId p, z;
  if (count == 1) {
    p = f.apply(UnaryKind::Sigmoid, logits);
    z = targets.classes;
  } else {
    Softmax softmax;
    softmax.axis = 1;
    p = channels(graph, graph.emit_one(make_op(softmax), {logits}), 1, count);
    Tensor numbers({DType::F32, {1, count - 1, 1, 1}});
    std::iota(numbers.as<float>().begin(), numbers.as<float>().end(), 1.0F);
    z = f.cast(f.apply(BinaryKind::Equal, targets.classes, graph.constant(std::move(numbers))),
               DType::F32);
  }
  if (targets.weights) z = f.mul(z, *targets.weights);
  const auto overlap = f.sum(f.mul(p, z), {0, 2, 3});
  if (targets.weights) p = f.mul(p, *targets.weights);
  const auto total = f.add(f.sum(p, {0, 2, 3}), f.sum(z, {0, 2, 3}));
  const auto dice = f.div(f.add(f.mul(overlap, 2.0), 1.0), f.add(total, 1.0));
  return f.sub(1.0, graph.emit_one(make_op(Reduce(ReduceKind::Mean, {}, false)), {dice}));
}

/// A loss that is one operator.
template <class Loss>
ValueId whole(Graph& graph, const Loss& loss, ValueId logits, ValueId target) {
  return graph.add_node(make_op(loss), std::array{logits, target}, "loss").front();
}

ValueId mean_squared_error(Graph& graph, ValueId values, ValueId target) {
  const Formula f(graph);
  const auto difference = f.sub(values, target);
  const auto squares = f.mul(difference, difference);
  return graph.emit_one(make_op(Reduce(ReduceKind::Mean, {}, false)), {squares});
}

/// Logits with the classes on axis 1.
ValueId with_classes_first(Graph& graph, ValueId logits) {
  if (class_axis(graph.spec(logits).shape) == 1) return logits;
  Transpose transpose;
  transpose.perm = {0, 2, 1};
  return graph.emit_one(make_op(transpose), {logits});
}

ValueId cross_entropy(Graph& graph, ValueId logits, ValueId target, bool weighted) {
  if (weighted) return weighted_cross_entropy(graph, logits, take_apart(graph, target, weighted));
  if (graph.spec(target).dtype == DType::F32)
    return whole(graph, BinaryCrossEntropyWithLogits{}, logits, target);
  return whole(graph, SoftmaxCrossEntropyLoss{}, with_classes_first(graph, logits), target);
}

ValueId dice(Graph& graph, ValueId logits, ValueId target, bool weighted) {
  if (!weighted && graph.spec(logits).shape[1] == 1)
    return whole(graph, DiceLoss{}, logits, target);
  return soft_dice(graph, logits, take_apart(graph, target, weighted));
}

}  // namespace

std::size_t class_axis(const Shape& logits) {
  constexpr std::size_t tokens = 3;  // axes of [N, tokens, C]
  return logits.rank() == tokens ? 2 : 1;
}

TensorSpec target_spec(const TensorSpec& logits, LossKind loss, bool weighted) {
  const auto& shape = logits.shape;
  if (weighted) return {DType::F32, {shape[0], 2, shape[2], shape[3]}};
  const auto axis = class_axis(shape);
  if (loss == LossKind::MeanSquaredError || shape[axis] == 1) return logits;
  auto dims = shape.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return {DType::I64, Shape(std::move(dims))};
}

ValueId training_loss(Graph& graph, LossKind kind, ValueId logits, ValueId target, bool weighted) {
  constexpr std::size_t maps = 4;  // axes of [N, C, H, W]
  const bool of_pixels = kind == LossKind::Dice || kind == LossKind::DiceCrossEntropy;
  const bool has_pixels =
      graph.spec(logits).shape.rank() == maps && kind != LossKind::MeanSquaredError;
  if ((weighted || of_pixels) && !has_pixels) {
    throw InvalidArgument(
        "Dice and weights are of pixels, and the network makes no map of classes: use the loss "
        "cross-entropy without weights");
  }
  switch (kind) {
    case LossKind::CrossEntropy:
      return cross_entropy(graph, logits, target, weighted);
    case LossKind::MeanSquaredError:
      return mean_squared_error(graph, logits, target);
    case LossKind::Dice:
      return dice(graph, logits, target, weighted);
    case LossKind::DiceCrossEntropy:
      break;
  }
  const auto entropy = cross_entropy(graph, logits, target, weighted);
  return Formula(graph).add(entropy, dice(graph, logits, target, weighted));
}

}  // namespace triptych
