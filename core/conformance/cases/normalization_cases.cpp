// SPDX-License-Identifier: Apache-2.0
#include "core/ops/normalization.h"

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

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
  add_layer_cases(cases);
  add_group_cases(cases);
  add_instance_cases(cases);
}

}  // namespace triptych::conformance
