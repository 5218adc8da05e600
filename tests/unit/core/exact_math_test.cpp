// Errors against double of the shared elementary functions, over every 389th (pow: 9973rd) float.
// TRIPTYCH_FLOAT_STEP=97, as in the part `campaign`, takes four times as many.
// SPDX-License-Identifier: Apache-2.0
#include "core/base/exact_activations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

namespace triptych {
namespace {

struct Worst {
  double ulps = 0;
  float at = 0;
};

double ulp_of(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, exponent - 24);
}

/// Error of `y` in ulps of `expected`, infinite where a special case is wrong.
double error_in_ulps(float y, double expected) {
  if (std::isnan(expected)) return exact::bits_of(y) == 0x7FC00000u ? 0 : HUGE_VAL;
  const auto rounded = static_cast<float>(expected);
  if (y == rounded) return 0;
  if (std::fabs(expected) < double{FLT_MIN}) return std::fabs(y) <= FLT_MIN ? 0 : HUGE_VAL;
  return std::fabs(double{y} - expected) / ulp_of(expected);
}

std::uint64_t float_step() {
  const char* text = std::getenv("TRIPTYCH_FLOAT_STEP");
  return text == nullptr ? 389 : std::stoull(text);
}

/// function(x) of the floats with a bit pattern divisible by `step`, from number `first` on.
template <class Function>
void evaluate(Function function, std::uint64_t first, std::uint64_t step, std::vector<float>& y) {
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = function(exact::from_bits(static_cast<std::uint32_t>((first + i) * step)));
}
/// The same with an fma instruction, which takes a tenth of the library's time. The bits are equal
/// (bits_do_not_depend_on_the_instruction_set).
template <class Function>
[[gnu::target("avx2,fma"), gnu::flatten, gnu::noinline]] void evaluate_with_fma(
    Function function, std::uint64_t first, std::uint64_t step, std::vector<float>& y) {
  evaluate(function, first, step, y);
}

/// The worst error over all floats with a bit pattern divisible by `step`, subnormals left out.
template <class Function, class Reference>
Worst worst_error(Function function, Reference reference, std::uint64_t step = float_step()) {
  const bool has_fma = __builtin_cpu_supports("fma") != 0;
  const std::uint64_t count = 0xFFFFFFFFu / step + 1;
  Worst worst;
  for (std::uint64_t first = 0; first < count; first += 4096) {
    std::vector<float> y(std::min<std::uint64_t>(4096, count - first));
    has_fma ? evaluate_with_fma(function, first, step, y) : evaluate(function, first, step, y);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float x = exact::from_bits(static_cast<std::uint32_t>((first + i) * step));
      if (x != 0 && std::fabs(x) < FLT_MIN) continue;
      const double error = error_in_ulps(y[i], reference(double{x}));
      if (!(error <= worst.ulps)) worst = {error, x};
    }
  }
  return worst;
}

TEST(ExactMath, exp_is_within_one_ulp) {
  const auto worst =
      worst_error([](float x) { return exact::exp(x); }, [](double x) { return std::exp(x); });
  EXPECT_LE(worst.ulps, 1) << worst.at;
}

TEST(ExactMath, log_is_within_one_ulp) {
  const auto worst =
      worst_error([](float x) { return exact::log(x); }, [](double x) { return std::log(x); });
  EXPECT_LE(worst.ulps, 1) << worst.at;
}

TEST(ExactMath, sigmoid_is_within_three_ulps) {
  const auto worst = worst_error([](float x) { return exact::sigmoid(x); },
                                 [](double x) { return 1 / (1 + std::exp(-x)); });
  EXPECT_LE(worst.ulps, 3) << worst.at;
}

TEST(ExactMath, softplus_of_minus_is_within_two_ulps) {
  const auto worst = worst_error([](float x) { return exact::softplus_of_minus(x); },
                                 [](double x) { return std::log1p(std::exp(-std::fabs(x))); });
  EXPECT_LE(worst.ulps, 2) << worst.at;
}

TEST(ExactMath, expm1_of_negative_is_within_two_ulps) {
  const auto worst = worst_error([](float x) { return exact::expm1_of_negative(x > 0 ? -x : x); },
                                 [](double x) { return std::expm1(x > 0 ? -x : x); });
  EXPECT_LE(worst.ulps, 2) << worst.at;
}

TEST(ExactMath, softplus_is_within_two_ulps) {
  const auto worst =
      worst_error([](float x) { return exact::softplus(x); },
                  [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); });
  EXPECT_LE(worst.ulps, 2) << worst.at;
}

TEST(ExactMath, tanh_is_within_two_ulps) {
  const auto worst =
      worst_error([](float x) { return exact::tanh(x); }, [](double x) { return std::tanh(x); });
  EXPECT_LE(worst.ulps, 2) << worst.at;
}

TEST(ExactMath, erf_is_within_two_ulps) {
  const auto worst =
      worst_error([](float x) { return exact::erf(x); }, [](double x) { return std::erf(x); });
  EXPECT_LE(worst.ulps, 2) << worst.at;
}

TEST(ExactMath, pow_is_within_one_ulp_for_any_base) {
  for (const float y : {0.0F, 2.0F, -3.0F, 0.5F, 1.7F, -0.33F, 30.0F, 16777217.0F, HUGE_VALF}) {
    const auto worst = worst_error([=](float x) { return exact::pow(x, y); },
                                   [=](double x) { return std::pow(x, double{y}); }, 9973);
    EXPECT_LE(worst.ulps, 1) << worst.at << " to the " << y;
  }
}

TEST(ExactMath, pow_is_within_one_ulp_for_any_exponent) {
  for (const float x :
       {1.5F, 0.3F, -2.0F, 10.0F, 0.0F, -0.0F, 1.0F, -1.0F, HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    const auto worst = worst_error([=](float y) { return exact::pow(x, y); },
                                   [=](double y) { return std::pow(double{x}, y); }, 9973);
    EXPECT_LE(worst.ulps, 1) << x << " to the " << worst.at;
  }
}

TEST(ExactMath, results_stay_in_their_range) {
  for (std::uint64_t bits = 0; bits <= 0xFFFFFFFFu; bits += 977) {
    const float x = exact::from_bits(static_cast<std::uint32_t>(bits));
    if (std::isnan(x)) continue;
    ASSERT_TRUE(exact::sigmoid(x) >= 0 && exact::sigmoid(x) <= 1) << x;
    ASSERT_LE(std::fabs(exact::tanh(x)), 1) << x;
    ASSERT_LE(std::fabs(exact::erf(x)), 1) << x;
  }
}

TEST(ExactMath, results_are_never_subnormal) {
  for (float x = -90; x < -86; x += 1e-4F) {
    const float results[] = {exact::exp(x), exact::sigmoid(x), exact::softplus_of_minus(x),
                             exact::pow(2, x * 1.44F)};
    for (const float y : results) ASSERT_TRUE(y == 0 || y >= FLT_MIN) << x;
  }
}

/// The same loop compiled with a real fma instruction and with the library's fma.
template <class Function>
[[gnu::target("avx2,fma"), gnu::flatten, gnu::noinline]] std::vector<float> with_fma(
    Function function) {
  std::vector<float> y;
  for (int i = -20000; i < 20000; ++i) y.push_back(function(static_cast<float>(i) * 0.0051F));
  return y;
}

template <class Function>
[[gnu::noinline]] std::vector<float> without_fma(Function function) {
  std::vector<float> y;
  for (int i = -20000; i < 20000; ++i) y.push_back(function(static_cast<float>(i) * 0.0051F));
  return y;
}

TEST(ExactMath, bits_do_not_depend_on_the_instruction_set) {
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP() << "this processor has no fma instruction";
  const auto all = [](float x) {
    return exact::exp(x) + exact::log(x + 103.0F) + exact::sigmoid(x) + exact::tanh(x) +
           exact::erf(x) + exact::softplus_of_minus(x) + exact::pow(x + 103.0F, 0.7F);
  };
  EXPECT_EQ(with_fma(all), without_fma(all));
}

}  // namespace
}  // namespace triptych
