// SPDX-License-Identifier: Apache-2.0
#include "core/ops/batch_normalization.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

InputRule state(InputRule rule) {
  rule.state = true;
  return rule;
}

void add_problem(std::vector<OpCase>& cases, std::string name, const Shape& x) {
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

}  // namespace

void add_batch_normalization_cases(std::vector<OpCase>& cases) {
  add_problem(cases, "maps", {3, 5, 4, 6});
  add_problem(cases, "one_channel", {2, 1, 5, 5});
  add_problem(cases, "odd_channels", {2, 17, 3, 3});
  add_problem(cases, "rows_beyond_a_block", {2, 2, 33, 37});
  add_problem(cases, "rows_of_whole_blocks", {2, 2, 32, 65});
  add_problem(cases, "lines", {4, 3, 9});
  add_problem(cases, "features", {16, 7});
  add_problem(cases, "single_image", {1, 3, 8, 8});
  add_problem(cases, "many_images", {300, 2, 3});
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

}  // namespace triptych::conformance
