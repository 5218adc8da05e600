// The ladder of matrix products: every step has the bits of the product in use, and the model of
// its traffic agrees with counts by hand.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/ladder/steps.h"
#include "backends/cpu/ladder/traffic.h"
#include "backends/cpu/measured_peak.h"
#include "core/ops/matmul.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cpu {
namespace {

constexpr std::string_view kSteps[] = {"naive", "blocked", "vectorised", "threaded"};

void expect_bits_of_gemm(const MatMul& op, const Tensor& a, const Tensor& b, Contract contract) {
  std::vector<Tensor> inputs;
  inputs.push_back(a.clone());
  inputs.push_back(b.clone());
  const auto expected = run_kernel(op, inputs, {.contract = contract, .kernel = "gemm"});
  for (const auto step : kSteps) {
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(std::string(step));
      expect_same_bits(
          run_kernel(op, inputs, {.threads = threads, .contract = contract, .kernel = step}),
          expected);
    }
  }
}

MatMul transposing(bool a, bool b) {
  MatMul op;
  op.transpose_a = a;
  op.transpose_b = b;
  return op;
}

/// Around the sizes of tiles, blocks and vectors.
TEST(Ladder, every_step_has_the_bits_of_gemm) {
  const std::int64_t sizes[][3] = {{1, 1, 1},    {8, 32, 256},  {9, 33, 257}, {4, 16, 64},
                                   {7, 31, 255}, {64, 65, 129}, {3, 47, 513}, {70, 1, 5}};
  for (const auto& [m, n, k] : sizes) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        const auto a = random_tensor(transpose_a ? Shape{k, m} : Shape{m, k}, 1);
        const auto b = random_tensor(transpose_b ? Shape{n, k} : Shape{k, n}, 2);
        for (const auto contract : {Contract::F32, Contract::Bf16Exact}) {
          expect_bits_of_gemm(transposing(transpose_a, transpose_b), a, b, contract);
        }
      }
    }
  }
}

TEST(Ladder, batches_broadcast) {
  const auto a = random_tensor({2, 3, 5, 7}, 1), b = random_tensor({3, 7, 9}, 2);
  expect_bits_of_gemm({}, a, b, Contract::Bf16Exact);
  expect_bits_of_gemm({}, random_tensor({1, 4, 6}, 3), random_tensor({5, 6, 2}, 4), Contract::F32);
}

TEST(Ladder, nan_is_canonical) {
  auto a = random_tensor({3, 300}, 1);
  const auto b = random_tensor({300, 40}, 2);
  a.as<float>()[5] = -std::numeric_limits<float>::quiet_NaN();
  a.as<float>()[305] = std::numeric_limits<float>::infinity();
  expect_bits_of_gemm({}, a, b, Contract::F32);
}

TEST(Ladder, eigen_is_near_and_refuses_the_other_contracts) {
  std::vector<Tensor> inputs;
  inputs.push_back(random_tensor({2, 33, 70}, 1));
  inputs.push_back(random_tensor({2, 45, 70}, 2));
  const auto op = transposing(false, true);
  const auto expected = run_kernel(op, inputs);
  const auto actual = run_kernel(op, inputs, {.kernel = "eigen"});
  for (std::int64_t i = 0; i < expected[0].elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_NEAR(actual[0].as<float>()[at], expected[0].as<float>()[at], 1e-4);
  }
  for (const auto contract : {Contract::Bf16, Contract::Bf16Exact, Contract::Int8}) {
    EXPECT_THROW(run_kernel(op, inputs, {.contract = contract, .kernel = "eigen"}),
                 UnsupportedError);
  }
}

TEST(LadderTraffic, of_three_loops_is_what_they_load) {
  const ProductSizes sizes = {10, 20, 30};
  // Everything stays in these caches: a and b are read once, c read and written.
  const auto small = naive_traffic(sizes, {1e9, 1e9});
  ASSERT_EQ(small.size(), 3U);
  EXPECT_EQ(small[0].bytes, 10 * 20 * (30 * 8 + 4));
  EXPECT_EQ(small[1].bytes, 4 * (10 * 30 + 30 * 20) + 8 * 10 * 20);
  // Nothing stays: a row of a for each element, and a line for each element of b.
  const auto none = naive_traffic(sizes, {64, 64});
  EXPECT_EQ(none[1].bytes, 10 * 20 * 30 * (4 + 64) + 8 * 10 * 20);
}

TEST(LadderTraffic, falls_from_level_to_level_and_from_step_to_step) {
  const Caches caches = {32768, 1048576};
  for (const double n : {512.0, 1024.0, 2048.0}) {
    const auto naive = naive_traffic({n, n, n}, caches);
    const auto blocked = blocked_traffic({n, n, n}, caches);
    const auto vectorised = vectorised_traffic({n, n, n}, caches, 1);
    // Those of three loops need not fall: of a line only one element may be used.
    for (const auto& step : {blocked, vectorised}) {
      EXPECT_GE(step[0].bytes, step[1].bytes);
      EXPECT_GE(step[1].bytes, step[2].bytes);
    }
    EXPECT_LT(blocked[1].bytes, naive[1].bytes);
    EXPECT_LT(vectorised[0].bytes, blocked[0].bytes);
    EXPECT_EQ(vectorised_traffic({n, n, n}, caches, 2)[0].bytes, vectorised[0].bytes);
  }
}

TEST(MeasuredPeak, is_a_speed_with_any_number_of_threads) {
  for (const int threads : {1, 2, 64}) {
    EXPECT_GT(measured_peak(threads), 1e6);
    EXPECT_LT(measured_peak(threads), 1e16);
  }
}

}  // namespace
}  // namespace triptych::cpu
