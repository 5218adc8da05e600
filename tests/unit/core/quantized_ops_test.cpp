// Refusals of the quantised operators, and their work.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/quantize.h"
#include "core/ops/quantized_conv.h"

namespace triptych {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<TensorSpec> operands(std::size_t count) {
  std::vector<TensorSpec> all = {{DType::I8, {1, 3, 8, 8}},
                                 {DType::I8, {4, 3, 3, 3}},
                                 {DType::I32, {4}},
                                 {DType::I32, {4}},
                                 {DType::I32, {4}}};
  all.resize(count);
  return all;
}

TEST(QuantizedConv, gives_sums_or_int8_by_the_number_of_inputs) {
  const Shape y = {1, 4, 6, 6};
  EXPECT_EQ(QuantizedConv{}.infer(operands(2))[0], (TensorSpec{DType::I32, y}));
  EXPECT_EQ(QuantizedConv{}.infer(operands(3))[0], (TensorSpec{DType::I32, y}));
  EXPECT_EQ(QuantizedConv{}.infer(operands(5))[0], (TensorSpec{DType::I8, y}));
}

TEST(QuantizedConv, refuses_a_multiplier_without_a_shift) {
  EXPECT_THAT([] { QuantizedConv{}.infer(operands(4)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("[QuantizedConv] got 4 inputs")));
}

TEST(QuantizedConv, refuses_other_dtypes_shapes_and_activations) {
  auto inputs = operands(5);
  inputs[0].dtype = DType::F32;
  EXPECT_THAT([&] { QuantizedConv{}.infer(inputs); },
              ThrowsMessage<InvalidArgument>(HasSubstr("its dtype must be i8")));
  inputs = operands(5);
  inputs[4].shape = {3};
  EXPECT_THAT([&] { QuantizedConv{}.infer(inputs); },
              ThrowsMessage<InvalidArgument>(HasSubstr("its shape must be [4]")));
  QuantizedConv op;
  op.activation = "gelu";
  EXPECT_THAT([&] { op.infer(operands(5)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("must be empty or \"relu\"")));
}

TEST(QuantizedConv, counts_two_operations_for_each_multiply_add) {
  const auto inputs = operands(2);
  const auto outputs = QuantizedConv{}.infer(inputs);
  EXPECT_EQ(QuantizedConv{}.cost(inputs, outputs).flops, 2.0 * 36 * 4 * 27);
}

TEST(QuantizedConvTranspose, names_itself_in_what_it_refuses) {
  QuantizedConvTranspose op;
  op.output_padding = {1};
  EXPECT_THAT([&] { op.infer(operands(2)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("[QuantizedConvTranspose]")));
}

TEST(DequantizeLinear, wants_one_scale_or_one_per_index_of_the_axis) {
  std::vector<TensorSpec> inputs = {{DType::I32, {2, 3, 4}}, {DType::F32, {3}}};
  EXPECT_EQ(DequantizeLinear{}.infer(inputs)[0], (TensorSpec{DType::F32, {2, 3, 4}}));
  inputs[1].shape = {};
  EXPECT_NO_THROW(DequantizeLinear{}.infer(inputs));
  inputs[1].shape = {4};
  EXPECT_THROW(DequantizeLinear{}.infer(inputs), InvalidArgument);
}

}  // namespace
}  // namespace triptych
