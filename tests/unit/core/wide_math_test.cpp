// Errors of the float64 functions against those of the C library in long double, which has 11 bits
// more, and their bits against a recorded hash.
// SPDX-License-Identifier: Apache-2.0
#include "core/base/wide_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/fnv1a.h"
#include "core/base/random.h"

namespace triptych {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Numbers of both signs with magnitudes spread evenly over the powers of two between these.
std::vector<double> numbers(int lowest_power, int highest_power, int count = 200000) {
  RandomStream random(1, static_cast<std::uint64_t>(highest_power + 2000));
  std::vector<double> list;
  for (int i = 0; i < count; ++i) {
    const auto mantissa = 1 + static_cast<double>(random.bits()) * 0x1p-32 +
                          static_cast<double>(random.bits()) * 0x1p-64;
    const auto power = lowest_power + random.below(highest_power - lowest_power + 1);
    const double magnitude = std::ldexp(mantissa, static_cast<int>(power));
    list.push_back(random.bits() % 2 == 0 ? magnitude : -magnitude);
  }
  return list;
}

double ulp_of(long double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent, -1021) - 53);
}

template <class Function, class Reference>
double worst_error(const std::vector<double>& arguments, Function function, Reference reference) {
  double worst = 0;
  for (const double x : arguments) {
    const long double expected = reference(static_cast<long double>(x));
    if (std::fabs(expected) > std::numeric_limits<double>::max()) continue;
    const auto error = std::fabs(static_cast<long double>(function(x)) - expected);
    worst = std::max(worst, static_cast<double>(error / ulp_of(expected)));
  }
  return worst;
}

long double sin_reference(long double x) { return std::sin(x); }
long double cos_reference(long double x) { return std::cos(x); }
long double exp_reference(long double x) { return std::exp(x); }
long double log_reference(long double x) { return std::log(x); }

TEST(WideMath, sin_and_cos_are_within_one_ulp) {
  auto angles = numbers(-60, 19);
  for (int quarter = -400000; quarter < 400000; quarter += 7)  // where they are nearly 0
    angles.push_back(quarter * 1.5707963267948966);
  EXPECT_LT(worst_error(angles, wide::sin, sin_reference), 1);
  EXPECT_LT(worst_error(angles, wide::cos, cos_reference), 1);
}

TEST(WideMath, exp_is_within_one_ulp) {
  auto list = numbers(-60, 9);
  for (double x = -745; x < 710; x += 0.0137) list.push_back(x);
  EXPECT_LT(worst_error(list, wide::exp, exp_reference), 1);
}

TEST(WideMath, log_is_within_one_ulp) {
  auto list = numbers(-1074, 1023);
  for (auto& x : list) x = std::fabs(x);
  for (double x = 0.5; x < 2; x += 0x1p-16) list.push_back(x);
  for (double away = 0x1p-52; away < 0.1; away *= 1.001) {
    list.push_back(1 + away);
    list.push_back(1 - away);
  }
  EXPECT_LT(worst_error(list, wide::log, log_reference), 1);
}

TEST(WideMath, special_values_are_the_usual_ones) {
  EXPECT_EQ(wide::exp(0), 1);
  EXPECT_EQ(wide::exp(1000), kInfinity);
  EXPECT_EQ(wide::exp(kInfinity), kInfinity);
  EXPECT_EQ(wide::exp(-kInfinity), 0);
  EXPECT_EQ(wide::exp(-745.2), 0);
  EXPECT_EQ(wide::exp(-745.1), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(wide::log(1), 0);
  EXPECT_EQ(wide::log(0), -kInfinity);
  EXPECT_EQ(wide::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(wide::log(-1)));
  EXPECT_EQ(wide::cos(0), 1);
  EXPECT_TRUE(std::signbit(wide::sin(-0.0)));
  for (const auto function : {wide::sin, wide::cos, wide::exp, wide::log})
    EXPECT_TRUE(std::isnan(function(std::nan(""))));
}

/// The value is one that any compiler of any processor must give.
TEST(WideMath, its_bits_are_the_recorded_ones) {
  std::vector<double> values;
  for (const double x : numbers(-60, 9, 20000)) {
    values.push_back(wide::sin(x));
    values.push_back(wide::cos(x));
    values.push_back(wide::exp(x));
    values.push_back(wide::log(std::fabs(x)));
  }
  EXPECT_EQ(fnv1a(std::as_bytes(std::span(values))), 6845418213512418138u);
}

}  // namespace
}  // namespace triptych
