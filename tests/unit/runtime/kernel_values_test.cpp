// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/kernel_values.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "core/base/float16.h"
#include "core/base/random.h"
#include "core/ops/matmul.h"
#include "tests/unit/runtime/reference_device.h"

namespace triptych {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSize = 8, kDepth = 20000;

/// Elements of y = a b, each a sum of kDepth products of noise, in one order or the other.
Tensor products(bool backwards) {
  Tensor y(TensorSpec{DType::F32, {kSize, kSize}});
  for (std::int64_t i = 0; i < kSize * kSize; ++i) {
    float sum = 0;
    for (std::int64_t n = 0; n < kDepth; ++n) {
      const auto k = static_cast<std::uint64_t>(backwards ? kDepth - 1 - n : n);
      const auto element = static_cast<std::uint64_t>(i);
      sum = std::fma(2 * random_uniform(1, element / kSize, k) - 1,
                     2 * random_uniform(2, element % kSize, k) - 1, sum);
    }
    y.as<float>()[static_cast<std::size_t>(i)] = sum;
  }
  return y;
}

std::string disagreement(const Tensor& got, const Tensor& expected,
                         Contract contract = Contract::F32, std::int64_t depth = kDepth) {
  const MatMul op;
  const Operand inputs[] = {Operand::dense({DType::F32, {kSize, depth}}),
                            Operand::dense({DType::F32, {depth, kSize}})};
  const Operand outputs[] = {Operand::dense(expected.spec())};
  const std::vector<const Tensor*> constants(2);
  KernelValues a, b;
  a.push_back(got.clone());
  b.push_back(expected.clone());
  return first_disagreement({op, inputs, outputs, contract, constants}, a, b);
}

TEST(KernelValues, sums_in_another_order_agree_and_one_wrong_element_does_not) {
  const auto forth = products(false);
  auto back = products(true);
  ASSERT_FALSE(std::ranges::equal(forth.bytes(), back.bytes()));
  EXPECT_EQ(disagreement(back, forth), "");
  back.as<float>()[11] += 20;  // of about 67
  EXPECT_THAT(disagreement(back, forth), HasSubstr("output 0: element 11 of the sample is "));
}

TEST(KernelValues, where_bits_are_promised_bits_are_compared) {
  const auto forth = products(false);
  for (const auto contract : {Contract::Bf16Exact, Contract::Int8}) {
    EXPECT_EQ(disagreement(forth, forth, contract), "");
    EXPECT_THAT(disagreement(products(true), forth, contract), HasSubstr("instead of"));
  }
}

TEST(KernelValues, a_sum_may_be_rounded_to_bfloat16_under_bf16_alone) {
  constexpr std::int64_t kFewTerms = 8;
  const auto sums = products(false);
  auto rounded = products(false);
  for (auto& value : rounded.as<float>()) value = round_to_bf16(value);
  EXPECT_EQ(disagreement(rounded, sums, Contract::Bf16, kFewTerms), "");
  EXPECT_THAT(disagreement(rounded, sums, Contract::F32, kFewTerms), HasSubstr("instead of"));
  rounded.as<float>()[11] += 2;  // of about 67
  EXPECT_THAT(disagreement(rounded, sums, Contract::Bf16, kFewTerms), HasSubstr("element 11"));
}

TEST(KernelValues, only_nan_agrees_with_nan) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto one = [](float value) { return Tensor({1}, std::vector{value}); };
  EXPECT_EQ(disagreement(one(-nan), one(nan)), "");
  EXPECT_THAT(disagreement(one(nan), one(1)), HasSubstr("is nan instead of 1"));
  EXPECT_THAT(disagreement(one(1), one(nan)), HasSubstr("is 1 instead of nan"));
}

TEST(KernelValues, an_infinity_does_not_excuse_other_elements) {
  const auto infinity = std::numeric_limits<float>::infinity();
  const auto two = [](float a, float b) { return Tensor({2}, std::vector{a, b}); };
  EXPECT_THAT(disagreement(two(infinity, 2), two(infinity, 1)), HasSubstr("is 2 instead of 1"));
  EXPECT_THAT(disagreement(two(1, 2), two(infinity, 2)), HasSubstr("is 1 instead of inf"));
}

TEST(KernelValues, integers_agree_in_all_bits) {
  const Tensor two({1}, std::vector<std::int32_t>{2}), three({1}, std::vector<std::int32_t>{3});
  EXPECT_EQ(disagreement(two, two), "");
  EXPECT_THAT(disagreement(two, three), HasSubstr("is 2 instead of 3"));
}

TEST(KernelValues, a_sample_lies_inside_apart_and_at_both_ends) {
  for (const std::int64_t elements : {1, 4096, 524288, 524289, 600000, 1 << 28}) {
    const auto pieces = sample_of(elements);
    std::int64_t behind = 0, sum = 0;
    for (const auto& piece : pieces) {
      EXPECT_GE(piece.first, behind) << elements;
      behind = piece.first + piece.count;
      sum += piece.count;
    }
    EXPECT_EQ(pieces.front().first, 0) << elements;
    EXPECT_EQ(behind, elements);
    EXPECT_EQ(sum, std::min<std::int64_t>(elements, 524288));
  }
}

}  // namespace
}  // namespace triptych
