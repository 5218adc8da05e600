// Convolutions by Winograd's transforms against the float64 reference, on ragged geometries,
// layouts and thread counts, and in blocks of one thread and of all.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/winograd/winograd.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cpu {
namespace {

// The speed target of the CPU backend. 1e-6 is usual.
constexpr double kMostRmsError = 2e-6;

struct Problem {
  std::int64_t batch, in_channels, out_channels, height, width;
  Dims pads = {1, 1, 1, 1};
  std::string activation = {};
};

/// Rows of fewer tiles than a vector has lanes, ragged tiles, one-sided padding, one channel, and
/// filters too large for a thread's own block (160 x 150), many channels or tiles.
const Problem kProblems[] = {{1, 8, 8, 64, 64},
                             {2, 3, 5, 9, 11},
                             {1, 1, 1, 3, 3},
                             {3, 20, 17, 16, 16},
                             {1, 5, 40, 33, 70, {0, 2, 1, 0}},
                             {2, 7, 3, 1, 5},
                             {1, 33, 2, 20, 24, {2, 2, 2, 2}},
                             {2, 160, 150, 13, 18},
                             {1, 160, 150, 8, 7},
                             {1, 300, 140, 14, 13},
                             {1, 256, 230, 6, 8, {1, 1, 1, 1}, "relu"},
                             {1, 1024, 8, 16, 20},
                             {2, 4, 8, 200, 200},
                             {1, 16, 16, 70, 8, {1, 1, 1, 1}, "relu"}};

Tensor noise(const Shape& shape, std::uint64_t seed) {
  Tensor tensor(TensorSpec{DType::F32, shape});
  RandomStream random(seed, 0);
  for (auto& value : tensor.as<float>()) value = 2 * random.uniform() - 1;
  return tensor;
}

/// x, weights of this shape, and a bias.
std::vector<Tensor> operands(const Problem& p, const Shape& w) {
  std::vector<Tensor> inputs;
  inputs.push_back(noise({p.batch, p.in_channels, p.height, p.width}, 1));
  inputs.push_back(noise(w, 2));
  inputs.push_back(noise({p.out_channels}, 3));
  return inputs;
}

void expect_right(const Op& op, const std::vector<Tensor>& inputs) {
  for (const char* kernel : {"winograd-4x4", "winograd-2x2"}) {
    SCOPED_TRACE(fmt::format("{} {} of {}", kernel, to_string(op), to_string(inputs[0].spec())));
    const auto alone = run_kernel(op, inputs, {.threads = 1, .kernel = kernel});
    ASSERT_EQ(alone.size(), 1U);
    EXPECT_LE(rms_error(op, inputs, alone[0]), kMostRmsError);
    const RunOptions others[] = {{.threads = 2, .gap = 3, .kernel = kernel},
                                 {.threads = 4, .constant = true, .kernel = kernel}};
    for (const auto& options : others) {
      const auto again = run_kernel(op, inputs, options);
      ASSERT_EQ(again.size(), 1U);
      EXPECT_TRUE(std::ranges::equal(alone[0].bytes(), again[0].bytes()))
          << options.threads << " threads";
    }
  }
}

TEST(Winograd, convolves) {
  for (const auto& p : kProblems) {
    Conv conv;
    conv.pads = p.pads;
    conv.activation = p.activation;
    expect_right(conv, operands(p, {p.out_channels, p.in_channels, 3, 3}));
  }
}

TEST(Winograd, transposes) {
  for (const auto& p : kProblems) {
    ConvTranspose transpose;
    transpose.pads = p.pads;
    if (p.height + 2 - p.pads[0] - p.pads[2] < 1) continue;
    expect_right(transpose, operands(p, {p.in_channels, p.out_channels, 3, 3}));
  }
}

TEST(Winograd, sums_the_gradient_of_the_weights) {
  for (const auto& p : kProblems) {
    ConvWeightGradient gradient;
    gradient.pads = p.pads;
    gradient.kernel_shape = {3, 3};
    const auto rows = p.height + p.pads[0] + p.pads[2] - 2;
    const auto columns = p.width + p.pads[1] + p.pads[3] - 2;
    std::vector<Tensor> inputs;
    inputs.push_back(noise({p.batch, p.in_channels, p.height, p.width}, 1));
    inputs.push_back(noise({p.batch, p.out_channels, rows, columns}, 2));
    expect_right(gradient, inputs);
  }
}

/// The last image of a batch, and that image alone.
void expect_own_bits(const Problem& p) {
  Conv conv;
  conv.pads = p.pads;
  const auto in = static_cast<std::size_t>(p.in_channels * p.height * p.width);
  const auto out = static_cast<std::size_t>(p.out_channels * p.height * p.width);
  const auto all = operands(p, {p.out_channels, p.in_channels, 3, 3});
  std::vector<Tensor> last;
  last.emplace_back(TensorSpec{DType::F32, {1, p.in_channels, p.height, p.width}});
  std::ranges::copy(all[0].as<float>().last(in), last[0].as<float>().begin());
  for (std::size_t i = 1; i < all.size(); ++i) last.push_back(all[i].clone());
  for (const char* kernel : {"winograd-4x4", "winograd-2x2"}) {
    const auto y = run_kernel(conv, all, {.kernel = kernel});
    const auto alone = run_kernel(conv, last, {.kernel = kernel});
    EXPECT_TRUE(std::ranges::equal(y[0].as<float>().last(out), alone[0].as<float>())) << kernel;
  }
}

// An image's bits must not depend on the number of images in the batch.
TEST(Winograd, ignores_the_rest_of_the_batch) {
  expect_own_bits({2, 24, 150, 16, 16});
  expect_own_bits({6, 256, 230, 8, 8});  // alone, its tiles fit one vector
}

TEST(Winograd, refuses_what_it_cannot_compute) {
  Conv conv;
  conv.strides = {2, 2};
  std::vector<Tensor> inputs;
  inputs.push_back(noise({1, 2, 9, 9}, 1));
  inputs.push_back(noise({2, 2, 3, 3}, 2));
  EXPECT_THROW(run_kernel(conv, inputs, {.kernel = "winograd-4x4"}), UnsupportedError);
  conv.strides = {};
  EXPECT_THROW(
      run_kernel(conv, inputs, {.contract = Contract::Bf16Exact, .kernel = "winograd-4x4"}),
      UnsupportedError);
}

}  // namespace
}  // namespace triptych::cpu
