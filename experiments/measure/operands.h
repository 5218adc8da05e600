// Operands of a single operator that a user gives as arrays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace triptych::measure {

/// Two operands in the shapes of the float32 operator. Empty: noise.
struct Operands {
  std::shared_ptr<const Tensor> first, second;
};

/// A graph's input that is not noise.
struct GivenInput {
  std::string name;
  std::shared_ptr<const Tensor> value;
};

/// The two .npy files that `files` names, for example {"a.npy", "b.npy"}. Empty for none. Throws
/// InvalidArgument for another type or shape. A leading batch of 1 may be missing.
Operands load_operands(const std::vector<std::string>& files, const TensorSpec& first,
                       const TensorSpec& second);

}  // namespace triptych::measure
