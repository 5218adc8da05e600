// 64-bit size arithmetic that refuses to wrap. Every size that comes from a file goes through it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/error.h"

namespace triptych {

/// a * b. Throws InvalidArgument when the product does not fit in 64 bits.
inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw InvalidArgument("size overflows 64 bits");
  return result;
}

/// a + b. Throws InvalidArgument when the sum does not fit in 64 bits.
inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) throw InvalidArgument("size overflows 64 bits");
  return result;
}

/// Smallest integer not below a / b, for a >= 0 and b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Smallest multiple of `unit` not below `value`.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return ceil_div(value, unit) * unit;
}

}  // namespace triptych
