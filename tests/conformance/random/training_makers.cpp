// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/assign.h"
#include "core/ops/dropout.h"
#include "core/ops/losses.h"
#include "core/ops/optimizers.h"
#include "tests/conformance/random/makers.h"

namespace triptych::conformance {
namespace {

constexpr double kScoreLimit = 4;

/// Targets in [0, 1]. No gradient flows to them.
ValueId targets(Grower& g, ValueId x) { return g.constant(g.spec(x), 0, 1); }

template <class Loss>
void add_mask_loss(Grower& g) {
  const auto x = g.operand({.limit = kScoreLimit});
  g.add(make_op(Loss{}), {x, targets(g, x)});
}

void add_mask_loss_gradient(Grower& g) {
  const auto x = g.operand({.limit = kScoreLimit});
  const auto z = targets(g, x);
  g.add(make_op(BinaryCrossEntropyWithLogitsGradient{}), {x, z, g.operand_of(Shape{}, 1)});
}

/// Labels of the classes of x [N, C, ...], with or without some to ignore.
ValueId labels(Grower& g, ValueId x, std::int64_t ignored) {
  Dims dims = g.shape_of(x).dims();
  const auto classes = dims[1];
  dims.erase(dims.begin() + 1);
  const TensorSpec spec{g.chance(0.5) ? DType::I64 : DType::I32, Shape(std::move(dims))};
  return g.leaf(spec, static_cast<double>(std::min<std::int64_t>(ignored, 0)),
                static_cast<double>(classes - 1));
}

template <class Op>
Op some_class_loss(Grower& g) {
  Op op;
  op.reduction = g.one_of<std::string>({"mean", "mean", "sum", "none"});
  op.ignore_index = g.between(-1, 1);
  return op;
}

void add_class_loss(Grower& g) {
  const auto op = some_class_loss<SoftmaxCrossEntropyLoss>(g);
  const auto x = g.operand({.min_rank = 2, .limit = kScoreLimit});
  g.add(make_op(op), {x, labels(g, x, op.ignore_index)});
}

void add_class_loss_gradient(Grower& g) {
  const auto op = some_class_loss<SoftmaxCrossEntropyLossGradient>(g);
  const auto x = g.operand({.min_rank = 2, .limit = kScoreLimit});
  const auto label = labels(g, x, op.ignore_index);
  const auto dloss = g.operand_of(op.reduction == "none" ? g.shape_of(label) : Shape{}, 1);
  g.add(make_op(op), {x, label, dloss});
}

void add_dropout(Grower& g) {
  Dropout op;
  op.training_mode = g.chance(0.7);
  op.ratio = g.one_of<float>({0.5F, 0.25F, 0});
  op.seed = g.between(0, 1000);
  op.stream = g.between(0, 3);
  std::vector<ValueId> inputs = {g.operand()};
  if (op.training_mode) inputs.push_back(g.leaf({DType::I64, {}}, 0, 5));
  g.add(make_op(op), inputs);
}

/// Learning rate, step, and one or two parameters with their gradients.
struct Update {
  std::vector<ValueId> inputs;
  std::vector<ValueId> parameters;
  bool is_first = false;
};

ValueId parameter(Grower& g) {
  const auto found = g.existing([&](ValueId value) {
    return g.graph().value(value).kind == ValueKind::State && g.spec(value).dtype == DType::F32 &&
           g.largest_magnitude(value) <= 1;
  });
  return found.valid() ? found : g.state({DType::F32, g.shape(0, 4)}, -1, 1);
}

Update some_update(Grower& g) {
  Update update;
  const auto finished = g.one_of<double>({0, 1, 10});
  update.is_first = finished == 0;
  update.inputs = {g.leaf({DType::F32, {}}, 0.001, 0.01),
                   g.state({DType::I64, {}}, finished, finished)};
  for (const auto value : update.inputs) g.retire(value);  // no parameter
  for (auto count = g.between(1, 2); count > 0; --count) {
    update.parameters.push_back(parameter(g));
    g.retire(update.parameters.back());  // its gradient is a different value
  }
  update.inputs.insert(update.inputs.end(), update.parameters.begin(), update.parameters.end());
  for (const auto p : update.parameters) {
    update.inputs.push_back(g.operand_of(g.shape_of(p), 1));
  }
  return update;
}

void add_moments(Grower& g, Update& update, double low, double high) {
  for (const auto p : update.parameters) {
    const auto moment = update.is_first ? g.state(g.spec(p), 0, 0) : g.state(g.spec(p), low, high);
    g.retire(moment);
    update.inputs.push_back(moment);
  }
}

void add_sgd(Grower& g) {
  auto update = some_update(g);
  SgdUpdate op;
  op.momentum = g.one_of<float>({0, 0.9F});
  op.weight_decay = g.one_of<float>({0, 0.1F});
  op.nesterov = op.momentum != 0 && g.chance(0.4);
  if (op.momentum != 0) add_moments(g, update, -1, 1);
  g.add(make_op(op), update.inputs);
}

void add_adam(Grower& g) {
  auto update = some_update(g);
  AdamUpdate op;
  op.weight_decay = g.one_of<float>({0, 0.1F});
  op.decoupled = g.chance(0.5);
  add_moments(g, update, -0.5, 0.5);
  add_moments(g, update, 0.05, 0.5);
  g.add(make_op(op), update.inputs);
}

void add_assign(Grower& g) {
  const auto state = parameter(g);
  g.retire(state);
  g.add(make_op(Assign{}), {state, g.operand_of(g.shape_of(state), 1)});
}

}  // namespace

void add_training_makers(std::vector<Maker>& makers) {
  makers.insert(makers.end(), {{add_mask_loss<BinaryCrossEntropyWithLogits>},
                               {add_mask_loss<DiceLoss>},
                               {add_mask_loss_gradient, 1, false},
                               {add_class_loss},
                               {add_class_loss_gradient, 1, false},
                               {add_dropout},
                               {add_sgd, 1, false},
                               {add_adam, 1, false},
                               {add_assign, 1, false}});
}

}  // namespace triptych::conformance
