// SPDX-License-Identifier: Apache-2.0
#include "core/ops/optimizers.h"

#include <fmt/core.h>

#include "core/conformance/op_case.h"
#include "core/ops/assign.h"

namespace triptych::conformance {
namespace {

const std::vector<Shape> kOneParameter = {{7}};
const std::vector<Shape> kParameters = {{3, 4}, {}, {5}, {2, 3, 3, 3}, {1500}};

/// Many small ones and one long one.
std::vector<Shape> many_parameters() {
  std::vector<Shape> shapes(150, Shape{2});
  shapes[60] = {5000};
  return shapes;
}

void add_group(std::vector<InputRule>& inputs, const std::vector<Shape>& shapes, InputRule like) {
  for (const auto& shape : shapes) {
    like.spec.shape = shape;
    inputs.push_back(like);
  }
}

/// Learning rate, step, parameters and gradients, before any update (step 0) or after some.
std::vector<InputRule> update_inputs(const std::vector<Shape>& shapes, double step) {
  std::vector<InputRule> inputs = {exactly(DType::F32, {}, {0.01}),
                                   exactly(DType::I64, {}, {step})};
  inputs[1].state = true;
  add_group(inputs, shapes, {.spec = {}, .state = true});
  add_group(inputs, shapes, {.spec = {}});
  return inputs;
}

void add_sgd(std::vector<OpCase>& cases, const std::string& name, const SgdUpdate& op) {
  const auto many = many_parameters();
  for (const double step : {0, 10}) {
    for (const auto* shapes : {&kOneParameter, &kParameters, &many}) {
      auto inputs = update_inputs(*shapes, step);
      if (op.momentum != 0) add_group(inputs, *shapes, {.spec = {}, .state = true});
      cases.push_back({fmt::format("{}_step{}_of{}", name, step, shapes->size()), make_op(op),
                       std::move(inputs), false});
    }
  }
}

void add_adam(std::vector<OpCase>& cases, const std::string& name, const AdamUpdate& op) {
  const auto many = many_parameters();
  for (const double step : {0, 1, 10, 100000}) {
    for (const auto* shapes : {&kOneParameter, &kParameters, &many}) {
      auto inputs = update_inputs(*shapes, step);
      // Moments as training leaves them: zero at first, then m^2 not far above v.
      const double first = step == 0 ? 0 : 0.5, second = step == 0 ? 0 : 0.5;
      add_group(inputs, *shapes, {.spec = {}, .low = -first, .high = first, .state = true});
      add_group(inputs, *shapes, {.spec = {}, .low = second / 10, .high = second, .state = true});
      cases.push_back({fmt::format("{}_step{}_of{}", name, step, shapes->size()), make_op(op),
                       std::move(inputs), false});
    }
  }
}

}  // namespace

void add_optimizer_cases(std::vector<OpCase>& cases) {
  SgdUpdate sgd;
  add_sgd(cases, "plain", sgd);
  sgd.weight_decay = 0.1F;
  add_sgd(cases, "weight_decay", sgd);
  sgd.momentum = 0.9F;
  add_sgd(cases, "weight_decay_momentum", sgd);
  sgd.nesterov = true;
  add_sgd(cases, "weight_decay_nesterov", sgd);
  sgd.weight_decay = 0;
  add_sgd(cases, "nesterov", sgd);
  sgd.nesterov = false;
  add_sgd(cases, "momentum", sgd);

  AdamUpdate adam;
  add_adam(cases, "plain", adam);
  adam.weight_decay = 0.1F;
  add_adam(cases, "weight_decay", adam);
  adam.decoupled = true;
  add_adam(cases, "decoupled_weight_decay", adam);
  adam.beta1 = 0.5F;
  adam.beta2 = 0.9F;
  adam.epsilon = 0.001F;
  add_adam(cases, "other_betas", adam);

  InputRule state = f32({3, 5});
  state.state = true;
  cases.push_back({"f32", make_op(Assign{}), {state, f32({3, 5})}, false});
  state = exactly(DType::I64, {}, {3});
  state.state = true;
  cases.push_back({"i64", make_op(Assign{}), {state, exactly(DType::I64, {}, {7})}, false});
}

}  // namespace triptych::conformance
