// SPDX-License-Identifier: Apache-2.0
#include "core/ops/losses.h"

#include <fmt/core.h>

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

InputRule one(double value = 1, Shape shape = {}) {
  return exactly(DType::F32, std::move(shape), {value});
}

/// Logits and targets of a mask, for every loss with these two inputs.
std::vector<std::pair<std::string, std::vector<InputRule>>> masks() {
  const auto hard = exactly(DType::F32, {2, 4}, {0, 1, 1, 0, 1, 0, 0, 1});
  return {{"soft_targets", {f32({2, 1, 5, 7}, -3, 3), f32({2, 1, 5, 7}, 0, 1)}},
          {"hard_targets", {f32({2, 4}, -3, 3), hard}},
          {"rank0", {f32({}), f32({}, 0, 1)}},
          {"beyond_one_block", {f32({3, 2500}, -3, 3), f32({3, 2500}, 0, 1)}},
          {"large_logits",
           {exactly(DType::F32, {2, 4}, {-80, 80, -80, 80, 100, -100, 30, -30}), hard}}};
}

void add_binary_losses(std::vector<OpCase>& cases) {
  DiceLoss half;
  half.smooth = 0.5F;
  for (const auto& [name, inputs] : masks()) {
    const bool smooth = name != "large_logits";
    cases.push_back({name, make_op(BinaryCrossEntropyWithLogits{}), inputs, smooth});
    cases.push_back({name, make_op(DiceLoss{}), inputs, smooth});
    cases.push_back({name + "_smooth", make_op(half), inputs, smooth});
    auto with_gradient = inputs;
    with_gradient.push_back(one());
    cases.push_back({name, make_op(BinaryCrossEntropyWithLogitsGradient{}), with_gradient});
  }
  cases.push_back({"loss_scale",
                   make_op(BinaryCrossEntropyWithLogitsGradient{}),
                   {f32({3, 5}, -3, 3), f32({3, 5}, 0, 1), one(-0.5, {1})}});
}

template <class Loss>
OpPtr softmax_loss(const std::string& reduction, std::int64_t ignore_index = -1) {
  Loss op;
  op.reduction = reduction;
  op.ignore_index = ignore_index;
  return make_op(op);
}

struct Labelled {
  std::string name;
  InputRule scores, labels;
  std::int64_t ignore_index = -1;
};

std::vector<Labelled> labelled() {
  const auto labels = [](DType dtype, Shape shape, double low, double high) {
    return of(dtype, std::move(shape), low, high);
  };
  const auto few = [](std::vector<double> values) {
    return exactly(DType::I64, {4}, std::move(values));
  };
  const auto scores = f32({4, 5}, -3, 3);
  return {{"rows", scores, labels(DType::I64, {4}, 0, 4)},
          {"i32_labels", scores, labels(DType::I32, {4}, 0, 4)},
          {"pixels", f32({2, 3, 4, 5}, -3, 3), labels(DType::I64, {2, 4, 5}, 0, 2)},
          {"many_pixels", f32({2, 3, 30, 50}), labels(DType::I32, {2, 30, 50}, 0, 2)},
          {"many_classes", f32({2, 1500}), labels(DType::I64, {2}, 0, 1499)},
          {"one_class", f32({3, 1}), labels(DType::I64, {3}, 0, 0)},
          {"ignores_minus_one", f32({2, 3, 40}), labels(DType::I64, {2, 40}, -1, 2)},
          {"ignores_a_class", f32({2, 3, 40}), labels(DType::I32, {2, 40}, 0, 2), 1},
          {"ignores_255", scores, few({255, 1, 255, 4}), 255},
          {"ignores_all", scores, few({-1, -1, -1, -1})},
          {"label_out_of_range", scores, few({9.3e18, 5, -9.3e18, 4})},
          {"large_logits", f32({4, 5}, -80, 80), few({0, 1, 2, 3})}};
}

void add_softmax_losses(std::vector<OpCase>& cases) {
  for (const auto& [name, scores, labels, ignored] : labelled()) {
    const bool smooth = name != "large_logits";
    for (const std::string reduction : {"mean", "sum", "none"}) {
      const auto full_name = fmt::format("{}_{}", name, reduction);
      cases.push_back({full_name,
                       softmax_loss<SoftmaxCrossEntropyLoss>(reduction, ignored),
                       {scores, labels},
                       smooth});
      const auto dloss = reduction == "none" ? f32(labels.spec.shape) : one();
      cases.push_back({full_name,
                       softmax_loss<SoftmaxCrossEntropyLossGradient>(reduction, ignored),
                       {scores, labels, dloss}});
    }
  }
}

}  // namespace

void add_losses_cases(std::vector<OpCase>& cases) {
  add_binary_losses(cases);
  add_softmax_losses(cases);
}

}  // namespace triptych::conformance
