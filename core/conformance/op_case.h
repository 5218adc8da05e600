// One description of an operator at work. Conformance, gradient checks, random graphs and
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
  double low = -1;  ///< values are uniform in [low, high). Integers are drawn from [low, high]
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
  /// Compares the gradient with finite differences of the reference. Off at kinks and for
  /// non-floats.
  bool check_gradient = true;

  /// Shown by GoogleTest.
  friend void PrintTo(const OpCase& test, std::ostream* out) { *out << to_string(*test.op); }
};

/// Appends `op` on x of every dtype, filled with whole numbers that all of them hold.
void add_dtypes(std::vector<OpCase>& cases, const std::string& name, const OpPtr& op,
                const Shape& x);

/// Every case of every operator. Each file of operators, core/ops/NAME.h, has its cases in
/// cases/NAME_cases.cpp, where `void add_NAME_cases(std::vector<OpCase>& cases)` appends them.
std::vector<OpCase> all_cases();

}  // namespace triptych::conformance
