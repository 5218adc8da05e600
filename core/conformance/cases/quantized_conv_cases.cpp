// Problems of the quantised convolutions in addition to those of the floating ones.
// SPDX-License-Identifier: Apache-2.0
#include "core/ops/quantized_conv.h"

#include <limits>

#include "core/conformance/op_case.h"

namespace triptych::conformance {
namespace {

constexpr double kLowest = std::numeric_limits<std::int32_t>::min();
constexpr double kHighest = std::numeric_limits<std::int32_t>::max();

InputRule words(std::vector<double> values) {
  const auto count = std::ssize(values);
  return exactly(DType::I32, {count}, std::move(values));
}

/// 1x1 products with sums, multipliers and shifts at the ends of their ranges.
template <class Op>
void add_extremes(std::vector<OpCase>& cases) {
  const Shape weights = {6, 6, 1, 1};
  const std::vector<InputRule> products = {of(DType::I8, {1, 6, 3, 5}, -128, 127),
                                           of(DType::I8, weights, -128, 127)};
  const auto with = [&](std::vector<InputRule> more, const std::string& activation = "") {
    Op op;
    op.activation = activation;
    auto inputs = products;
    inputs.insert(inputs.end(), more.begin(), more.end());
    return OpCase{"", make_op(op), std::move(inputs), false};
  };
  const auto bias = words({kHighest, kLowest, kHighest - 50000, 0, 7, kLowest + 50000});
  const auto multiplier = words({kHighest, kLowest, 1, 0, -5, 0x40000000});
  const auto shift = words({62, 31, 1, 17, 40, 35});
  const auto add = [&](const std::string& name, OpCase test) {
    test.name = name;
    cases.push_back(std::move(test));
  };
  add("sums_wrap", with({bias}));
  add("sums_wrap_relu", with({bias}, "relu"));
  add("extremes", with({bias, multiplier, shift}));
  add("extremes_relu", with({bias, multiplier, shift}, "relu"));
  add("shift_is_cut", with({words({0, 1, -1, 5, -5, 100}), words({1, 1, 1, 1, 3, 0x7FFFFFFF}),
                            words({0, -7, 63, 1000, kLowest, kHighest})}));
  // Halves round up, for either sign.
  add("halves",
      with({words({0, 1, 2, 3, 4, 5}), words({1, 1, 1, 1, 1, 1}), words({1, 1, 2, 3, 4, 8})}));
}

}  // namespace

void add_quantized_conv_cases(std::vector<OpCase>& cases) {
  add_extremes<QuantizedConv>(cases);
  add_extremes<QuantizedConvTranspose>(cases);
}

}  // namespace triptych::conformance
