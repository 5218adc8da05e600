// SPDX-License-Identifier: Apache-2.0
#include "core/ops/elementwise.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace triptych {

void require_dtype_among(std::string_view op, Specs inputs, std::size_t index,
                         std::span<const DType> dtypes) {
  if (std::ranges::find(dtypes, inputs[index].dtype) != dtypes.end()) return;
  std::string names;
  for (const auto dtype : dtypes) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", to_string(dtype));
  }
  throw_invalid(op, fmt::format("input {} is {}; its dtype must be one of {}", index,
                                to_string(inputs[index]), names));
}

void require_same_dtype(std::string_view op, Specs inputs, std::size_t first, std::size_t second) {
  if (inputs[first].dtype == inputs[second].dtype) return;
  throw_invalid(op,
                fmt::format("inputs {} and {} are {} and {}; their dtypes must be the same, "
                            "Cast one of them",
                            first, second, to_string(inputs[first]), to_string(inputs[second])));
}

std::int64_t to_int64(double value) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (value >= 0x1p63) return Limits::max();
  return value < -0x1p63 ? Limits::min() : static_cast<std::int64_t>(value);
}

double wrap_integer(DType dtype, std::int64_t value) {
  return visit_dtype(dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) return static_cast<double>(static_cast<T>(value));
    return static_cast<double>(value);
  });
}

ErrorBound elementwise_bound(DType dtype, double ulps, double absolute) {
  const double subnormal = dtype == DType::F16 ? 0x1p-24 : 0x1p-126;
  return {.terms = 0, .ulps = ulps, .absolute = absolute + subnormal};
}

}  // namespace triptych
