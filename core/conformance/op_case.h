// One description of an operator at work; conformance, gradient checks, random graphs and
// benchmarks are run from it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "core/ops/op.h"

namespace triptych::conformance {

/// How one input is filled, from a seed.
struct InputRule {
  TensorSpec spec;
  double low = -1;  ///< values are uniform in [low, high); integers are drawn from [low, high]
  double high = 1;
  std::vector<double> values = {};  ///< exactly these instead, when not empty
  bool state = false;               ///< the input is a state that the operator updates in place
  bool constant = false;            ///< the input is known at plan time (weights, indices)
};

/// Shorthand for an f32 input in [low, high).
InputRule f32(Shape shape, double low = -1, double high = 1);
InputRule of(DType dtype, Shape shape, double low = -1, double high = 1);
InputRule exactly(DType dtype, Shape shape, std::vector<double> values);
/// Bias, multiplier and shift of a quantised convolution, such that most outputs do not saturate.
std::vector<InputRule> requantization(std::int64_t channels);

struct OpCase {
  std::string name;  ///< "stride2_pad1": unique within the operator
  OpPtr op;
  std::vector<InputRule> inputs;
  /// Compare the gradient with finite differences of the reference? Off at kinks and for
  /// non-floats.
  bool check_gradient = true;

  /// Shown by GoogleTest.
  friend void PrintTo(const OpCase& test, std::ostream* out) { *out << to_string(*test.op); }
};

/// Every case of every operator. Each file of core/conformance/cases appends its own.
std::vector<OpCase> all_cases();

void add_matmul_cases(std::vector<OpCase>& cases);
void add_conv_cases(std::vector<OpCase>& cases);
void add_conv_transpose_cases(std::vector<OpCase>& cases);
void add_quantize_cases(std::vector<OpCase>& cases);
void add_pool_cases(std::vector<OpCase>& cases);
void add_normalization_cases(std::vector<OpCase>& cases);
void add_unary_cases(std::vector<OpCase>& cases);
void add_collective_cases(std::vector<OpCase>& cases);
void add_binary_cases(std::vector<OpCase>& cases);
void add_reduce_cases(std::vector<OpCase>& cases);
void add_softmax_cases(std::vector<OpCase>& cases);
void add_attention_cases(std::vector<OpCase>& cases);
void add_fused_elementwise_cases(std::vector<OpCase>& cases);
void add_movement_cases(std::vector<OpCase>& cases);
void add_resize_cases(std::vector<OpCase>& cases);
void add_loss_cases(std::vector<OpCase>& cases);
void add_optimizer_cases(std::vector<OpCase>& cases);

}  // namespace triptych::conformance
