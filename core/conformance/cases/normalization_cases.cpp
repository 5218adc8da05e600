// SPDX-License-Identifier: Apache-2.0
#include "core/ops/normalization.h"

#include "core/conformance/op_case.h"
#include "core/ops/batch_normalization.h"

namespace triptych::conformance {
namespace {

InputRule state(InputRule rule) {
  rule.state = true;
  return rule;
}

void add_batch_normalization(std::vector<OpCase>& cases, std::string name, const Shape& x) {
  const Shape channels = {x[1]};
  const auto mean = f32(channels);
  const auto variance = f32(channels, 0.5, 2);
  for (const std::string activation : {"", "relu"}) {
    const auto like = activation.empty() ? name : name + "_" + activation;
    BatchNormalization op;
    op.activation = activation;
    cases.push_back(
        {like + "_inference", make_op(op), {f32(x), f32(channels), f32(channels), mean, variance}});
    op.training_mode = true;
    cases.push_back({like + "_training",
                     make_op(op),
                     {f32(x), f32(channels), f32(channels), state(mean), state(variance)}});
    BatchNormalizationGradient gradient;
    gradient.activation = activation;
    std::vector<InputRule> inputs = {f32(x), f32(x), f32(channels), mean, variance};
    if (!activation.empty()) inputs.push_back(f32(channels));
    cases.push_back({like, make_op(gradient), std::move(inputs)});
  }
}

void add_batch_cases(std::vector<OpCase>& cases) {
  add_batch_normalization(cases, "maps", {3, 5, 4, 6});
  add_batch_normalization(cases, "one_channel", {2, 1, 5, 5});
  add_batch_normalization(cases, "odd_channels", {2, 17, 3, 3});
  add_batch_normalization(cases, "rows_beyond_a_block", {2, 2, 33, 37});
  add_batch_normalization(cases, "lines", {4, 3, 9});
  add_batch_normalization(cases, "features", {16, 7});
  add_batch_normalization(cases, "single_image", {1, 3, 8, 8});
  add_batch_normalization(cases, "many_images", {300, 2, 3});
  const Shape x = {2, 3, 4, 4};
  BatchNormalization op;
  op.epsilon = 0.1F;
  op.momentum = 0.25F;
  op.training_mode = true;
  cases.push_back({"epsilon_momentum_training",
                   make_op(op),
                   {f32(x, 4, 6), f32({3}), f32({3}), state(f32({3})), state(f32({3}, 0.5, 2))}});
  // Without a spread the output is the bias and the inverse deviation 1 / sqrt(epsilon).
  op.epsilon = 1e-2F;
  cases.push_back({"constant_input_training",
                   make_op(op),
                   {exactly(DType::F32, x, std::vector<double>(96, 0.75)), f32({3}), f32({3}),
                    state(f32({3})), state(f32({3}, 0.5, 2))},
                   false});
}

void add_layer_cases(std::vector<OpCase>& cases) {
  const auto add = [&](std::string name, LayerNormalization op, std::vector<InputRule> inputs) {
    cases.push_back({std::move(name), make_op(op), std::move(inputs)});
  };
  LayerNormalization op;
  add("last_axis", op, {f32({4, 37}), f32({37}), f32({37})});
  add("no_bias", op, {f32({2, 5, 16}), f32({16})});
  add("scalar_scale", op, {f32({3, 8}), f32({}), f32({1})});
  op.axis = 1;
  op.epsilon = 1e-3F;
  add("axes_from_1", op, {f32({2, 3, 4, 5}), f32({3, 4, 5}), f32({3, 1, 1})});
  op.axis = -2;
  add("axes_from_minus_2", op, {f32({2, 3, 33, 37}), f32({33, 37}), f32({37})});
  op.axis = 0;
  add("everything", op, {f32({6, 7}), f32({6, 7}), f32({7})});
}

void add_group_cases(std::vector<OpCase>& cases) {
  const auto add = [&](std::string name, std::int64_t groups, Shape x) {
    GroupNormalization op;
    op.num_groups = groups;
    cases.push_back({std::move(name), make_op(op), {f32(x), f32({x[1]}), f32({x[1]})}});
  };
  add("two_groups", 2, {2, 6, 4, 5});
  add("one_group", 1, {2, 5, 3, 3});
  add("group_per_channel", 3, {2, 3, 5, 4});
  add("beyond_a_block", 2, {1, 4, 25, 29});
  add("line", 4, {2, 8, 7});
  add("features", 3, {4, 18});
}

void add_instance_cases(std::vector<OpCase>& cases) {
  const auto add = [&](std::string name, float epsilon, Shape x) {
    InstanceNormalization op;
    op.epsilon = epsilon;
    cases.push_back({std::move(name), make_op(op), {f32(x), f32({x[1]}), f32({x[1]})}});
  };
  add("plane", 1e-5F, {2, 3, 6, 7});
  add("line", 1e-5F, {2, 17, 8});
  add("epsilon", 0.1F, {1, 4, 5, 5});
}

}  // namespace

void add_normalization_cases(std::vector<OpCase>& cases) {
  add_batch_cases(cases);
  add_layer_cases(cases);
  add_group_cases(cases);
  add_instance_cases(cases);
}

}  // namespace triptych::conformance
