// The kernels on an instruction set of four lanes that cannot mask its loads and stores, against
// the float64 reference: shapes with rows that end within a vector, at addresses that are not
// aligned.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "backends/cpu/winograd/winograd.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "core/ops/matmul.h"
#include "core/ops/pool.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cpu {
namespace {

constexpr double kMostRmsError = 2e-6;

void expect_right(const Op& op, const std::vector<Tensor>& inputs,
                  const std::vector<std::string_view>& kernels) {
  for (const auto kernel : kernels) {
    for (const std::int64_t gap : {0, 3}) {
      SCOPED_TRACE(fmt::format("{} {} of {}", kernel, to_string(op), to_string(inputs[0].spec())));
      const auto y = run_kernel(op, inputs, {.gap = gap, .kernel = kernel});
      ASSERT_EQ(y.size(), 1U);
      EXPECT_LE(rms_error(op, inputs, y[0]), kMostRmsError);
    }
  }
}

std::vector<Tensor> operands(const Shape& first, const Shape& second) {
  std::vector<Tensor> inputs;
  inputs.push_back(random_tensor(first));
  inputs.push_back(random_tensor(second, 1));
  return inputs;
}

/// Height and width of an image.
constexpr std::int64_t kImages[][2] = {{1, 1}, {5, 6}, {9, 11}, {6, 17}};

TEST(NarrowVectors, are_those_of_the_kernels) {
  EXPECT_LE(winograd_lanes(), 4) << "the kernels of the library were linked";
}

TEST(NarrowVectors, convolve) {
  Conv conv;
  conv.pads = {1, 1, 1, 1};
  for (const auto& [height, width] : kImages) {
    expect_right(conv, operands({2, 3, height, width}, {5, 3, 3, 3}),
                 {"gemm", "gemm-channels", "gemm-in-place", "winograd-4x4", "winograd-2x2"});
  }
}

TEST(NarrowVectors, convolve_each_channel_by_itself) {
  Conv conv;
  conv.pads = {1, 1, 1, 1};
  conv.group = 3;
  for (const auto& [height, width] : kImages) {
    expect_right(conv, operands({2, 3, height, width}, {6, 1, 3, 3}), {"gemm", "depthwise"});
    expect_right(conv, operands({2, 3, height, width}, {3, 1, 3, 3}), {"depthwise-channels"});
  }
}

TEST(NarrowVectors, transpose_convolutions) {
  ConvTranspose transpose;
  transpose.pads = {1, 1, 1, 1};
  for (const auto& [height, width] : kImages) {
    expect_right(transpose, operands({2, 3, height, width}, {3, 7, 3, 3}),
                 {"gemm", "winograd-4x4", "winograd-2x2"});
  }
}

TEST(NarrowVectors, sum_the_gradient_of_the_weights) {
  ConvWeightGradient gradient;
  gradient.pads = {1, 1, 1, 1};
  gradient.kernel_shape = {3, 3};
  for (const auto& [height, width] : kImages) {
    expect_right(gradient, operands({2, 3, height, width}, {2, 5, height, width}),
                 {"gemm", "direct", "winograd-4x4", "winograd-2x2"});
  }
}

TEST(NarrowVectors, find_maxima) {
  MaxPool pool;
  pool.kernel_shape = {3, 3};
  pool.pads = {1, 1, 1, 1};
  for (const std::int64_t stride : {1, 2}) {
    pool.strides = {stride, stride};
    for (const auto& [height, width] : kImages) {
      std::vector<Tensor> inputs;
      inputs.push_back(random_tensor({2, 3, height, width}));
      expect_right(pool, inputs, {"planes"});
    }
  }
}

TEST(NarrowVectors, multiply_matrices) {
  for (const std::int64_t n : {1, 3, 8, 15}) {
    expect_right(MatMul(), operands({5, 70}, {70, n}), {"gemm", "vectorised", "threaded"});
  }
}

}  // namespace
}  // namespace triptych::cpu
