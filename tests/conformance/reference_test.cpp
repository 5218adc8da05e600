// The float64 references check every backend. This checks them: composite operators equal their
// expansions, and every gradient equals finite differences.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/autodiff/autodiff.h"
#include "core/base/random.h"
#include "core/graph/passes/passes.h"
#include "core/graph/reference.h"
#include "core/ops/all_ops.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "experiments/check/case_runner.h"

namespace triptych::conformance {
namespace {

constexpr int kProbesPerInput = 24;

std::string test_name(const testing::TestParamInfo<OpCase>& info) {
  return fmt::format("{}_{}", info.param.op->name(), info.param.name);
}

class Reference : public testing::TestWithParam<OpCase> {};
INSTANTIATE_TEST_SUITE_P(Ops, Reference, testing::ValuesIn(all_cases()), test_name);

TEST_P(Reference, is_deterministic_and_not_empty_handed) {
  const auto inputs = to_references(make_inputs(GetParam()));
  const auto outputs = evaluate_reference(*GetParam().op, inputs);
  ASSERT_FALSE(outputs.empty());
  for (const auto& output : outputs) {
    EXPECT_EQ(static_cast<std::int64_t>(output.values.size()), output.spec.shape.elements());
  }
}

/// Part `place` of `parts` of an axis. All of it for kWhole, and for kTerm an equal share of a sum.
RefTensor part_of(const RefTensor& whole, std::int64_t axis, std::int64_t place,
                  std::int64_t parts) {
  auto part = whole;
  if (axis == Sharding::kTerm)
    for (double& value : part.values) value /= static_cast<double>(parts);
  if (axis < 0) return part;
  const auto& shape = whole.spec.shape;
  const auto rows = shape.elements_between(0, axis),
             row = shape.elements_between(axis, shape.rank());
  auto dims = shape.dims();
  dims[static_cast<std::size_t>(axis)] /= parts;
  part.spec.shape = Shape(dims);
  part.values.clear();
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto begin = whole.values.begin() + r * row + place * (row / parts);
    part.values.insert(part.values.end(), begin, begin + row / parts);
  }
  return part;
}

bool divides(const std::vector<RefTensor>& tensors, const std::vector<std::int64_t>& axes,
             std::int64_t parts) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (axes[i] >= 0 && tensors[i].spec.shape[axes[i]] % parts != 0) return false;
  return true;
}

bool is_near(double actual, double expected) {
  return actual == expected || (std::isnan(actual) && std::isnan(expected)) ||
         std::fabs(actual - expected) <= 1e-5 * (1 + std::fabs(expected));
}

void expect_near(const RefTensor& actual, const RefTensor& expected) {
  ASSERT_EQ(actual.spec, expected.spec);
  for (std::size_t i = 0; i < expected.values.size(); ++i)
    ASSERT_PRED2(is_near, actual.values[i], expected.values[i]) << "element " << i;
}

/// Each part computes its share of the whole.
void check_parts(const OpCase& test, const std::vector<RefTensor>& inputs,
                 const std::vector<RefTensor>& whole, const Sharding& rule, std::int64_t parts) {
  auto sums = whole;
  for (auto& sum : sums) std::ranges::fill(sum.values, 0.0);
  for (std::int64_t place = 0; place < parts; ++place) {
    std::vector<RefTensor> own;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      own.push_back(part_of(inputs[i], rule.inputs[i], place, parts));
    const auto outputs = evaluate_reference(rule.op ? *rule.op : *test.op, own);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const bool is_term = rule.outputs[o] == Sharding::kTerm;
      if (!is_term) expect_near(outputs[o], part_of(whole[o], rule.outputs[o], place, parts));
      for (std::size_t j = 0; is_term && j < outputs[o].values.size(); ++j)
        sums[o].values[j] += outputs[o].values[j];
    }
  }
  for (std::size_t o = 0; o < whole.size(); ++o)
    if (rule.outputs[o] == Sharding::kTerm) expect_near(sums[o], whole[o]);
}

TEST_P(Reference, of_parts_makes_up_the_whole) {
  const auto& test = GetParam();
  const auto inputs = to_references(make_inputs(test));
  const auto whole = evaluate_reference(*test.op, inputs);
  std::vector<TensorSpec> in, out;
  for (const auto& input : inputs) in.push_back(input.spec);
  for (const auto& output : whole) out.push_back(output.spec);
  for (const std::int64_t parts : {2, 3}) {
    for (const auto& rule : test.op->shardings(in, out, parts)) {
      ASSERT_EQ(rule.inputs.size(), in.size());
      ASSERT_EQ(rule.outputs.size(), out.size());
      if (divides(inputs, rule.inputs, parts) && divides(whole, rule.outputs, parts))
        check_parts(test, inputs, whole, rule, parts);
    }
  }
}

TEST_P(Reference, of_a_composite_equals_its_expansion) {
  const auto& test = GetParam();
  if (!test.op->composite()) GTEST_SKIP() << test.op->name() << " is a primitive";
  const auto tensors = make_inputs(test);
  const auto inputs = to_references(tensors);
  const auto expected = evaluate_reference(*test.op, inputs);
  const Graph graph = expand_composites(make_graph(test, tensors));
  std::unordered_map<ValueId, RefTensor> given;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto name = fmt::format("x{}", i);
    if (graph.contains(name)) given[graph.find(name)] = inputs[i];
  }
  const auto values = evaluate_reference(graph, given);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& actual = values[graph.outputs()[i].value.index()];
    ASSERT_EQ(actual.spec, expected[i].spec);
    for (std::size_t j = 0; j < actual.values.size(); ++j) {
      const double scale = 1 + std::fabs(expected[i].values[j]);
      if (std::isnan(expected[i].values[j])) {
        ASSERT_TRUE(std::isnan(actual.values[j])) << "element " << j;
        continue;
      }
      ASSERT_NEAR(actual.values[j], expected[i].values[j], 1e-5 * scale) << "element " << j;
    }
  }
}

/// Outputs a gradient can flow back from. Operators that update state have only their first.
std::size_t differentiable_outputs(const OpCase& test, std::size_t count) {
  return test.op->updates(static_cast<int>(test.inputs.size())).empty() ? count : 1;
}

/// Weights that turn all outputs into one number: loss = sum of weight * output.
std::vector<Tensor> loss_weights(const OpCase& test, const std::vector<RefTensor>& outputs) {
  std::vector<Tensor> weights;
  for (std::size_t i = 0; i < differentiable_outputs(test, outputs.size()); ++i) {
    Tensor weight(TensorSpec{DType::F32, outputs[i].spec.shape});
    RandomStream random(7, i);
    for (auto& value : weight.as<float>()) value = random.uniform(-1, 1);
    weights.push_back(std::move(weight));
  }
  return weights;
}

double loss_of(const OpCase& test, const std::vector<RefTensor>& inputs,
               const std::vector<Tensor>& weights) {
  const auto outputs = evaluate_reference(*test.op, inputs);
  double loss = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!is_floating(outputs[i].spec.dtype)) continue;
    const auto weight = weights[i].as<float>();
    for (std::size_t j = 0; j < weight.size(); ++j) loss += weight[j] * outputs[i].values[j];
  }
  return loss;
}

/// The gradients of the loss by autodiff, evaluated in float64, per input (empty: no gradient).
std::vector<std::vector<double>> autodiff_gradients(const OpCase& test,
                                                    const std::vector<Tensor>& inputs,
                                                    const std::vector<Tensor>& weights) {
  Graph graph = make_graph(test, inputs);
  ValueId loss;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto y = graph.outputs()[i].value;
    if (!is_floating(graph.spec(y).dtype)) continue;
    const auto weight = graph.constant(weights[i].clone());
    const auto product = graph.emit_one(make_op(Binary(BinaryKind::Mul)), {y, weight});
    const auto sum = graph.emit_one(make_op(Reduce(ReduceKind::Sum, {}, false)), {product});
    loss = loss.valid() ? graph.emit_one(make_op(Binary(BinaryKind::Add)), {loss, sum}) : sum;
  }
  std::vector<ValueId> wanted;
  std::unordered_map<ValueId, RefTensor> given;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto id = graph.find(fmt::format("x{}", i));
    given[id] = to_reference(inputs[i]);
    if (inputs[i].dtype() == DType::F32) wanted.push_back(id);
  }
  const auto gradients = add_gradients(graph, loss, wanted);
  const auto values = evaluate_reference(graph, std::move(given));
  std::vector<std::vector<double>> result;
  for (std::size_t i = 0, next = 0; i < inputs.size(); ++i) {
    const bool has_gradient = inputs[i].dtype() == DType::F32;
    result.push_back(has_gradient ? values[gradients[next++].index()].values
                                  : std::vector<double>{});
  }
  return result;
}

/// Inputs that the operators treat as data without a gradient: targets of losses and old
/// statistics.
bool has_no_gradient(const OpCase& test, std::size_t input) {
  const auto name = test.op->name();
  if (test.inputs[input].state) return true;
  return input == 1 && (name == "BinaryCrossEntropyWithLogits" || name == "DiceLoss");
}

/// Gradients that the operator's rule gives when input `wanted` alone is, other than the outputs of
/// the node that computes its gradient.
std::vector<std::size_t> gradients_beside(const OpCase& test, std::size_t wanted) {
  Graph graph = make_graph(test, make_inputs(test));
  const Node node(graph.nodes().front());
  std::vector<ValueId> output_gradients;
  for (const auto output : node.outputs)
    output_gradients.push_back(graph.constant(Tensor(graph.spec(output))));
  const auto flags = std::make_unique<bool[]>(node.inputs.size());
  flags[wanted] = true;
  const auto results = test.op->gradient(
      {graph, node.inputs, node.outputs, output_gradients, {flags.get(), node.inputs.size()}});
  std::vector<std::size_t> others;
  const auto own = results[wanted];
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i == wanted || !results[i].valid()) continue;
    const bool same_node =
        own.valid() && graph.value(own).producer == graph.value(results[i]).producer;
    if (!same_node) others.push_back(i);
  }
  return others;
}

TEST_P(Reference, has_no_gradient_that_nobody_wants) {
  const auto& test = GetParam();
  if (!test.op->differentiable() || test.op->composite() || test.inputs.size() < 2)
    GTEST_SKIP() << test.op->name() << " has no gradients of several inputs";
  if (test.op->name() == "BatchNormalization") GTEST_SKIP() << "its gradients share their terms";
  for (std::size_t wanted = 0; wanted < test.inputs.size(); ++wanted) {
    if (test.inputs[wanted].spec.dtype != DType::F32) continue;
    EXPECT_EQ(gradients_beside(test, wanted), std::vector<std::size_t>()) << "beside " << wanted;
  }
}

TEST_P(Reference, gradient_equals_finite_differences) {
  const auto& test = GetParam();
  if (!test.op->differentiable()) GTEST_SKIP() << test.op->name() << " has no gradient";
  if (!test.check_gradient) GTEST_SKIP() << "the case has kinks or is not in float32";
  const auto tensors = make_inputs(test);
  auto inputs = to_references(tensors);
  const auto weights = loss_weights(test, evaluate_reference(*test.op, inputs));
  const auto gradients = autodiff_gradients(test, tensors, weights);
  const double loss = loss_of(test, inputs, weights);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (gradients[i].empty() || has_no_gradient(test, i)) continue;
    RandomStream random(11, i);
    for (int probe = 0; probe < kProbesPerInput; ++probe) {
      const auto j = static_cast<std::size_t>(
          random.below(static_cast<std::int64_t>(inputs[i].values.size())));
      const double x = inputs[i].values[j];
      const double step = 1e-5 * std::max(1.0, std::fabs(x));
      inputs[i].values[j] = x + step;
      const double above = loss_of(test, inputs, weights);
      inputs[i].values[j] = x - step;
      const double below = loss_of(test, inputs, weights);
      inputs[i].values[j] = x;
      const double slope = (above - below) / (2 * step);
      ASSERT_NEAR(gradients[i][j], slope, 1e-4 * std::fabs(slope) + 1e-6 * (1 + std::fabs(loss)))
          << "input " << i << ", element " << j;
    }
  }
}

TEST(Conformance, every_operator_has_a_case) {
  const auto cases = all_cases();
  for (const auto& op : all_ops()) {
    const bool found = std::ranges::any_of(
        cases, [&](const OpCase& test) { return test.op->name() == op->name(); });
    EXPECT_TRUE(found) << op->name() << " has no conformance case";
  }
}

}  // namespace
}  // namespace triptych::conformance
