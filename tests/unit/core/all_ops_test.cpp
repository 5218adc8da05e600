// SPDX-License-Identifier: Apache-2.0
#include "core/ops/all_ops.h"
#include "core/ops/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/optimizers.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace triptych {
namespace {

TEST(AllOps, have_unique_names) {
  std::set<std::string_view> names;
  for (const auto& op : all_ops()) EXPECT_TRUE(names.insert(op->name()).second) << op->name();
}

TEST(AllOps, contain_each_kind_of_each_family) {
  for (const auto kind : all_unary_kinds()) EXPECT_NO_THROW(find_op(Unary(kind).name()));
  for (const auto kind : all_binary_kinds()) EXPECT_NO_THROW(find_op(Binary(kind).name()));
  for (const auto kind : all_reduce_kinds()) EXPECT_NO_THROW(find_op(Reduce(kind).name()));
}

TEST(AllOps, are_found_by_name) {
  for (const auto& op : all_ops()) EXPECT_EQ(&find_op(op->name()), op.get());
}

TEST(AllOps, refuse_an_unknown_name) {
  EXPECT_THAT([] { find_op("Convolve"); },
              testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr("\"Convolve\"")));
}

TEST(AllOps, have_a_summary) {
  for (const auto& op : all_ops()) EXPECT_FALSE(op->summary().empty()) << op->name();
}

/// Another value of the same type. An integer may be a flag and stays 0 or 1.
struct Change {
  AttributeValue operator()(std::int64_t value) const { return std::int64_t{value == 0}; }
  AttributeValue operator()(float value) const { return value + 0.25F; }
  AttributeValue operator()(const std::string& value) const {
    if (value == name_of(ReductionOrder::RankOrdered)) return std::string("ring");  // a choice
    return value + "x";
  }
  AttributeValue operator()(std::vector<std::int64_t> value) const {
    value.push_back(3);
    return value;
  }
  AttributeValue operator()(std::vector<float> value) const {
    value.push_back(3);
    return value;
  }
};

TEST(AllOps, keep_their_attributes_when_copied) {
  for (const auto& op : all_ops()) {
    auto attributes = op->attributes();
    for (auto& attribute : attributes) attribute.value = std::visit(Change{}, attribute.value);
    const auto copy = op->with_attributes(attributes);
    EXPECT_EQ(copy->name(), op->name());
    EXPECT_EQ(copy->attributes(), attributes) << op->name();
  }
}

TEST(AllOps, refuse_an_unknown_attribute) {
  const std::vector<Attribute> unknown = {{"no_such_attribute", std::int64_t{1}}};
  for (const auto& op : all_ops()) {
    EXPECT_THROW(op->with_attributes(unknown), InvalidArgument) << op->name();
  }
}

TEST(AllOps, refuse_a_wrong_number_of_inputs_by_name) {
  for (const auto& op : all_ops()) {
    EXPECT_THAT([&] { op->infer({}); }, testing::ThrowsMessage<InvalidArgument>(testing::StartsWith(
                                            "[" + std::string(op->name()) + "] ")))
        << op->name();
  }
}

TEST(AllOps, are_differentiable_when_composite) {
  for (const auto& op : all_ops()) {
    EXPECT_TRUE(!op->composite() || op->differentiable()) << op->name();
  }
}

TEST(SgdUpdate, updates_step_parameters_and_velocities_in_place) {
  SgdUpdate op;
  EXPECT_THAT(op.updates(6),
              testing::ElementsAre(testing::Pair(0, 1), testing::Pair(1, 2), testing::Pair(2, 3)));
  op.momentum = 0.9F;
  EXPECT_THAT(op.updates(8),
              testing::ElementsAre(testing::Pair(0, 1), testing::Pair(1, 2), testing::Pair(2, 3),
                                   testing::Pair(3, 6), testing::Pair(4, 7)));
  EXPECT_THROW(op.parameter_count(7), InvalidArgument);
}

TEST(AdamUpdate, updates_step_parameters_and_both_moments_in_place) {
  EXPECT_THAT(AdamUpdate{}.updates(6),
              testing::ElementsAre(testing::Pair(0, 1), testing::Pair(1, 2), testing::Pair(2, 4),
                                   testing::Pair(3, 5)));
}

TEST(AdamUpdate, corrects_its_bias_as_a_power_does) {
  EXPECT_EQ(bias_correction(0.5F, 1), 0.5);
  EXPECT_EQ(bias_correction(0.5F, 3), 0.875);
  EXPECT_NEAR(bias_correction(0.999F, 1000), 1 - std::pow(double{0.999F}, 1000), 1e-14);
  EXPECT_EQ(bias_correction(0.9F, 1'000'000), 1);
}

TEST(Reduce, finds_contiguous_axes_past_sizes_of_one) {
  const auto geometry = ReduceGeometry::of(Reduce(ReduceKind::Sum, {0, 2}), {6, 1, 7, 5});
  EXPECT_TRUE(geometry.contiguous);
  EXPECT_EQ(geometry.outer, 1);
  EXPECT_EQ(geometry.count, 42);
  EXPECT_EQ(geometry.inner, 5);
}

TEST(Reduce, tells_axes_that_lie_apart) {
  const auto geometry = ReduceGeometry::of(Reduce(ReduceKind::Sum, {0, -1}), {2, 3, 4});
  EXPECT_FALSE(geometry.contiguous);
  EXPECT_EQ(geometry.count, 8);
  EXPECT_THAT(geometry.reduced, testing::ElementsAre(true, false, true));
}

TEST(Reduce, refuses_an_empty_mean) {
  const TensorSpec x{DType::F32, {3, 0}};
  EXPECT_THROW(Reduce(ReduceKind::Mean, {1}).infer({&x, 1}), InvalidArgument);
  EXPECT_EQ(Reduce(ReduceKind::Sum, {1}).infer({&x, 1}).front().shape, (Shape{3, 1}));
}

TEST(Reduce, of_a_largest_or_smallest_is_exact_and_a_sum_rounds_at_every_term) {
  const TensorSpec x{DType::F32, {3, 1000}};
  for (const auto kind : {ReduceKind::Max, ReduceKind::Min}) {
    const auto bound = Reduce(kind, {1}).error_bound({&x, 1});
    EXPECT_EQ(bound.ulps, 0);
    EXPECT_EQ(bound.terms, 0);
  }
  for (const auto kind : {ReduceKind::Sum, ReduceKind::Mean})
    EXPECT_GT(Reduce(kind, {1}).error_bound({&x, 1}).terms, 1);
}

TEST(Gelu, has_two_forms) {
  const TensorSpec x{DType::F32, {2}};
  Unary gelu(UnaryKind::Gelu);
  for (const char* form : {"none", "tanh"}) {
    gelu.approximate = form;
    EXPECT_NO_THROW(gelu.infer({&x, 1}));
  }
  gelu.approximate = "sigmoid";
  EXPECT_THROW(gelu.infer({&x, 1}), InvalidArgument);
}

TEST(BatchNormalization, rounds_at_every_element_of_its_own_statistics) {
  const auto bound = [](bool training, std::int64_t rows) {
    const TensorSpec channels{DType::F32, {2}};
    const TensorSpec inputs[] = {{DType::F32, {rows, 2}}, channels, channels, channels, channels};
    BatchNormalization op;
    op.training_mode = training;
    return op.error_bound(inputs).absolute;
  };
  EXPECT_EQ(bound(false, 4), bound(false, 40000));
  EXPECT_LT(bound(true, 4), bound(true, 40000));
}

TEST(BatchNormalization, counts_the_work_of_its_own_statistics) {
  BatchNormalization op;
  const std::vector<TensorSpec> inputs = {{DType::F32, {2, 3, 4}}};
  op.training_mode = false;
  EXPECT_EQ(op.flops(inputs, {}), 2 * 24);  // a scale and an offset
  op.training_mode = true;
  EXPECT_EQ(op.flops(inputs, {}), 6 * 24);
}

TEST(Dropout, refuses_ratios_and_steps_that_make_no_sense) {
  const TensorSpec x{DType::F32, {2}}, step{DType::I64, {}};
  const auto infer = [&](const Dropout& op, const TensorSpec& second) {
    const TensorSpec inputs[] = {x, second};
    return op.infer(inputs).size();
  };
  Dropout op;
  op.training_mode = true;
  EXPECT_EQ(infer(op, step), 2U);
  EXPECT_THROW(op.infer({&x, 1}), InvalidArgument);
  EXPECT_THROW(infer(op, {DType::F32, {}}), InvalidArgument);
  EXPECT_THROW(infer(op, {DType::I64, {1}}), InvalidArgument);
  for (const float ratio : {-0.5F, 1.0F}) {
    op.ratio = ratio;
    EXPECT_THROW(infer(op, step), InvalidArgument) << ratio;
  }
  op.ratio = 0;
  EXPECT_EQ(infer(op, step), 2U);
  op.first_element = -1;
  EXPECT_THROW(infer(op, step), InvalidArgument);
}

TEST(Binary, names_both_shapes_that_do_not_broadcast) {
  const TensorSpec inputs[] = {{DType::F32, {2, 3}}, {DType::F32, {4}}};
  EXPECT_THAT([&] { Binary(BinaryKind::Add).infer(inputs); },
              testing::ThrowsMessage<InvalidArgument>(
                  testing::StrEq("[Add] shapes [2, 3] and [4] do not broadcast")));
}

}  // namespace
}  // namespace triptych
