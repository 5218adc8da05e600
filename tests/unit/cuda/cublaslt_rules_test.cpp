// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/library/cublaslt_rules.h"

#include <gmock/gmock.h>

namespace triptych::cuda {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kSums = CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F;
constexpr std::uint64_t kFma = CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA;
constexpr std::uint64_t kTensor = CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA;
constexpr std::uint64_t kFloat = CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F;
constexpr std::uint64_t kTf32 = CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32;
constexpr std::uint64_t kHalf = CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF;

TEST(CublasLtRules, f32_is_float32_multiply_adds_alone) {
  const auto problem = [](std::uint64_t flags) {
    return implementation_problem(flags, Contract::F32);
  };
  EXPECT_EQ(problem(kSums | kFma | kFloat), "");
  EXPECT_THAT(problem(kSums | kTensor | kTf32), HasSubstr("tensor cores"));
  EXPECT_THAT(problem(kSums | kFma | kTf32), HasSubstr("rounds"));
  EXPECT_THAT(problem(kSums | kFma | kHalf), HasSubstr("rounds"));
  EXPECT_THAT(problem(CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F | kFma | kFloat),
              HasSubstr("float32"));
  EXPECT_THAT(problem(kSums | kFma | kFloat | CUBLASLT_NUMERICAL_IMPL_FLAGS_GAUSSIAN),
              HasSubstr("other products"));
  EXPECT_THAT(problem(kSums | kFma | kFloat | (std::uint64_t{1} << 40)), HasSubstr("nobody"));
}

TEST(CublasLtRules, bf16_is_tensor_cores_with_float32_sums) {
  const auto problem = [](std::uint64_t flags) {
    return implementation_problem(flags, Contract::Bf16);
  };
  EXPECT_EQ(problem(kSums | kTensor | kHalf), "");
  EXPECT_EQ(problem(kSums | kFma | kHalf), "");
  EXPECT_EQ(problem(kSums | (std::uint64_t{1} << 5) | kHalf), "");  // a name that is not there yet
  for (const std::uint64_t other :
       {CUBLASLT_NUMERICAL_IMPL_FLAGS_IMMA, CUBLASLT_NUMERICAL_IMPL_FLAGS_DMMA}) {
    EXPECT_THAT(problem(kSums | other | kHalf), HasSubstr("tensor cores"));
  }
  EXPECT_THAT(problem(CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F | kTensor | kHalf),
              HasSubstr("float32"));
  EXPECT_THAT(problem(kSums | kTensor | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E4M3),
              HasSubstr("rounds"));
}

TEST(CublasLtRules, exact_contracts_allow_nothing) {
  EXPECT_EQ(allowed_implementations(Contract::Bf16Exact), 0U);
  EXPECT_EQ(allowed_implementations(Contract::Int8), 0U);
}

}  // namespace
}  // namespace triptych::cuda
