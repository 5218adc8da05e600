// SPDX-License-Identifier: Apache-2.0
#include "core/nn/losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/autodiff/autodiff.h"
#include "core/base/random.h"
#include "core/graph/reference.h"

namespace triptych {
namespace {

constexpr std::int64_t kImages = 2, kSide = 4;
constexpr std::int64_t kPixels = kImages * kSide * kSide;

struct Case {
  LossKind kind;
  std::int64_t classes;  ///< logits' channels
  bool weighted;
};

/// Logits [N, C, H, W], classes and weights of the pixels.
struct Problem {
  std::vector<double> logits, weights;
  std::vector<int> classes;

  explicit Problem(const Case& c) {
    RandomStream random(3, static_cast<std::uint64_t>(c.classes));
    for (std::int64_t i = 0; i < kPixels * c.classes; ++i)
      logits.push_back(static_cast<float>(2 * random.normal()));
    for (std::int64_t i = 0; i < kPixels; ++i) {
      classes.push_back(static_cast<int>(random.below(std::max<std::int64_t>(2, c.classes))));
      weights.push_back(!c.weighted  ? 1
                        : i % 5 == 0 ? 0
                                     : static_cast<float>(random.uniform(0, 3)));
    }
  }
};

/// p[pixel][class] of all classes, the background too.
std::vector<std::vector<double>> probabilities(const Case& c, const std::vector<double>& logits) {
  std::vector<std::vector<double>> p(kPixels);
  const auto plane = kSide * kSide;
  for (std::int64_t i = 0; i < kPixels; ++i) {
    std::vector<double> scores;
    if (c.classes == 1) scores.push_back(0);
    for (std::int64_t k = 0; k < c.classes; ++k)
      scores.push_back(
          logits[static_cast<std::size_t>((i / plane * c.classes + k) * plane + i % plane)]);
    double sum = 0;
    for (auto& score : scores) sum += score = std::exp(score);
    for (auto& score : scores) p[static_cast<std::size_t>(i)].push_back(score / sum);
  }
  return p;
}

/// The stated formulas, in double.
double expected(const Case& c, const Problem& problem, const std::vector<double>& logits) {
  const auto p = probabilities(c, logits);
  double entropy = 0, dice = 0;
  for (std::size_t i = 0; i < kPixels; ++i)
    entropy -=
        problem.weights[i] * std::log(p[i][static_cast<std::size_t>(problem.classes[i])]) / kPixels;
  const auto classes = std::max<std::int64_t>(2, c.classes);
  for (int k = 1; k < classes; ++k) {
    double overlap = 0, total = 0;
    for (std::size_t i = 0; i < kPixels; ++i) {
      const double z = problem.classes[i] == k ? 1 : 0, w = problem.weights[i];
      overlap += w * p[i][static_cast<std::size_t>(k)] * z;
      total += w * (p[i][static_cast<std::size_t>(k)] + z);
    }
    dice += (2 * overlap + 1) / (total + 1) / static_cast<double>(classes - 1);
  }
  return (c.kind != LossKind::Dice ? entropy : 0) +
         (c.kind != LossKind::CrossEntropy ? 1 - dice : 0);
}

Tensor target_of(const Case& c, const Problem& problem, const TensorSpec& spec) {
  Tensor target(spec);
  const auto plane = kSide * kSide;
  for (std::int64_t i = 0; i < kPixels; ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (spec.dtype == DType::I64) {
      target.as<std::int64_t>()[k] = problem.classes[k];
    } else if (!c.weighted) {
      target.as<float>()[k] = static_cast<float>(problem.classes[k]);
    } else {
      const auto at = static_cast<std::size_t>(i / plane * 2 * plane + i % plane);
      target.as<float>()[at] = static_cast<float>(problem.classes[k]);
      target.as<float>()[at + static_cast<std::size_t>(plane)] =
          static_cast<float>(problem.weights[k]);
    }
  }
  return target;
}

class Losses : public ::testing::TestWithParam<Case> {};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto kind : {LossKind::CrossEntropy, LossKind::Dice, LossKind::DiceCrossEntropy})
    for (const std::int64_t classes : {1, 2, 4})
      for (const bool weighted : {false, true}) cases.push_back({kind, classes, weighted});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Losses, ::testing::ValuesIn(all_cases()), [](const auto& tried) {
  auto name = std::string(name_of(tried.param.kind)) + "_" + std::to_string(tried.param.classes) +
              (tried.param.weighted ? "_weighted" : "");
  std::ranges::replace(name, '-', '_');
  return name;
});

// The gradient against differences of the stated formula.
TEST_P(Losses, have_the_stated_values_and_gradients) {
  const auto& c = GetParam();
  const Problem problem(c);
  Graph graph;
  const TensorSpec spec{DType::F32, {kImages, c.classes, kSide, kSide}};
  const auto logits = graph.add_input("logits", spec);
  const auto wanted = target_spec(spec, c.kind, c.weighted);
  const auto target = graph.add_input("target", wanted);
  const auto loss = training_loss(graph, c.kind, logits, target, c.weighted);
  const std::vector<ValueId> of = {logits};
  const auto gradient = add_gradients(graph, loss, of).front();
  Tensor x(spec);
  std::ranges::copy(problem.logits, x.as<float>().begin());
  std::unordered_map<ValueId, RefTensor> given;
  given.emplace(logits, to_reference(x));
  given.emplace(target, to_reference(target_of(c, problem, wanted)));
  const auto values = evaluate_reference(graph, std::move(given));
  EXPECT_NEAR(values[loss.index()].values[0], expected(c, problem, problem.logits), 1e-6);
  for (std::size_t i = 0; i < problem.logits.size(); i += 7) {
    auto above = problem.logits, below = problem.logits;
    above[i] += 1e-4, below[i] -= 1e-4;
    const auto slope = (expected(c, problem, above) - expected(c, problem, below)) / 2e-4;
    EXPECT_NEAR(values[gradient.index()].values[i], slope, 1e-5) << i;
  }
}

/// A loss of two examples by the reference.
double loss_of(LossKind kind, const Tensor& logits, const Tensor& target) {
  Graph graph;
  const auto x = graph.add_input("logits", logits.spec());
  EXPECT_EQ(target_spec(logits.spec(), kind, false), target.spec());
  const auto y = graph.add_input("target", target.spec());
  const auto loss = training_loss(graph, kind, x, y, false);
  std::unordered_map<ValueId, RefTensor> given;
  given.emplace(x, to_reference(logits));
  given.emplace(y, to_reference(target));
  return evaluate_reference(graph, std::move(given))[loss.index()].values[0];
}

TEST(RowLosses, are_of_images_tokens_and_values) {
  const std::vector<float> logits = {0, 1, 2, 4, 0, -1};
  const auto entropy = [](double a, double b, double c, double own) {
    return std::log(std::exp(a) + std::exp(b) + std::exp(c)) - own;
  };
  const auto first = entropy(0, 1, 2, 1), second = entropy(4, 0, -1, 4);
  const std::vector<std::int64_t> classes = {1, 0}, one = {-100, 0};
  EXPECT_NEAR(loss_of(LossKind::CrossEntropy, {Shape{2, 3}, logits}, {Shape{2}, classes}),
              (first + second) / 2, 1e-6);
  EXPECT_NEAR(loss_of(LossKind::CrossEntropy, {Shape{1, 2, 3}, logits}, {Shape{1, 2}, classes}),
              (first + second) / 2, 1e-6)
      << "tokens, whose classes are the last axis";
  EXPECT_NEAR(loss_of(LossKind::CrossEntropy, {Shape{1, 2, 3}, logits}, {Shape{1, 2}, one}), second,
              1e-6)
      << "a token without a class";
  const std::vector<float> binary = {2, -1}, wanted = {1, 1};
  EXPECT_NEAR(loss_of(LossKind::CrossEntropy, {Shape{2, 1}, binary}, {Shape{2, 1}, wanted}),
              (std::log1p(std::exp(-2.0)) + std::log1p(std::exp(1.0))) / 2, 1e-6);
  EXPECT_NEAR(loss_of(LossKind::MeanSquaredError, {Shape{2, 1}, binary}, {Shape{2, 1}, wanted}),
              2.5, 1e-6);
}

TEST(RowLosses, have_no_pixels_to_weight_or_overlap) {
  Graph graph;
  const auto x = graph.add_input("x", {DType::F32, {2, 3}});
  const auto y = graph.add_input("y", {DType::I64, {2}});
  for (const auto kind : {LossKind::Dice, LossKind::DiceCrossEntropy})
    EXPECT_THROW(training_loss(graph, kind, x, y, false), InvalidArgument);
  EXPECT_THROW(training_loss(graph, LossKind::CrossEntropy, x, y, true), InvalidArgument);
}

}  // namespace
}  // namespace triptych
