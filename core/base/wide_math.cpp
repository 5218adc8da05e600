// SPDX-License-Identifier: Apache-2.0
#include "core/base/wide_math.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/base/error.h"

namespace triptych::wide {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kToInteger = 0x1.8p52;  // added and taken away again it rounds to an integer
// Parts of pi/2 and of log 2: the first of each have so few bits that whole multiples of them are
// exact, and their sum is longer than a double.
constexpr std::array kHalfPi = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};
constexpr std::array kLog2 = {0x1.62e42fefap-1, 0x1.cf79abc9e3b3ap-40};

/// A number and its rounding error.
struct Long {
  double value = 0;
  double rest = 0;
};

/// a + b, for |a| >= |b|.
Long sum(double a, double b) {
  const double value = a + b;
  return {value, b - (value - a)};
}

/// c[0] + c[1] x + c[2] x^2 ...
template <std::size_t Count>
double polynomial(double x, const std::array<double, Count>& c) {
  double y = c.back();
  for (std::size_t i = Count - 1; i > 0; --i) y = y * x + c[i - 1];
  return y;
}

/// An angle from -pi/4 to pi/4, and the number of quarter turns that were subtracted.
struct Reduced {
  Long angle;
  std::int64_t quarters = 0;
};

Reduced reduce(double angle) {
  TRIPTYCH_ASSERT(!(angle > kLargestAngle) && !(angle < -kLargestAngle));
  const double quarters = (angle * 0.63661977236758134 + kToInteger) - kToInteger;
  const double most = angle - quarters * kHalfPi[0];
  const double next = quarters * kHalfPi[1];
  // The difference and its exact rounding error, whichever is larger.
  const double value = most - next;
  const double taken = most - value;
  const double rest = (most - (value + taken)) + (taken - next);
  const auto total = sum(value, rest - quarters * kHalfPi[2]);
  return {total, static_cast<std::int64_t>(quarters)};
}

double sin_of(const Long& angle) {
  static constexpr std::array<double, 8> series = {
      -1.0 / 6,        1.0 / 120,        -1.0 / 5040,         1.0 / 362880,
      -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368e3, 1.0 / 355687428096e3};
  const double r = angle.value, square = r * r;
  return r + (r * square * polynomial(square, series) + angle.rest * (1 - square / 2));
}

double cos_of(const Long& angle) {
  static constexpr std::array<double, 8> series = {
      1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
      1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728e3};
  const double r = angle.value, square = r * r;
  const auto first = sum(1, -square / 2);
  return first.value +
         (first.rest + (square * square * polynomial(square, series) - r * angle.rest));
}

/// sin of the angle and so many quarter turns more.
double sin_of_quarters(const Long& angle, std::int64_t quarters) {
  const double y = (quarters & 1) != 0 ? cos_of(angle) : sin_of(angle);
  return (quarters & 2) != 0 ? -y : y;
}

/// 2^n for a normal result.
double power_of_two(std::int64_t n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

}  // namespace

double sin(double angle) {
  if (angle != angle) return kNan;
  if (angle == 0) return angle;
  const auto reduced = reduce(angle);
  return sin_of_quarters(reduced.angle, reduced.quarters);
}

double cos(double angle) {
  if (angle != angle) return kNan;
  const auto reduced = reduce(angle);
  return sin_of_quarters(reduced.angle, reduced.quarters + 1);
}

double exp(double x) {
  static constexpr std::array<double, 13> series = {
      1.0 / 2,         1.0 / 6,          1.0 / 24,         1.0 / 120,     1.0 / 720,
      1.0 / 5040,      1.0 / 40320,      1.0 / 362880,     1.0 / 3628800, 1.0 / 39916800,
      1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200};
  if (x != x) return kNan;
  if (x > 709.782712893384) return kInfinity;
  if (x < -745.1332191019412) return 0;
  const double n = (x * 1.4426950408889634 + kToInteger) - kToInteger;
  const auto r = sum(x - n * kLog2[0], -n * kLog2[1]);
  const double square = r.value * r.value;
  const auto first = sum(1, r.value);
  const double y =
      first.value + (first.rest + (square * polynomial(r.value, series) + r.rest * first.value));
  // In two steps, so that a subnormal is rounded once, and the largest number has a power.
  const auto half = static_cast<std::int64_t>(n) / 2;
  return y * power_of_two(half) * power_of_two(static_cast<std::int64_t>(n) - half);
}

double log(double x) {
  static constexpr std::array<double, 11> series = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,
                                                    2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17,
                                                    2.0 / 19, 2.0 / 21, 2.0 / 23};
  if (x == 0) return -kInfinity;
  if (!(x > 0)) return kNan;
  if (x == kInfinity) return kInfinity;
  const bool subnormal = x < std::numeric_limits<double>::min();
  const auto bits = std::bit_cast<std::uint64_t>(subnormal ? x * 0x1p54 : x);
  // x = 2^e (1 + f) with 1 + f from the root of 1/2 to that of 2.
  const auto exponent =
      static_cast<std::int64_t>(bits - std::bit_cast<std::uint64_t>(0.70710678118654752)) >> 52;
  const double f = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << 52)) - 1;
  const double e = static_cast<double>(subnormal ? exponent - 54 : exponent);
  const double s = f / (2 + f), z = s * s, half = f * f / 2;
  const double inner = s * (half + z * polynomial(z, series)) + e * kLog2[1];
  return e * kLog2[0] - ((half - inner) - f);
}

}  // namespace triptych::wide
