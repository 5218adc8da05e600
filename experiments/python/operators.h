// Operators by their names and attributes in Python.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "core/ops/op.h"

namespace triptych::python {

/// The operator of that name; what `attributes` does not name keeps its default. Throws
/// InvalidArgument for an unknown name, and for a value of another type.
OpPtr make_operator(const std::string& name, const pybind11::dict& attributes);

}  // namespace triptych::python
