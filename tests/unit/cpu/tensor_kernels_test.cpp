// Cases that conformance does not reach in elementwise, reduction, normalisation, pooling, loss and
// optimiser kernels: operands with gaps, in-place results, large operands on several threads, and
// the stated reduction tree bit by bit.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/host/flush_subnormals.h"
#include "core/base/exact_math.h"
#include "core/base/reduction.h"
#include "core/ops/batch_normalization.h"
#include "core/ops/binary.h"
#include "core/ops/cast.h"
#include "core/ops/dropout.h"
#include "core/ops/losses.h"
#include "core/ops/optimizers.h"
#include "core/ops/pool.h"
#include "core/ops/reduce.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "tests/unit/cpu/run_kernel.h"

namespace triptych::cpu {
namespace {

struct Example {
  OpPtr op;
  std::vector<Tensor> inputs;
};

std::vector<Tensor> tensors(std::initializer_list<Shape> shapes) {
  std::vector<Tensor> list;
  for (const auto& shape : shapes) list.push_back(random_tensor(shape, list.size(), 0.1F, 2));
  return list;
}

template <class T>
T two_by_two() {
  T pool;
  pool.kernel_shape = pool.strides = {2, 2};
  return pool;
}

template <class T>
T overlapping() {
  T pool;
  pool.kernel_shape = {3, 3};
  pool.strides = {2, 2};
  pool.pads = {1, 1, 1, 1};
  return pool;
}

template <class T>
T along(std::int64_t axis) {
  T op;
  op.axis = axis;
  return op;
}

BatchNormalization training_normalization() {
  BatchNormalization op;
  op.training_mode = true;
  return op;
}

/// Operators with kernels that take the skip tensors of a U-Net directly from a concat's output.
std::vector<Example> image_examples() {
  const Shape x{3, 4, 9, 10}, pooled{3, 4, 4, 5}, c{4};
  std::vector<Example> list;
  list.push_back({make_op(Unary(UnaryKind::Relu)), tensors({x})});
  list.push_back({make_op(Binary(BinaryKind::Add)), tensors({x, x})});
  list.push_back({make_op(Binary(BinaryKind::ReluGradient)), tensors({x, x})});
  list.push_back({make_op(two_by_two<MaxPool>()), tensors({x})});
  list.push_back({make_op(overlapping<MaxPool>()), tensors({x})});
  list.push_back({make_op(two_by_two<MaxPoolGradient>()), tensors({x, pooled})});
  list.push_back({make_op(two_by_two<AveragePool>()), tensors({x})});
  list.push_back({make_op(BatchNormalization{}), tensors({x, c, c, c, c})});
  list.push_back({make_op(training_normalization()), tensors({x, c, c, c, c})});
  list.push_back({make_op(BatchNormalizationGradient{}), tensors({x, x, c, c, c})});
  return list;
}

TEST(TensorKernels, accept_images_that_lie_further_apart_than_dense) {
  for (const auto& [op, inputs] : image_examples()) {
    SCOPED_TRACE(to_string(*op));
    expect_same_bits(run_kernel(*op, inputs, {.gap = 7}), run_kernel(*op, inputs));
  }
}

TEST(TensorKernels, write_elementwise_results_over_their_operand) {
  const Shape x{3, 40, 61};
  std::vector<Example> list;
  list.push_back({make_op(Unary(UnaryKind::Sigmoid)), tensors({x})});
  list.push_back({make_op(Binary(BinaryKind::Mul)), tensors({x, {40, 1}})});
  for (const auto& [op, inputs] : list) {
    expect_same_bits(run_kernel(*op, inputs, {.in_place = true}), run_kernel(*op, inputs));
  }
}

Tensor labels(Shape shape, std::int64_t classes) {
  RandomStream random(3, 0);
  Tensor tensor(TensorSpec{DType::I64, std::move(shape)});
  for (auto& label : tensor.as<std::int64_t>()) label = random.below(classes + 1) - 1;
  return tensor;
}

/// Large enough for every kernel to split its work.
std::vector<Example> large_examples() {
  const Shape x{3, 2, 180, 190}, few{2}, many{50, 40, 30}, pooled{3, 2, 90, 95}, c{40};
  std::vector<Example> list;
  list.push_back({make_op(Unary(UnaryKind::Gelu)), tensors({x})});
  list.push_back({make_op(Binary(BinaryKind::Pow)), tensors({x, {180, 1}})});
  list.push_back({make_op(Reduce(ReduceKind::Sum)), tensors({x})});
  list.push_back({make_op(Reduce(ReduceKind::Mean, {0, 2, 3})), tensors({x})});
  list.push_back({make_op(Reduce(ReduceKind::Sum, {0, 2})), tensors({x})});
  list.push_back({make_op(Reduce(ReduceKind::Max, {2})), tensors({x})});
  list.push_back({make_op(along<Softmax>(1)), tensors({x})});
  list.push_back({make_op(along<LogSoftmax>(-1)), tensors({x})});
  list.push_back({make_op(training_normalization()), tensors({x, few, few, few, few})});
  list.push_back({make_op(training_normalization()), tensors({many, c, c, c, c})});
  list.push_back({make_op(BatchNormalizationGradient{}), tensors({x, x, few, few, few})});
  list.push_back({make_op(two_by_two<MaxPoolGradient>()), tensors({x, pooled})});
  list.push_back({make_op(BinaryCrossEntropyWithLogits{}), tensors({x, x})});
  list.push_back(
      {make_op(AdamUpdate{}), tensors({Shape{}, Shape{}, x, few, x, few, x, few, x, few})});
  list.back().inputs[1] = scalar_tensor(std::int64_t{3});
  list.push_back({make_op(SoftmaxCrossEntropyLoss{}), tensors({x})});
  list.back().inputs.push_back(labels({3, 180, 190}, 2));
  list.push_back({make_op(SoftmaxCrossEntropyLossGradient{}), tensors({x, Shape{}, Shape{}})});
  list.back().inputs[1] = labels({3, 180, 190}, 2);
  Dropout dropout;
  dropout.training_mode = true;
  list.push_back({make_op(dropout), tensors({x})});
  list.back().inputs.push_back(scalar_tensor(std::int64_t{1}));
  return list;
}

TEST(TensorKernels, give_the_same_bits_on_any_number_of_threads) {
  for (const auto& [op, inputs] : large_examples()) {
    SCOPED_TRACE(to_string(*op));
    const auto one = run_kernel(*op, inputs, {.threads = 1});
    expect_same_bits(run_kernel(*op, inputs, {.threads = 2}), one);
    expect_same_bits(run_kernel(*op, inputs, {.threads = 3}), one);
  }
}

/// The stated tree over `row`, as its definition says.
float tree_sum(const std::vector<float>& row) {
  TreeFold<SumOf<float>> tree;
  for (std::size_t first = 0; first < row.size(); first += kReductionBlock) {
    const auto count = std::min<std::size_t>(kReductionBlock, row.size() - first);
    const auto value = [&](std::int64_t i) { return row[first + static_cast<std::size_t>(i)]; };
    tree.push(fold_block(static_cast<std::int64_t>(count), value, SumOf<float>()));
  }
  return tree.result();
}

/// Sums of x over `axes`, each over its elements in row-major order as one row.
std::vector<float> tree_sums(const Tensor& x, const Shape& kept) {
  const auto strides = broadcast_strides(kept, x.shape());
  std::vector<std::vector<float>> rows(static_cast<std::size_t>(kept.elements()));
  std::size_t n = 0;
  for_each_index(x.shape(), [&](const Dims& index) {
    rows[static_cast<std::size_t>(flat_index(index, strides))].push_back(x.as<float>()[n++]);
  });
  std::vector<float> sums;
  for (const auto& row : rows) sums.push_back(tree_sum(row));
  return sums;
}

TEST(ReduceKernel, sums_in_the_stated_tree_along_any_axes) {
  struct {
    std::vector<std::int64_t> axes;
    Shape kept;
  } const cases[] = {{{0, 1, 2, 3}, {1, 1, 1, 1}}, {{3}, {5, 3, 40, 1}},    {{0}, {1, 3, 40, 50}},
                     {{0, 2, 3}, {1, 3, 1, 1}},    {{1, 3}, {5, 1, 40, 1}}, {{0, 2}, {1, 3, 1, 50}},
                     {{0, 1, 2}, {1, 1, 1, 50}}};
  const auto x = random_tensor({5, 3, 40, 50});
  std::vector<Tensor> inputs;
  inputs.push_back(x.clone());
  for (const auto& [axes, kept] : cases) {
    const auto y = run_kernel(Reduce(ReduceKind::Sum, axes), inputs);
    const auto sums = y[0].as<float>();
    EXPECT_EQ(std::vector<float>(sums.begin(), sums.end()), tree_sums(x, kept)) << to_string(kept);
  }
}

TEST(BatchNormalizationKernel, takes_the_mean_of_planes_in_the_stated_tree) {
  const auto inputs = tensors({{2, 1, 1500}, {1}, {1}, {1}, {1}});
  const auto x = inputs[0].as<float>();
  TreeFold<SumOf<float>> tree;
  for (const std::ptrdiff_t first : {0, 1024, 1500, 2524}) {
    const auto count = first % 1500 == 0 ? 1024 : 476;
    tree.push(fold_block(
        count, [&](auto i) { return x[static_cast<std::size_t>(first + i)]; }, SumOf<float>()));
  }
  EXPECT_EQ(run_kernel(training_normalization(), inputs)[3].as<float>()[0],
            tree.result() / 3000.0F);
}

TEST(MaxPoolGradientKernel, gives_dy_to_the_first_of_equal_elements) {
  std::vector<Tensor> inputs;
  inputs.push_back(Tensor({1, 1, 2, 4}, std::vector<float>{5, 5, 1, 2, 5, 5, 7, 7}));
  inputs.push_back(Tensor({1, 1, 1, 2}, std::vector<float>{3, 4}));
  const auto dx = run_kernel(two_by_two<MaxPoolGradient>(), inputs);
  const auto values = dx[0].as<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
            (std::vector<float>{3, 0, 0, 0, 0, 0, 4, 0}));
}

TEST(CastKernel, saturates_at_limits_that_a_float_cannot_hold) {
  std::vector<Tensor> inputs;
  inputs.push_back(Tensor({4}, std::vector<float>{2147483648.0F, 2147483520.0F, -3e9F, 1.9F}));
  Cast op;
  op.to = "i32";
  const auto y = run_kernel(op, inputs);
  const auto values = y[0].as<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(values.begin(), values.end()),
            (std::vector<std::int32_t>{2147483647, 2147483520, -2147483647 - 1, 1}));
}

TEST(DropoutKernel, keeps_about_one_minus_ratio_of_the_elements) {
  Dropout op;
  op.ratio = 0.25F;
  op.training_mode = true;
  auto inputs = tensors({{100000}});
  inputs.push_back(scalar_tensor(std::int64_t{9}));
  const auto y = run_kernel(op, inputs);
  const auto keep = y[1].as<bool>();
  EXPECT_NEAR(static_cast<double>(std::count(keep.begin(), keep.end(), true)), 75000, 1000);
}

TEST(BinaryKernel, power_has_the_bits_of_one_element_alone) {
  constexpr float infinity = exact::kInfinity;
  const std::vector<float> specials = {0.0F,  -0.0F,    1.0F,      -1.0F,       0.75F,      -0.75F,
                                       2.0F,  3.0F,     -3.0F,     0.5F,        -0.5F,      1e-40F,
                                       3e38F, infinity, -infinity, exact::kNan, 16777217.0F};
  const auto count = std::ssize(specials) * std::ssize(specials) + 60;
  std::vector<Tensor> inputs;
  inputs.push_back(random_tensor({count}, 0, 0, 40));
  inputs.push_back(random_tensor({count}, 1, -20, 20));
  const auto a = inputs[0].as<float>(), b = inputs[1].as<float>();
  for (std::size_t i = 0; i < specials.size() * specials.size(); ++i) {
    a[i] = specials[i / specials.size()];
    b[i] = specials[i % specials.size()];
  }
  const auto y = run_kernel(Binary(BinaryKind::Pow), inputs);
  const FlushSubnormals flush;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(exact::bits_of(y[0].as<float>()[i]), exact::bits_of(exact::pow(a[i], b[i])))
        << a[i] << " to the " << b[i];
  }
}

}  // namespace
}  // namespace triptych::cpu
