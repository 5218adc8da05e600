// Operators by their names and attributes in Python.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <optional>
#include <string>

#include "core/ops/op.h"

namespace triptych::python {

/// The operator of that name. Attributes missing in `attributes` have their defaults. Throws
/// InvalidArgument for an unknown name, and for a value of another type.
OpPtr make_operator(const std::string& name, const pybind11::dict& attributes);

/// A number of Python's as operand `i`: where `op` takes two of one dtype and the other is an array
/// or value, it has that dtype. Nothing for other operands. Throws InvalidArgument for a number
/// that the dtype has no place for.
std::optional<Tensor> literal_operand(const Op& op, const pybind11::tuple& arguments,
                                      std::size_t i);

}  // namespace triptych::python
