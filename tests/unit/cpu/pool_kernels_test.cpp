// Pooling on the CPU, bit for bit as its operators say, on random windows, layouts and thread
// counts, of numbers among which are NaN, infinities, zeros of both signs and many equal ones.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/exact_math.h"
#include "core/ops/binary.h"
#include "core/ops/pool.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cpu {
namespace {

struct Pooling {
  Shape x;
  WindowAttributes window;
  bool ceil_mode = false;

  template <class Pool>
  Pool pool() const {
    Pool op;
    static_cast<WindowAttributes&>(op) = window;
    op.ceil_mode = ceil_mode;
    return op;
  }
  std::string name() const {
    return fmt::format("x {} kernel {} strides {} pads {} dilations {}, ceil_mode {}", to_string(x),
                       window.kernel_shape, window.strides, window.pads, window.dilations,
                       ceil_mode);
  }
};

/// Windows with and without a fast way: an axis may be longer than the plane it pads.
Pooling random_pooling(RandomStream& random) {
  Pooling p = {.ceil_mode = random.below(2) == 1};
  Dims dims = {1 + random.below(3), 1 + random.below(5)};
  std::vector<std::int64_t> ends;
  for (int axis = 0; axis < 2; ++axis) {
    auto& w = p.window;
    w.kernel_shape.push_back(1 + random.below(4));
    w.strides.push_back(1 + random.below(3));
    w.dilations.push_back(1 + random.below(4) / 3);
    const auto extent = (w.kernel_shape.back() - 1) * w.dilations.back() + 1;
    dims.push_back(extent + random.below(40));
    w.pads.push_back(random.below(std::min<std::int64_t>(extent, 4)));
    ends.push_back(random.below(std::min<std::int64_t>(extent, 4)));
  }
  p.window.pads.insert(p.window.pads.end(), ends.begin(), ends.end());
  p.x = Shape(std::move(dims));
  return p;
}

std::vector<Pooling> poolings() {
  const auto window = [](std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
    return WindowAttributes{.kernel_shape = {kernel, kernel},
                            .strides = {stride, stride},
                            .pads = {pad, pad, pad, pad},
                            .dilations = {1, 1}};
  };
  std::vector<Pooling> list = {
      {{2, 3, 30, 41}, window(3, 2, 0), true}, {{1, 70, 7, 7}, window(7, 7, 0)},
      {{2, 3, 1, 1}, window(3, 1, 1)},         {{2, 3, 6, 9}, window(2, 3, 0)},
      {{1, 2, 40, 40}, window(33, 1, 0)},      {{3, 2, 90, 95}, window(3, 1, 1)},
      {{2, 3, 55, 57}, window(3, 2, 1)},       {{1, 2, 30, 70}, window(6, 2, 2)},
      {{1, 2, 9, 12}, window(2, 1, 0)},        {{1, 2, 50, 20}, window(18, 2, 8)},
      {{2, 3, 18, 46}, window(2, 2, 0)},       {{2, 3, 7, 9}, window(2, 2, 0)}};
  RandomStream random(21, 0);
  for (int i = 0; i < 150; ++i) list.push_back(random_pooling(random));
  return list;
}

/// Numbers with many equal ones, and the special ones.
Tensor pictures(const Shape& shape) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float kSpecial[] = {exact::from_bits(0x7FC00000),
                            exact::from_bits(0x7FC00123),
                            exact::from_bits(0xFFC00000),
                            -kInfinity,
                            -0.0F,
                            0.0F};
  RandomStream random(22, 0);
  Tensor tensor(TensorSpec{DType::F32, shape});
  for (auto& value : tensor.as<float>()) {
    const auto kind = static_cast<std::size_t>(random.below(20));
    value = kind < std::size(kSpecial) ? kSpecial[kind] : random.uniform(-1, 1);
    if (kind > 12) value = static_cast<float>(random.below(3)) - 1;
  }
  return tensor;
}

Tensor small_pictures(const Shape& shape) {
  RandomStream random(23, 0);
  Tensor tensor(TensorSpec{DType::I8, shape});
  for (auto& value : tensor.as<std::int8_t>()) {
    value = static_cast<std::int8_t>(random.below(5) == 0 ? -128 : random.below(256) - 128);
  }
  return tensor;
}

/// step(y, x, first) for each element x of each window of output y, row-major.
template <class T, class Step>
Tensor folded(const Tensor& x, const Window& window, const Step& step) {
  const auto planes = x.shape()[0] * x.shape()[1];
  Tensor y(TensorSpec{x.spec().dtype, {x.shape()[0], x.shape()[1], window.out[0], window.out[1]}});
  for (std::int64_t plane = 0; plane < planes; ++plane) {
    const auto* from = x.as<T>().data() + plane * window.in[0] * window.in[1];
    auto* to = y.as<T>().data() + plane * window.out[0] * window.out[1];
    std::int64_t last = -1;
    for_each_tap(window, [&](std::int64_t output, std::int64_t input, std::int64_t) {
      step(to[output], from[input], output != last);
      last = output;
    });
  }
  return y;
}

void expect_everywhere(const Op& op, const Tensor& x, const Tensor& expected,
                       const std::string& name) {
  std::vector<Tensor> inputs;
  inputs.push_back(x.clone());
  for (const RunOptions options : {RunOptions{.threads = 1}, RunOptions{.threads = 3, .gap = 5}}) {
    const auto y = run_kernel(op, inputs, options);
    ASSERT_EQ(y.size(), 1U);
    ASSERT_EQ(y[0].spec(), expected.spec()) << name;
    EXPECT_EQ(std::memcmp(y[0].bytes().data(), expected.bytes().data(), expected.bytes().size()), 0)
        << op.name() << " " << name << ", " << options.threads << " threads";
  }
}

/// The first of the largest elements, or the last NaN.
template <class T>
void take_larger(T& y, T x, bool first) {
  if (first || x > y || x != x) y = x;
}

TEST(PoolKernels, take_the_first_largest_element_or_the_last_nan_of_any_window) {
  for (const auto& pooling : poolings()) {
    const auto op = pooling.pool<MaxPool>();
    const auto window = op.window(pooling.x);
    const auto x = pictures(pooling.x), small = small_pictures(pooling.x);
    expect_everywhere(op, x, folded<float>(x, window, take_larger<float>), pooling.name());
    expect_everywhere(op, small, folded<std::int8_t>(small, window, take_larger<std::int8_t>),
                      pooling.name());
  }
}

TEST(PoolKernels, gradients_by_stored_indices_have_the_bits_of_those_that_compare) {
  for (const auto& pooling : poolings()) {
    SCOPED_TRACE(pooling.name());
    const auto op = pooling.pool<MaxPoolWithIndex>();
    if (op.window(pooling.x).taps() > MaxPoolWithIndex::kMostTaps) continue;
    auto back = pooling.pool<MaxPoolIndexGradient>();
    back.input_shape = pooling.x.dims();
    const auto x = pictures(pooling.x);
    for (const RunOptions options :
         {RunOptions{.threads = 1}, RunOptions{.threads = 3, .gap = 5}}) {
      std::vector<Tensor> inputs;
      inputs.push_back(x.clone());
      const auto y = run_kernel(pooling.pool<MaxPool>(), inputs, options);
      auto indexed = run_kernel(op, inputs, options);
      ASSERT_EQ(indexed.size(), 2U);
      const auto dy = pictures(y[0].shape());
      inputs.push_back(dy.clone());
      const auto dx = run_kernel(pooling.pool<MaxPoolGradient>(), inputs, options);
      std::vector<Tensor> indices;
      indices.push_back(indexed[1].clone());
      indices.push_back(dy.clone());
      indexed.pop_back();
      expect_same_bits(indexed, y);
      expect_same_bits(run_kernel(back, indices, options), dx);
      std::vector<Tensor> summands;
      summands.push_back(dx[0].clone());
      for (auto* inputs_of_sum : {&summands, &indices}) {
        inputs_of_sum->push_back(random_tensor(pooling.x, 8, -1, 1));
      }
      expect_same_bits(run_kernel(back, indices, options),
                       run_kernel(Binary(BinaryKind::Add), summands, options));
    }
  }
}

TEST(PoolKernels, add_the_elements_of_any_window_in_their_order) {
  const auto add = [](float& y, float x, bool first) { y = first ? 0.0F + x : y + x; };
  for (const auto& pooling : poolings()) {
    auto op = pooling.pool<AveragePool>();
    op.count_include_pad = pooling.x[1] % 2 == 0;
    const auto window = op.window(pooling.x);
    const auto x = pictures(pooling.x);
    auto expected = folded<float>(x, window, add);
    std::int64_t i = 0;
    for (auto& y : expected.as<float>()) {
      const auto p = i++ % (window.out[0] * window.out[1]);
      const auto divisor =
          average_pool_divisor(window, op.count_include_pad, p / window.out[1], p % window.out[1]);
      y = exact::canonical(y / static_cast<float>(divisor));
    }
    expect_everywhere(op, x, expected, pooling.name());
  }
}

}  // namespace
}  // namespace triptych::cpu
