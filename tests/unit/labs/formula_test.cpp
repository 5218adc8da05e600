// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/formula.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace triptych::labs {
namespace {

const Variables kNames = {{"N", 4}, {"r", 1}, {"alpha", 0.5}};

TEST(Formula, operators_bind_as_in_mathematics) {
  EXPECT_EQ(evaluate("2 + 3 * N", kNames), 14);
  EXPECT_EQ(evaluate("(2 + 3) * N - -r", kNames), 21);
  EXPECT_EQ(evaluate("1 / N / 2", kNames), 0.125);
  EXPECT_EQ(evaluate("N - 1 - r", kNames), 2);
  EXPECT_EQ(evaluate("1.5e1 * alpha", kNames), 7.5);
  EXPECT_EQ(evaluate("ceil(9 / N) + floor(9 / N) + log2(N) + min(r, N) + max(r, N)", kNames), 12);
}

TEST(Formula, a_remainder_has_the_sign_of_the_divisor) {
  EXPECT_EQ(evaluate("(r - 2) % N", kNames), 3);
  EXPECT_EQ(evaluate("(r + N) % N", kNames), 1);
  EXPECT_EQ(evaluate("-9 % N", kNames), 3);
}

TEST(Formula, conditions_are_one_or_nought) {
  EXPECT_EQ(evaluate("r > 0 && r < N", kNames), 1);
  EXPECT_EQ(evaluate("r == 0 || r >= N", kNames), 0);
  EXPECT_EQ(evaluate("r != 0 && N <= 4 || 0", kNames), 1);
}

std::string refused_formula(const std::string& formula) {
  try {
    evaluate(formula, kNames);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Formula, what_is_none_is_refused_with_its_place) {
  EXPECT_EQ(refused_formula("2 * (N - 1"),
            "in \"2 * (N - 1\", at character 11: \")\" was expected");
  EXPECT_EQ(refused_formula("2 N"),
            "in \"2 N\", at character 3: an operator or the end was expected");
  EXPECT_EQ(refused_formula("S / 2"),
            "in \"S / 2\", at character 1: \"S\" is unknown; known are N, alpha, r");
  EXPECT_NE(refused_formula("1 / (r - 1)").find("a division by zero"), std::string::npos);
  EXPECT_NE(refused_formula("log2(0)").find("not finite"), std::string::npos);
  EXPECT_NE(refused_formula("sin(1)").find("no function sin"), std::string::npos);
  EXPECT_NE(refused_formula("").find("ends too early"), std::string::npos);
  EXPECT_NE(refused_formula(std::string(400, '(')).find("too many brackets"), std::string::npos);
  EXPECT_NE(refused_formula(std::string(400, '-')).find("too many brackets"), std::string::npos);
  EXPECT_NE(refused_formula(std::string(2000, '1')).find("more than 1000"), std::string::npos);
}

}  // namespace
}  // namespace triptych::labs
