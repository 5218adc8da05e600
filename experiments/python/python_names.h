// Names of operators and attributes as Python's functions and arguments have them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace triptych::python {

/// `name`, with an underscore behind it where it is a word of Python's own.
std::string python_word(std::string_view name);

/// Function of an operator: MatMul and ReduceSum are matmul and reduce_sum, And is and_.
std::string python_name(std::string_view op);

}  // namespace triptych::python
