// Arithmetic of a kernel with a stated direction of rounding: __dadd_rd and its like. The result
// rounded to nearest and the sign of its exact error give the result of each direction. Other
// values, such as zeros, subnormal numbers and infinities, change the processor's mode.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfenv>

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): CUDA's own names.
namespace triptych::cuda::program {

/// A value that the compiler does not compute with beforehand, in another mode.
template <class T>
TRIPTYCH_UNWATCHED T opaque(const T& value) {
  return *const_cast<const volatile T*>(&value);
}

/// The result of `operation` on the values in a mode of <cfenv>. Other code runs in the usual one.
template <class Operation, class... Values>
TRIPTYCH_UNWATCHED auto rounded(int mode, const Operation& operation, const Values&... values) {
  const int before = std::fegetround();
  std::fesetround(mode);
  volatile auto result = operation(opaque(values)...);
  std::fesetround(before);
  return result;
}

/// True for numbers whose errors of rounding, and products of two such errors, are normal numbers.
template <class T>
TRIPTYCH_UNWATCHED bool has_exact_error(T value) {
  using Limits = std::numeric_limits<T>;
  constexpr T kLeast = Limits::min() / (Limits::epsilon() * Limits::epsilon());
  const T size = value < 0 ? -value : value;
  return size > kLeast && size < Limits::max() / 4;
}

/// The result of a direction, from the one that is rounded to nearest and the sign of
/// exact result - nearest result.
template <int kMode, class T, class Error>
TRIPTYCH_UNWATCHED T directed(T nearest, Error error) {
  const bool rises = error > 0 && (kMode == FE_UPWARD || (kMode == FE_TOWARDZERO && nearest < 0));
  const bool falls = error < 0 && (kMode == FE_DOWNWARD || (kMode == FE_TOWARDZERO && nearest > 0));
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  const auto bits = __builtin_bit_cast(Bits, nearest);
  const Bits away = rises == (nearest > 0) ? 1 : -1;
  return rises || falls ? __builtin_bit_cast(T, static_cast<Bits>(bits + away)) : nearest;
}

/// (a + b) - sum, where sum is rounded to nearest.
template <class T>
TRIPTYCH_UNWATCHED T error_of_sum(T a, T b, T sum) {
  const T second = sum - a;
  return (a - (sum - second)) + (b - second);
}
/// a * b - product
TRIPTYCH_UNWATCHED inline double error_of_product(double a, double b, double product) {
  return __builtin_fma(a, b, -product);
}
TRIPTYCH_UNWATCHED inline float error_of_product(float a, float b, float product) {
  return __builtin_fmaf(a, b, -product);
}
/// A number with the sign of a / b - quotient.
template <class T>
TRIPTYCH_UNWATCHED T error_of_quotient(T a, T b, T quotient) {
  const T rest = -error_of_product(quotient, b, a);
  return b < 0 ? -rest : rest;
}

}  // namespace triptych::cuda::program

/// `error` has the sign of the exact result minus `nearest`, which is rounded to nearest, if
/// `nearest` and `operand` have exact errors. Names of the parameters are last.
#define TRIPTYCH_DIRECTED(type, name, suffix, mode, parameters, expression, operand, error, ...) \
  TRIPTYCH_UNWATCHED inline type name##suffix parameters {                                       \
    using namespace triptych::cuda::program;                                                     \
    const auto compute = [] TRIPTYCH_UNWATCHED parameters { return expression; };                \
    const type nearest = compute(__VA_ARGS__);                                                   \
    if (has_exact_error(nearest) && has_exact_error(operand)) {                                  \
      return directed<mode>(nearest, error);                                                     \
    }                                                                                            \
    return rounded(mode, compute, __VA_ARGS__);                                                  \
  }
#define TRIPTYCH_DIRECTIONS(type, name, ...)                   \
  TRIPTYCH_DIRECTED(type, name, _rd, FE_DOWNWARD, __VA_ARGS__) \
  TRIPTYCH_DIRECTED(type, name, _ru, FE_UPWARD, __VA_ARGS__)   \
  TRIPTYCH_DIRECTED(type, name, _rz, FE_TOWARDZERO, __VA_ARGS__)
// 0 has no exact error: fma always changes the mode.
#define TRIPTYCH_OPERATIONS(type, prefix, fused)                                                  \
  TRIPTYCH_DIRECTIONS(type, prefix##add, (type a, type b), a + b, nearest,                        \
                      error_of_sum(a, b, nearest), a, b)                                          \
  TRIPTYCH_DIRECTIONS(type, prefix##sub, (type a, type b), a - b, nearest,                        \
                      error_of_sum(a, -b, nearest), a, b)                                         \
  TRIPTYCH_DIRECTIONS(type, prefix##mul, (type a, type b), a* b, nearest,                         \
                      error_of_product(a, b, nearest), a, b)                                      \
  TRIPTYCH_DIRECTIONS(type, prefix##div, (type a, type b), a / b, a,                              \
                      error_of_quotient(a, b, nearest), a, b)                                     \
  TRIPTYCH_DIRECTIONS(type, prefix##rcp, (type a), 1 / a, a,                                      \
                      error_of_quotient<type>(1, a, nearest), a)                                  \
  TRIPTYCH_DIRECTIONS(type, prefix##sqrt, (type a), std::sqrt(a), a,                              \
                      -error_of_product(nearest, nearest, a), a)                                  \
  TRIPTYCH_DIRECTIONS(type, fused, (type a, type b, type c), std::fma(a, b, c), type{0}, type{0}, \
                      a, b, c)
TRIPTYCH_OPERATIONS(float, __f, __fmaf)
TRIPTYCH_OPERATIONS(double, __d, __fma)
TRIPTYCH_DIRECTIONS(float, __double2float, (double a), static_cast<float>(a), nearest, a - nearest,
                    a)
TRIPTYCH_DIRECTIONS(float, __int2float, (int a), static_cast<float>(a), nearest,
                    a - static_cast<double>(nearest), a)
TRIPTYCH_DIRECTIONS(float, __uint2float, (unsigned a), static_cast<float>(a), nearest,
                    a - static_cast<double>(nearest), a)
#undef TRIPTYCH_OPERATIONS
#undef TRIPTYCH_DIRECTIONS
#undef TRIPTYCH_DIRECTED
TRIPTYCH_UNWATCHED inline double __dsub_rn(double a, double b) { return a - b; }
TRIPTYCH_UNWATCHED inline double __ddiv_rn(double a, double b) { return a / b; }
TRIPTYCH_UNWATCHED inline double __drcp_rn(double a) { return 1 / a; }
TRIPTYCH_UNWATCHED inline double __dsqrt_rn(double a) { return std::sqrt(a); }
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
