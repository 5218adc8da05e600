// Convolutions on the CPU and their gradients: the chains that bf16-exact promises, bit for bit, on
// random geometries, layouts and thread counts.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/gemm/microkernel.h"
#include "backends/cpu/windows/window_plane.h"
#include "backends/host/flush_subnormals.h"
#include "core/ops/conv.h"
#include "core/ops/conv_transpose.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cpu {
namespace {

struct Problem {
  std::int64_t batch, in_channels, out_channels, groups;  ///< channels of one group
  WindowAttributes window;
  Dims image;

  Shape x() const { return shape(batch, in_channels * groups, image); }
  Shape w() const { return shape(out_channels * groups, in_channels, window.kernel_shape); }
  static Shape shape(std::int64_t first, std::int64_t second, const Dims& rest) {
    Dims dims = {first, second};
    dims.insert(dims.end(), rest.begin(), rest.end());
    return Shape(std::move(dims));
  }
  std::string name() const {
    return fmt::format("x {} w {} strides {},{} pads {},{} dilations {},{} groups {}",
                       to_string(x()), to_string(w()), window.strides.front(),
                       window.strides.back(), window.pads.front(), window.pads.back(),
                       window.dilations.front(), window.dilations.back(), groups);
  }
};

Problem random_problem(RandomStream& random) {
  Problem p = {1 + random.below(3),
               1 + random.below(9),
               1 + random.below(20),
               1 + random.below(3) / 2,
               {},
               {}};
  const auto rank = 1 + std::min<std::int64_t>(random.below(4), 1);
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    p.window.kernel_shape.push_back(1 + random.below(4));
    p.window.strides.push_back(1 + random.below(3));
    p.window.dilations.push_back(1 + random.below(4) / 3);
    const auto extent = (p.window.kernel_shape.back() - 1) * p.window.dilations.back() + 1;
    p.image.push_back(extent + random.below(30));
  }
  for (std::int64_t i = 0; i < 2 * rank; ++i) p.window.pads.push_back(random.below(3));
  return p;
}

/// Shapes with a path of their own (many channels, tiles of 2 by 2, wide rows), then random ones.
std::vector<Problem> problems() {
  const auto window = [](std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
    return WindowAttributes{.kernel_shape = {kernel, kernel},
                            .strides = {stride, stride},
                            .pads = {pad, pad, pad, pad},
                            .dilations = {1, 1}};
  };
  std::vector<Problem> list = {{2, 40, 33, 1, window(3, 1, 1), {9, 10}},
                               {1, 35, 64, 1, window(1, 1, 0), {7, 5}},
                               {2, 300, 70, 1, window(1, 1, 0), {7, 7}},
                               {1, 64, 96, 2, window(3, 2, 1), {13, 14}},
                               {2, 20, 24, 1, window(2, 2, 0), {8, 12}},
                               {1, 3, 40, 2, window(2, 2, 0), {16, 34}},
                               {1, 1, 1, 8, window(3, 1, 1), {6, 70}},
                               {1, 8, 8, 1, window(3, 1, 1), {300, 160}},
                               {1, 64, 17, 1, window(3, 2, 1), {11, 3}},
                               {3, 70, 5, 1, window(1, 1, 0), {1, 2}},
                               {2, 1, 2, 5, window(3, 2, 1), {15, 14}},
                               {1, 1, 1, 40, window(5, 1, 2), {7, 7}},
                               {1, 1, 3, 3, {{5, 3}, {1, 3}, {2, 0, 1, 2}, {2, 1}}, {20, 31}}};
  RandomStream random(11, 0);
  for (int i = 0; i < 40; ++i) list.push_back(random_problem(random));
  return list;
}

std::vector<float> rounded(const Tensor& tensor) {
  std::vector<float> values(tensor.as<float>().begin(), tensor.as<float>().end());
  for (auto& value : values) value = round_to_bf16(value);
  return values;
}

/// Element (y, x) of a plane, or 0 outside of it.
float at(const float* plane, const std::int64_t (&size)[2], std::int64_t y, std::int64_t x) {
  return y < 0 || y >= size[0] || x < 0 || x >= size[1] ? 0 : plane[y * size[1] + x];
}

/// Calls visit(n, group, o of the group, y, x) for every element of an output, in order.
template <class Visit>
void for_each_output(std::int64_t batch, std::int64_t groups, std::int64_t channels,
                     const std::int64_t (&size)[2], const Visit& visit) {
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t channel = 0; channel < groups * channels; ++channel) {
      for (std::int64_t y = 0; y < size[0]; ++y) {
        for (std::int64_t x = 0; x < size[1]; ++x) {
          visit(n, channel / channels, channel % channels, y, x);
        }
      }
    }
  }
}

std::vector<float> conv_chains(const ConvGeometry& g, const std::vector<float>& x,
                               const std::vector<float>& w) {
  const FlushSubnormals flush;
  const auto& v = g.window;
  std::vector<float> result;
  for_each_output(
      g.batch, g.groups, g.group_out(), v.out,
      [&](auto n, auto group, auto o, auto y, auto column) {
        float sum = 0;
        for (std::int64_t t = 0; t < g.taps(); ++t) {
          const auto iy = y * v.stride[0] - v.pad_begin[0] + t / v.kernel[1] * v.dilation[0];
          const auto ix = column * v.stride[1] - v.pad_begin[1] + t % v.kernel[1] * v.dilation[1];
          for (std::int64_t c = 0; c < g.group_in(); ++c) {
            const auto plane = n * g.in_channels + group * g.group_in() + c;
            const auto weight = ((group * g.group_out() + o) * g.group_in() + c) * g.taps() + t;
            sum = std::fma(w[static_cast<std::size_t>(weight)],
                           at(x.data() + plane * g.in_plane(), v.in, iy, ix), sum);
          }
        }
        result.push_back(sum);
      });
  return result;
}

std::vector<float> conv_transpose_chains(const ConvGeometry& g, const std::vector<float>& x,
                                         const std::vector<float>& w) {
  const FlushSubnormals flush;
  const auto& v = g.window;
  std::vector<float> result;
  for_each_output(
      g.batch, g.groups, g.group_in(), v.in, [&](auto n, auto group, auto o, auto y, auto column) {
        float sum = 0;
        for (std::int64_t t = 0; t < g.taps(); ++t) {
          const auto dy = y + v.pad_begin[0] - t / v.kernel[1] * v.dilation[0];
          const auto dx = column + v.pad_begin[1] - t % v.kernel[1] * v.dilation[1];
          if (dy % v.stride[0] != 0 || dx % v.stride[1] != 0) continue;
          for (std::int64_t c = 0; c < g.group_out(); ++c) {
            const auto channel = group * g.group_out() + c;
            const auto plane = n * g.out_channels + channel;
            const auto weight = (channel * g.group_in() + o) * g.taps() + t;
            sum = std::fma(
                w[static_cast<std::size_t>(weight)],
                at(x.data() + plane * g.out_plane(), v.out, dy / v.stride[0], dx / v.stride[1]),
                sum);
          }
        }
        result.push_back(sum);
      });
  return result;
}

std::vector<float> weight_gradient_chains(const ConvGeometry& g, const std::vector<float>& x,
                                          const std::vector<float>& dy) {
  const FlushSubnormals flush;
  const auto& v = g.window;
  std::vector<float> result;
  for_each_output(
      g.out_channels, 1, g.group_in(), v.kernel, [&](auto o, auto, auto c, auto ky, auto kx) {
        const auto channel = o / g.group_out() * g.group_in() + c;
        float sum = 0;
        for (std::int64_t n = 0; n < g.batch; ++n) {
          const float* plane = x.data() + (n * g.in_channels + channel) * g.in_plane();
          const float* gradient = dy.data() + (n * g.out_channels + o) * g.out_plane();
          for (std::int64_t p = 0; p < g.out_plane(); ++p) {
            const auto iy = p / v.out[1] * v.stride[0] - v.pad_begin[0] + ky * v.dilation[0];
            const auto ix = p % v.out[1] * v.stride[1] - v.pad_begin[1] + kx * v.dilation[1];
            sum = std::fma(gradient[p], at(plane, v.in, iy, ix), sum);
          }
        }
        result.push_back(sum);
      });
  return result;
}

constexpr RunOptions kRuns[] = {{.threads = 1},
                                {.threads = 2, .gap = 3},
                                {.threads = 4, .constant = true},
                                {.threads = 5, .gap = 17}};

void expect_everywhere(const Op& op, const Tensor& first, const Tensor& second,
                       const std::vector<float>& expected, const std::string& name,
                       std::string_view kernel = {}) {
  std::vector<Tensor> inputs;
  inputs.push_back(first.clone());
  inputs.push_back(second.clone());
  for (auto options : kRuns) {
    options.contract = Contract::Bf16Exact;
    options.kernel = kernel;
    const auto y = run_kernel(op, inputs, options);
    ASSERT_EQ(y.size(), 1U);
    ASSERT_EQ(y[0].bytes().size(), expected.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(y[0].bytes().data(), expected.data(), y[0].bytes().size()), 0)
        << op.name() << " " << name << ", " << options.threads << " threads " << kernel;
  }
}

template <class T>
T with_window(const Problem& problem) {
  T op;
  static_cast<WindowAttributes&>(op) = problem.window;
  op.group = problem.groups;
  return op;
}

/// The gradient of the problem's input, of the same size as that.
ConvTranspose input_gradient(const Problem& problem) {
  const auto v = with_window<Conv>(problem).geometry(problem.x(), problem.w()).window;
  auto op = with_window<ConvTranspose>(problem);
  for (auto axis = 2 - static_cast<int>(problem.image.size()); axis < 2; ++axis) {
    const auto padded = v.in[axis] + v.pad_begin[axis] + v.pad_end[axis];
    op.output_padding.push_back((padded - v.extent(axis)) % v.stride[axis]);
  }
  return op;
}

class ConvKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (!microkernels().fused) GTEST_SKIP() << "no fused multiply-add";
  }
};

TEST_F(ConvKernels, convolution_is_one_chain_over_row_column_channel) {
  for (const auto& problem : problems()) {
    const auto op = with_window<Conv>(problem);
    const auto x = random_tensor(problem.x()), w = random_tensor(problem.w(), 1);
    const auto chains = conv_chains(op.geometry(x.shape(), w.shape()), rounded(x), rounded(w));
    for (const auto kernel : {"", "dots", "gemm", "gemm-channels", "gemm-in-place"}) {
      const bool lays_out = std::string_view(kernel) == "gemm-in-place";
      if (lays_out && !WindowPlane::pays(op.geometry(x.shape(), w.shape()).window)) continue;
      expect_everywhere(op, x, w, chains, problem.name(), kernel);
    }
  }
}

TEST_F(ConvKernels, channels_side_by_side_are_chains_over_row_and_column) {
  for (auto problem : problems()) {
    problem.groups = 1 + problem.out_channels;
    problem.in_channels = problem.out_channels = 1;
    if (Shape(problem.image).elements() > 4096) continue;  // the kernel refuses large planes
    const auto op = with_window<Conv>(problem);
    const auto x = random_tensor(problem.x()), w = random_tensor(problem.w(), 1);
    const auto chains = conv_chains(op.geometry(x.shape(), w.shape()), rounded(x), rounded(w));
    expect_everywhere(op, x, w, chains, problem.name(), "depthwise-channels");
  }
}

TEST_F(ConvKernels, transposed_convolution_is_one_chain_over_the_taps_of_its_phase) {
  for (const auto& problem : problems()) {
    const auto g = with_window<Conv>(problem).geometry(problem.x(), problem.w());
    const auto op = input_gradient(problem);
    const auto rank = static_cast<std::int64_t>(problem.image.size()) + 2;
    const auto x = random_tensor(image_shape(rank, g.batch, g.out_channels, g.window.out));
    const auto w = random_tensor(problem.w(), 1);
    const auto chains =
        conv_transpose_chains(op.geometry(x.shape(), w.shape()), rounded(x), rounded(w));
    for (const auto kernel : {"", "dots"})
      expect_everywhere(op, x, w, chains, problem.name(), kernel);
  }
}

TEST_F(ConvKernels, weight_gradient_is_one_chain_over_image_row_column) {
  for (const auto& problem : problems()) {
    const auto op = with_window<ConvWeightGradient>(problem);
    const auto g = with_window<Conv>(problem).geometry(problem.x(), problem.w());
    const auto rank = static_cast<std::int64_t>(problem.image.size()) + 2;
    const auto x = random_tensor(problem.x());
    const auto dy = random_tensor(image_shape(rank, g.batch, g.out_channels, g.window.out), 1);
    const auto chains = weight_gradient_chains(g, rounded(x), rounded(dy));
    expect_everywhere(op, x, dy, chains, problem.name());
    if (g.window.out[1] % 2 == 0) expect_everywhere(op, x, dy, chains, problem.name(), "dots");
  }
}

TEST_F(ConvKernels, direct_weight_gradient_does_not_depend_on_threads_or_layout) {
  for (const auto& problem : problems()) {
    if (problem.groups > 1 || problem.window.strides.back() > 1) continue;
    const auto g = with_window<Conv>(problem).geometry(problem.x(), problem.w());
    const auto rank = static_cast<std::int64_t>(problem.image.size()) + 2;
    std::vector<Tensor> inputs;
    inputs.push_back(random_tensor(problem.x()));
    inputs.push_back(random_tensor(image_shape(rank, g.batch, g.out_channels, g.window.out), 1));
    const auto op = with_window<ConvWeightGradient>(problem);
    const auto alone = run_kernel(op, inputs, {.threads = 1, .kernel = "direct"});
    const auto several = run_kernel(op, inputs, {.threads = 5, .gap = 3, .kernel = "direct"});
    EXPECT_TRUE(std::ranges::equal(alone[0].as<float>(), several[0].as<float>())) << problem.name();
  }
}

/// Values on the tile unit: the same for any threads and layout, and near the chains.
void expect_on_tiles(const Op& op, const Tensor& first, const Tensor& second,
                     const std::vector<float>& chains, const std::string& name) {
  std::vector<Tensor> inputs;
  inputs.push_back(first.clone());
  inputs.push_back(second.clone());
  std::vector<Tensor> first_values;
  for (auto options : kRuns) {
    options.contract = Contract::Bf16;
    options.kernel = "tiles";
    auto y = run_kernel(op, inputs, options);
    ASSERT_EQ(y[0].as<float>().size(), chains.size());
    if (first_values.empty())
      first_values.push_back(std::move(y[0]));
    else
      EXPECT_TRUE(std::ranges::equal(first_values[0].as<float>(), y[0].as<float>()))
          << op.name() << " " << name << ", " << options.threads << " threads";
  }
  for (std::size_t i = 0; i < chains.size(); ++i)
    ASSERT_NEAR(first_values[0].as<float>()[i], chains[i], 1e-3F + 1e-4F * std::abs(chains[i]))
        << op.name() << " " << name;
}

TEST_F(ConvKernels, tiles_do_not_depend_on_threads_or_layout) {
  for (const auto& problem : problems()) {
    const auto conv = with_window<Conv>(problem);
    const auto x = random_tensor(problem.x()), w = random_tensor(problem.w(), 1);
    const auto g = conv.geometry(x.shape(), w.shape());
    const auto& v = g.window;
    if (g.groups != 1) continue;
    if ((v.stride[0] != 1 || v.stride[1] != 1) && !v.makes_tiles()) continue;
    expect_on_tiles(conv, x, w, conv_chains(g, rounded(x), rounded(w)), problem.name());
    const auto rank = static_cast<std::int64_t>(problem.image.size()) + 2;
    const auto y = random_tensor(image_shape(rank, g.batch, g.out_channels, v.out), 2);
    const auto transposed = input_gradient(problem);
    const auto back = transposed.geometry(y.shape(), w.shape());
    expect_on_tiles(transposed, y, w, conv_transpose_chains(back, rounded(y), rounded(w)),
                    problem.name());
    expect_on_tiles(with_window<ConvWeightGradient>(problem), x, y,
                    weight_gradient_chains(g, rounded(x), rounded(y)), problem.name());
  }
}

TEST_F(ConvKernels, tiles_take_infinity_at_an_edge) {
  ConvWeightGradient op;
  op.pads = {1, 1, 1, 1};
  op.kernel_shape = {3, 3};
  std::vector<Tensor> inputs;
  inputs.push_back(random_tensor({1, 2, 5, 6}));
  inputs.push_back(random_tensor({1, 3, 5, 6}, 1));
  inputs[0].as<float>()[5] = std::numeric_limits<float>::infinity();  // the end of a row
  const auto tiles = run_kernel(op, inputs, {.contract = Contract::Bf16, .kernel = "tiles"});
  const auto plain = run_kernel(op, inputs, {.contract = Contract::Bf16, .kernel = "gemm"});
  EXPECT_EQ(std::memcmp(tiles[0].bytes().data(), plain[0].bytes().data(), plain[0].bytes().size()),
            0);
  EXPECT_TRUE(std::ranges::any_of(plain[0].as<float>(), [](float v) { return std::isfinite(v); }));
}

TEST_F(ConvKernels, bias_and_relu_come_after_the_chain) {
  Conv op;
  op.activation = "relu";
  for (const std::int64_t width : {50, 20}) {  // long rows and short ones
    std::vector<Tensor> inputs;
    inputs.push_back(random_tensor({2, 3, 6, width}));
    inputs.push_back(random_tensor({17, 3, 1, 1}, 1));
    inputs.push_back(random_tensor({17}, 2));
    const auto g = op.geometry(inputs[0].shape(), inputs[1].shape());
    auto expected = conv_chains(g, rounded(inputs[0]), rounded(inputs[1]));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto channel = i / static_cast<std::size_t>(g.out_plane()) % 17;
      expected[i] = std::fmax(expected[i] + inputs[2].as<float>()[channel], 0.0F);
    }
    for (const auto kernel : {"gemm", "gemm-channels", "gemm-in-place"}) {
      const auto y = run_kernel(op, inputs, {.contract = Contract::Bf16Exact, .kernel = kernel});
      EXPECT_EQ(std::memcmp(y[0].bytes().data(), expected.data(), y[0].bytes().size()), 0)
          << kernel << ", width " << width;
    }
  }
}

// Where pairs of bfloat16 pay, no kernel that multiplies one after the other comes first.
TEST(ConvTable, pairs_come_before_other_products_of_patches) {
  std::vector<std::string_view> names;
  for (const auto& entry : kernel_table())
    if (entry.op == Conv::kName) names.push_back(entry.name);
  const auto place = [&](std::string_view name) { return std::ranges::find(names, name); };
  EXPECT_LT(place("dots"), place("gemm-in-place"));
  EXPECT_LT(place("gemm-in-place"), place("gemm"));
  EXPECT_NE(place("gemm"), names.end());
}

TEST_F(ConvKernels, transposed_tiles_add_their_bias) {
  ConvTranspose op;
  op.strides = {2, 2};
  std::vector<Tensor> inputs;
  inputs.push_back(random_tensor({2, 5, 9, 11}));
  inputs.push_back(random_tensor({5, 7, 2, 2}, 1));
  inputs.push_back(random_tensor({7}, 2));
  const auto g = op.geometry(inputs[0].shape(), inputs[1].shape());
  auto expected = conv_transpose_chains(g, rounded(inputs[0]), rounded(inputs[1]));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] += inputs[2].as<float>()[i / static_cast<std::size_t>(g.in_plane()) % 7];
  }
  const auto y = run_kernel(op, inputs, {.contract = Contract::Bf16Exact});
  EXPECT_EQ(std::memcmp(y[0].bytes().data(), expected.data(), y[0].bytes().size()), 0);
}

}  // namespace
}  // namespace triptych::cpu
