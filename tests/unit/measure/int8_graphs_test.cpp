// Single operators of the int8 contract: layouts of given operands, scales.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/measure/int8_graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/io/npy.h"
#include "core/io/temporary_folder.h"
#include "core/ops/quantized_conv.h"
#include "experiments/measure/operands.h"

namespace triptych::measure {
namespace {

using testing::ElementsAre;

std::shared_ptr<const Tensor> numbers(Shape shape, const std::vector<std::int8_t>& values) {
  return std::make_shared<const Tensor>(std::move(shape), values);
}

std::vector<int> values_of(const Tensor& tensor) {
  const auto span = tensor.as<std::int8_t>();
  return {span.begin(), span.end()};
}

ProductOptions small_product() {
  return {.shape = {.m = 2, .k = 3, .n = 1},
          .int8 = true,
          .operands = {numbers({1, 2, 3}, {1, 2, 3, 4, 5, 6}), numbers({1, 3, 1}, {7, 8, 9})}};
}

TEST(Int8Graphs, lay_a_product_out_as_a_convolution) {
  const auto options = small_product();
  const auto graph = int8_product_graph(options);
  EXPECT_EQ(graph.spec(graph.find("x")).shape, (Shape{1, 3, 2, 1}));
  EXPECT_THAT(values_of(*int8_product_input(options)), ElementsAre(1, 4, 2, 5, 3, 6));
  const auto& weights = *graph.value(graph.find("w")).data;
  EXPECT_EQ(weights.spec().shape, (Shape{1, 3, 1, 1}));
  EXPECT_THAT(values_of(weights), ElementsAre(7, 8, 9));
  EXPECT_EQ(graph.spec(graph.outputs().front().value).dtype, DType::I32);
}

TEST(Int8Graphs, results_with_scales_are_int8) {
  auto options = small_product();
  options.scales = {0.5, 0.25, 2};
  const auto graph = int8_product_graph(options);
  const auto& multiplier = *graph.value(graph.find("multiplier")).data;
  const auto& shift = *graph.value(graph.find("shift")).data;
  EXPECT_EQ(multiplier.as<std::int32_t>()[0] / std::exp2(shift.as<std::int32_t>()[0]), 1.0 / 16);
}

TEST(Int8Graphs, a_batch_is_a_convolution_of_groups) {
  ProductOptions options = {.shape = {.m = 2, .k = 3, .n = 5}, .batch = 4, .int8 = true};
  const auto graph = int8_product_graph(options);
  EXPECT_EQ(graph.spec(graph.find("x")).shape, (Shape{1, 12, 2, 1}));
  EXPECT_EQ(op_cast<QuantizedConv>(*graph.nodes().front().op)->group, 4);
}

TEST(Operands, have_the_operators_type_and_shape) {
  const TemporaryFolder folder("operands");
  const auto file = (folder.path() / "a.npy").string();
  save_npy(file, *numbers({2, 3}, {1, 2, 3, 4, 5, 6}));
  const TensorSpec wanted = {DType::I8, {1, 2, 3}};
  const auto loaded = load_operands({file, file}, wanted, wanted);
  EXPECT_EQ(loaded.first->spec(), wanted);
  EXPECT_THAT(values_of(*loaded.second), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(load_operands({}, wanted, wanted).first, nullptr);
  EXPECT_THROW(load_operands({file, file}, wanted, {DType::I8, {1, 3, 2}}), InvalidArgument);
  EXPECT_THROW(load_operands({file, file}, {DType::F32, {2, 3}}, wanted), InvalidArgument);
}

}  // namespace
}  // namespace triptych::measure
