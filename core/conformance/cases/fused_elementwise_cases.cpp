// SPDX-License-Identifier: Apache-2.0
#include "core/ops/fused_elementwise.h"

#include <limits>

#include "core/conformance/op_case.h"

namespace triptych::conformance {

void add_fused_elementwise_cases(std::vector<OpCase>& cases) {
  const auto add = [&](std::string name, std::string steps, std::vector<InputRule> inputs,
                       bool smooth = true) {
    FusedElementwise op;
    op.steps = std::move(steps);
    cases.push_back({std::move(name), make_op(op), std::move(inputs), smooth});
  };
  add("one_step", "Exp(.)", {f32({3, 5})});
  add("squared", "Mul(., .); Neg(.)", {f32({37})});
  add("residual", "Add(., 1); Relu(.)", {f32({2, 3, 4}), f32({2, 3, 4})}, false);
  add("gradients_meet", "Add(., 1); ReluGradient(., 2)", {f32({7, 9}), f32({7, 9}), f32({7, 9})},
      false);
  add("scalar", "Mul(., 1); Add(2, .)", {f32({5, 7}, 0, 1), f32({}, 0, 1), f32({1}, 0, 1)});
  add("per_channel", "Mul(., 1); Add(., 2); Tanh(.)",
      {f32({2, 3, 4, 5}), f32({3, 1, 1}), f32({3, 1, 1})});
  add("short_rows", "Sub(., 1); Mul(., 2); Add(., 3)",
      {f32({97, 24}, 2, 3), f32({97, 1}), f32({24}, 0.5, 1), f32({}, 0, 1)}, false);
  add("one_of_each", "Exp(.); Abs(.); Mul(., 1)", {f32({1}), f32({600}, 0.5, 1)});
  add("grows", "Exp(.); Mul(1, .)", {f32({4}), f32({3, 4})});
  add("every_input", "Mul(., 1); Abs(.); Max(., 2); Mul(3, .); Add(., 4); Mul(., 5)",
      {f32({6, 8}, 0.5, 1), f32({6, 8}, 0.5, 1), f32({8}, 2, 3), f32({6, 8}), f32({6, 1}),
       f32({6, 8})});
  add("same_input_twice", "Mul(., 1); Add(., 1)", {f32({11}, 0, 1), f32({11}, 0, 1)});
  // Each kind once, in a domain where none is steep.
  add("unary_kinds", "Sigmoid(.); Sqrt(.); Log(.); Abs(.); Erf(.); Gelu(.); LeakyRelu(.); Clip(.)",
      {f32({70}, 0.5, 2)});
  add("more_unary_kinds", "Reciprocal(.); Tanh(.); Exp(.); Neg(.); Sign(.)", {f32({70}, 0.5, 2)},
      false);
  add("activations", "Softplus(.); Softsign(.)", {f32({70}, 0.5, 2)}, false);
  add("binary_kinds", "Pow(., 1); Div(., 2); Min(., 3); Sub(4, .); SigmoidGradient(., 5)",
      {f32({70}, 0.5, 1), f32({70}, 1, 2), f32({70}, 1, 2), f32({70}, 3, 4), f32({70}, 2, 3),
       f32({70})},
      false);
  add("tanh_gradient", "TanhGradient(., 1)", {f32({33}), f32({33})}, false);
  add("attributes", "Mul(., 1); Clip(., min=0.25, max=0.75); Mul(., 2); Elu(., alpha=2)",
      {f32({70}, 0, 1), f32({}, 0, 1), f32({70}, 0, 1)}, false);
  add("ramp", "Mul(., 1); Add(., 2); Clip(., min=0.25, max=0.75); Mul(., 3)",
      {f32({700}, 0, 1), f32({}, 0, 1), f32({1}, 0, 1), f32({700}, 0, 1)}, false);
  const double tiny = 0x1p-126, nan = std::numeric_limits<double>::quiet_NaN();
  const auto edges = exactly(DType::F32, {8}, {tiny, -tiny, tiny / 2, -tiny / 2, 0, -0.0, nan, 1});
  add("relu_of_edges", "Relu(.)", {edges}, false);
  add("many", "Add(., 1); Relu(.)", {f32({3, 1000}), f32({3, 1000})}, false);
}

}  // namespace triptych::conformance
