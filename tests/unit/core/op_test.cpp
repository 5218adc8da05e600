// Properties that OpFamily reads off the members of an operator.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace triptych {
namespace {

/// An operator that says nothing of itself.
template <class Derived>
struct Bare : OpOf<Derived> {
  static constexpr std::string_view kName = "Bare";
  static constexpr std::string_view kSummary = "y = x";
  std::vector<TensorSpec> infer(Specs inputs) const override { return {inputs[0]}; }
  void reference(std::span<const RefTensor>, std::span<RefTensor>) const override {}
};

struct Plain : Bare<Plain> {};

struct WithGradient : Bare<WithGradient> {
  std::vector<ValueId> gradient(const GradientContext& context) const override {
    return {context.output_gradients[0]};
  }
};

struct WithExpansion : Bare<WithExpansion> {
  std::vector<ValueId> expand(OpEmitter&, Values inputs) const override { return {inputs[0]}; }
};

struct SometimesExpanded : Bare<SometimesExpanded> {
  bool expands = false;
  static void visit(auto& self, auto& visitor) { visitor("expands", self.expands); }
  bool composite() const override { return expands; }
  std::vector<ValueId> expand(OpEmitter&, Values inputs) const override { return {inputs[0]}; }
};

struct WithConstants : Bare<WithConstants> {
  static constexpr ErrorBound kErrorBound = {.terms = 3};
  static constexpr int kMultiplicands[] = {1, 2};
};

TEST(Op, without_members_has_no_attributes) {
  EXPECT_TRUE(Plain{}.attributes().empty());
  EXPECT_EQ(Plain{}.with_attributes({})->name(), "Bare");
  const std::vector<Attribute> unknown = {{"axis", std::int64_t{1}}};
  EXPECT_THROW(Plain{}.with_attributes(unknown), InvalidArgument);
}

TEST(Op, is_differentiable_by_its_gradient_or_its_expansion) {
  EXPECT_FALSE(Plain{}.differentiable());
  EXPECT_TRUE(WithGradient{}.differentiable());
  EXPECT_FALSE(WithGradient{}.composite());
  EXPECT_TRUE(WithExpansion{}.composite());
  EXPECT_TRUE(WithExpansion{}.differentiable());
}

TEST(Op, may_be_composite_for_some_attributes) {
  SometimesExpanded op;
  EXPECT_FALSE(op.composite());
  EXPECT_FALSE(op.differentiable());
  op.expands = true;
  EXPECT_TRUE(op.composite());
  EXPECT_TRUE(op.differentiable());
}

TEST(Op, has_the_constants_that_it_states) {
  EXPECT_EQ(Plain{}.error_bound({}).terms, 0);
  EXPECT_TRUE(Plain{}.multiplicands().empty());
  EXPECT_EQ(WithConstants{}.error_bound({}).terms, 3);
  EXPECT_THAT(WithConstants{}.multiplicands(), testing::ElementsAre(1, 2));
}

TEST(Op, moves_every_operand_once_and_computes_nothing_by_default) {
  const std::vector<TensorSpec> specs = {{DType::F32, {3, 5}}};
  const auto cost = Plain{}.cost(specs, specs);
  EXPECT_EQ(cost.bytes, 2 * 3 * 5 * 4);
  EXPECT_EQ(cost.flops, 0);
}

}  // namespace
}  // namespace triptych
