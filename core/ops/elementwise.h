// Common part of the elementwise families, and their shape rules.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op.h"

namespace triptych {

/// Calls `rule` and puts the operator's name before the message of an InvalidArgument.
template <class Rule>
auto name_errors(std::string_view op, const Rule& rule) {
  try {
    return rule();
  } catch (const InvalidArgument& error) {
    throw_invalid(op, error.what());
  }
}

/// Throws "[op] input I is i8[..]; its dtype must be one of ..." otherwise.
void require_dtype_among(std::string_view op, Specs inputs, std::size_t index,
                         std::span<const DType> dtypes);

/// Throws unless inputs `first` and `second` have the same dtype.
void require_same_dtype(std::string_view op, Specs inputs, std::size_t first, std::size_t second);

/// The integer that a double stands for. Beyond i64 the nearest: its largest value is 2^63 as a
/// double.
std::int64_t to_int64(double value);

/// `value` as `dtype` stores it: its lowest bits. Exact up to 2^53.
double wrap_integer(DType dtype, std::int64_t value);

/// `ulps` roundings of the result, `absolute`, and the loss of a subnormal result: f32 and bf16
/// flush it, f16 stores it with fewer digits.
ErrorBound elementwise_bound(DType dtype, double ulps, double absolute = 0);

}  // namespace triptych
