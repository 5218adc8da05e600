// The largest integers, which the reference holds as doubles: 2^63 - 1 becomes 2^63, which no i64
// is.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/ops/binary.h"
#include "core/ops/cast.h"
#include "core/ops/reduce.h"

namespace triptych {
namespace {

constexpr double kLargest = 0x1p63;

std::vector<double> result(const Op& op, DType dtype,
                           const std::vector<std::vector<double>>& operands) {
  std::vector<RefTensor> inputs;
  for (const auto& values : operands)
    inputs.push_back({{dtype, {static_cast<std::int64_t>(values.size())}}, values});
  std::vector<TensorSpec> specs;
  for (const auto& input : inputs) specs.push_back(input.spec);
  const auto spec = op.infer(specs)[0];
  std::vector<RefTensor> outputs = {
      {spec, std::vector<double>(static_cast<std::size_t>(spec.shape.elements()))}};
  op.reference(inputs, outputs);
  return outputs[0].values;
}

TEST(IntegerOps, the_largest_stays_the_largest) {
  using Values = std::vector<double>;
  Cast onto_i32;
  onto_i32.to = "i32";
  EXPECT_EQ(result(Binary(BinaryKind::Min), DType::I64, {{kLargest, kLargest}, {5, kLargest}}),
            (Values{5, kLargest}));
  EXPECT_EQ(result(Binary(BinaryKind::Max), DType::I64, {{kLargest}, {5}}), Values{kLargest});
  EXPECT_EQ(result(Reduce(ReduceKind::Max), DType::I64, {{kLargest, 5}}), Values{kLargest});
  EXPECT_EQ(result(onto_i32, DType::I64, {{kLargest}}), Values{-1}) << "its lowest bits";
}

}  // namespace
}  // namespace triptych
