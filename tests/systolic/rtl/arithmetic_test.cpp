// The arithmetic of a PE, of the output unit and of a vector lane against a reference in double
// precision: all pairs and triples of special values, then random operands at every distance of
// exponents. `arithmetic_test --long` takes 10^8 random cases instead of 10^6.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "Varithmetic_bench.h"
#include "Vmmu_vector_lane.h"
#include "systolic/isa/vector_operations.h"
#include "tests/systolic/rtl/clocked.h"

namespace {

std::uint64_t random_cases = 1'000'000;

using triptych::mmu::VectorOperation;

constexpr std::uint32_t kNan = 0x7FC00000;

double value_of(std::uint32_t bits) {
  if ((bits & 0x7F800000) == 0) bits &= 0x80000000;  // subnormal operands count as zeros
  return std::bit_cast<float>(bits);
}

/// x + y for doubles with a sum that needs one more rounding: inexact sums get an odd last bit.
double add_to_odd(double x, double y) {
  const double sum = x + y;
  const double part = sum - x;
  const double error = (x - (sum - part)) + (y - part);
  if (error == 0 || (std::bit_cast<std::uint64_t>(sum) & 1) != 0) return sum;
  return std::nextafter(sum, error > 0 ? std::numeric_limits<double>::infinity()
                                       : -std::numeric_limits<double>::infinity());
}

/// To binary32 to nearest even with unbounded exponent, then flushed below 2^-126.
std::uint32_t rounded(double x) {
  if (std::isnan(x)) return kNan;
  if (std::abs(x) < 1e-30 && x != 0) {
    const float scaled = static_cast<float>(x * 0x1p100);
    const float flushed =
        std::abs(scaled) < 0x1p-26F ? std::copysign(0.0F, scaled) : scaled * 0x1p-100F;
    return std::bit_cast<std::uint32_t>(flushed);
  }
  return std::bit_cast<std::uint32_t>(static_cast<float>(x));
}

std::uint32_t sum_of(double x, double y) {
  if (!std::isfinite(x) || !std::isfinite(y)) return rounded(x + y);
  return rounded(add_to_odd(x, y));
}

std::uint32_t expected_multiply_add(std::uint16_t a, std::uint16_t b, std::uint32_t c) {
  return sum_of(value_of(std::uint32_t{a} << 16) * value_of(std::uint32_t{b} << 16), value_of(c));
}

std::uint32_t narrowed(std::uint32_t x) {
  if (std::isnan(std::bit_cast<float>(x))) return 0x7FC0;
  const std::uint32_t tail = x & 0xFFFF;
  const std::uint32_t up = tail > 0x8000 || (tail == 0x8000 && (x >> 16 & 1) != 0) ? 1 : 0;
  return ((x >> 16) + up) & 0xFFFF;
}

/// Signs × exponents at the edges × significands at the edges.
std::vector<std::uint32_t> special_values(const std::vector<std::uint32_t>& exponents,
                                          const std::vector<std::uint32_t>& fractions) {
  std::vector<std::uint32_t> values;
  for (const std::uint32_t sign : {0U, 1U})
    for (const std::uint32_t exponent : exponents)
      for (const std::uint32_t fraction : fractions)
        values.push_back(sign << 31 | exponent << 23 | fraction);
  return values;
}

class Arithmetic : public testing::Test {
 protected:
  void check_multiply_add(std::uint16_t a, std::uint16_t b, std::uint32_t c) {
    bench_.a_i = a;
    bench_.b_i = b;
    bench_.c_i = c;
    bench_.eval();
    const std::uint32_t expected = expected_multiply_add(a, b, c);
    ASSERT_EQ(bench_.multiply_add_o, expected) << std::hex << "a " << a << " b " << b << " c " << c;
    ASSERT_EQ(bench_.stages_o, expected) << std::hex << "a " << a << " b " << b << " c " << c;
    ASSERT_EQ(bench_.passes_o, c) << std::hex << "a " << a << " b " << b;
  }
  void check_add(std::uint32_t c, std::uint32_t d) {
    bench_.c_i = c;
    bench_.d_i = d;
    bench_.eval();
    ASSERT_EQ(bench_.add_o, sum_of(value_of(c), value_of(d))) << std::hex << c << " + " << d;
  }

  void check_multiply(std::uint32_t c, std::uint32_t d) {
    bench_.c_i = c;
    bench_.d_i = d;
    bench_.eval();
    ASSERT_EQ(bench_.multiply_o, rounded(value_of(c) * value_of(d))) << std::hex << c << " * " << d;
  }
  void check_requantize(std::int32_t sum, std::int32_t multiplier, std::int16_t shift) {
    bench_.a_i = static_cast<std::uint16_t>(shift);
    bench_.c_i = static_cast<std::uint32_t>(sum);
    bench_.d_i = static_cast<std::uint32_t>(multiplier);
    bench_.eval();
    const int by = std::clamp<int>(shift, 1, 62);
    const std::int64_t scaled =
        (std::int64_t{sum} * multiplier + (std::int64_t{1} << (by - 1))) >> by;
    ASSERT_EQ(static_cast<std::int32_t>(bench_.requantize_o),
              std::clamp<std::int64_t>(scaled, INT32_MIN, INT32_MAX))
        << sum << " * " << multiplier << " >> " << shift;
  }

  /// A value with an exponent within 30 of `exponent`, or, now and then, anything.
  std::uint32_t near(std::uint32_t exponent) {
    const auto bits = static_cast<std::uint32_t>(random_());
    if (random_() % 16 == 0) return bits;
    const std::uint32_t shifted = exponent + random_() % 61 - 30;
    std::uint32_t fraction = bits & 0x7FFFFF;
    if (random_() % 4 == 0) fraction &= 0x7F0000;  // ties and cancellation
    return (bits & 0x80000000) | (shifted & 0xFF) << 23 | fraction;
  }

  /// Nearly -a * b.
  std::uint32_t cancelling(std::uint16_t a, std::uint16_t b) {
    const std::uint32_t product = expected_multiply_add(a, b, 0) ^ 0x80000000;
    return product + static_cast<std::uint32_t>(random_() % 5) - 2;
  }

  Varithmetic_bench bench_;
  std::mt19937_64 random_{20240607};
};

TEST_F(Arithmetic, multiplies_and_adds_special_values) {
  std::vector<std::uint16_t> operands;
  for (const std::uint32_t value :
       special_values({0, 1, 2, 63, 64, 65, 126, 127, 128, 190, 253, 254, 255},
                      {0, 0x010000, 0x400000, 0x7F0000}))
    operands.push_back(static_cast<std::uint16_t>(value >> 16));
  const auto sums = special_values({0,   1,   2,   3,   24,  102, 118, 119, 120, 125, 126,
                                    127, 128, 129, 130, 140, 150, 151, 152, 253, 254, 255},
                                   {0, 1, 2, 0x3FFFFF, 0x400000, 0x7FFFFE, 0x7FFFFF});
  for (const std::uint16_t a : operands)
    for (const std::uint16_t b : operands)
      for (const std::uint32_t c : sums) {
        check_multiply_add(a, b, c);
        if (HasFatalFailure()) return;
      }
}

TEST_F(Arithmetic, multiplies_and_adds_random_values) {
  for (std::uint64_t i = 0; i < random_cases && !HasFatalFailure(); ++i) {
    const auto a = static_cast<std::uint16_t>(random_());
    const auto b = static_cast<std::uint16_t>(random_());
    check_multiply_add(
        a, b, i % 16 == 0 ? cancelling(a, b) : near((a >> 7 & 0xFF) + (b >> 7 & 0xFF) - 127U));
  }
}

TEST_F(Arithmetic, adds_special_values) {
  const auto values = special_values(
      {0, 1, 2, 3, 23, 24, 25, 26, 27, 100, 101, 125, 126, 127, 150, 151, 152, 253, 254, 255},
      {0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFE, 0x7FFFFF});
  for (const std::uint32_t c : values)
    for (const std::uint32_t d : values) {
      check_add(c, d);
      if (HasFatalFailure()) return;
    }
}

TEST_F(Arithmetic, adds_random_values) {
  for (std::uint64_t i = 0; i < random_cases && !HasFatalFailure(); ++i) {
    const auto c = static_cast<std::uint32_t>(random_());
    check_add(c, i % 16 == 0 ? (c ^ 0x80000000) + static_cast<std::uint32_t>(random_() % 3)
                             : near(c >> 23 & 0xFF));
  }
}

TEST_F(Arithmetic, multiplies_special_values) {
  const auto values =
      special_values({0, 1, 2, 62, 63, 64, 65, 126, 127, 128, 189, 190, 253, 254, 255},
                     {0, 1, 2, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFE, 0x7FFFFF});
  for (const std::uint32_t c : values)
    for (const std::uint32_t d : values) {
      check_multiply(c, d);
      if (HasFatalFailure()) return;
    }
}

TEST_F(Arithmetic, multiplies_random_values) {
  for (std::uint64_t i = 0; i < random_cases && !HasFatalFailure(); ++i) {
    const auto c = static_cast<std::uint32_t>(random_());
    check_multiply(c, near(static_cast<std::uint32_t>(random_() % 3 * 127) - (c >> 23 & 0xFF)));
  }
}

TEST_F(Arithmetic, requantizes) {
  constexpr std::int32_t kEdges[] = {INT32_MIN, INT32_MIN + 1, -129, -128, -2,       -1, 0, 1,
                                     2,         127,           128,  3,    INT32_MAX};
  for (int shift = -2; shift <= 66; ++shift)
    for (const std::int32_t sum : kEdges)
      for (const std::int32_t multiplier : kEdges) {
        check_requantize(sum, multiplier, static_cast<std::int16_t>(shift));
        if (HasFatalFailure()) return;
      }
  for (std::uint64_t i = 0; i < random_cases && !HasFatalFailure(); ++i)
    check_requantize(static_cast<std::int32_t>(random_()) >> random_() % 32,
                     static_cast<std::int32_t>(random_()) >> random_() % 32,
                     static_cast<std::int16_t>(random_() % 64));
}

TEST_F(Arithmetic, compares) {
  const auto values = special_values({0, 1, 126, 127, 254, 255}, {0, 1, 0x400000, 0x7FFFFF});
  for (const std::uint32_t c : values)
    for (const std::uint32_t d : values) {
      bench_.c_i = c;
      bench_.d_i = d;
      bench_.eval();
      const bool subnormal = (c & 0x7F800000) == 0 && (d & 0x7F800000) == 0;
      if (!subnormal) {
        ASSERT_EQ((bench_.greater_o & 1) != 0, std::bit_cast<float>(c) > std::bit_cast<float>(d));
      }
      ASSERT_EQ(bench_.greater_o >> 1 != 0,
                static_cast<std::int32_t>(c) > static_cast<std::int32_t>(d));
    }
  for (const std::uint32_t c : {0U, 0x80000000U}) {
    bench_.c_i = c;
    bench_.d_i = c ^ 0x80000000U;
    bench_.eval();
    EXPECT_EQ(bench_.greater_o & 1, 0) << "zeros are equal";
  }
}

TEST_F(Arithmetic, cuts_to_int8) {
  for (int c = -1000; c < 1000; ++c) {
    bench_.c_i = static_cast<std::uint32_t>(c);
    bench_.eval();
    ASSERT_EQ(static_cast<std::int8_t>(bench_.narrow_int8_o), std::clamp(c, -128, 127));
  }
  for (const std::int32_t c : {INT32_MIN, INT32_MAX}) {
    bench_.c_i = static_cast<std::uint32_t>(c);
    bench_.eval();
    EXPECT_EQ(static_cast<std::int8_t>(bench_.narrow_int8_o), c < 0 ? -128 : 127);
  }
}

TEST_F(Arithmetic, rounds_to_bf16_and_rectifies) {
  for (std::uint64_t i = 0; i < random_cases; ++i) {
    std::uint32_t c = near(static_cast<std::uint32_t>(random_() & 0xFF));
    if (random_() % 4 == 0) c = (c & 0xFFFF0000) | 0x8000;
    bench_.c_i = c;
    bench_.eval();
    ASSERT_EQ(bench_.narrow_o, narrowed(c)) << std::hex << c;
    const bool kept = std::isnan(std::bit_cast<float>(c)) || std::bit_cast<float>(c) > 0;
    ASSERT_EQ(bench_.rectify_o, kept ? c : 0U) << std::hex << c;
  }
}

TEST_F(Arithmetic, multiplies_int8_exhaustively) {
  for (int a = -128; a < 128; ++a)
    for (int b = -128; b < 128; ++b)
      for (const std::uint32_t c : {0U, 1U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
        bench_.a_i = static_cast<std::uint8_t>(a);
        bench_.b_i = static_cast<std::uint8_t>(b);
        bench_.c_i = c;
        bench_.eval();
        ASSERT_EQ(bench_.multiply_add_int8_o, c + static_cast<std::uint32_t>(a * b))
            << a << " * " << b << " + " << c;
      }
}

/// A lane of the vector unit.
class Lane : public Arithmetic {
 protected:
  std::uint32_t run(VectorOperation operation, std::uint32_t a, std::uint32_t b = 0,
                    std::uint32_t c = 0) {
    lane_->enable_i = 1;
    lane_->operation_i = static_cast<unsigned char>(operation);
    lane_->a_i = a;
    lane_->b_i = b;
    lane_->c_i = c;
    lane_.tick();
    lane_.tick();
    return lane_->result_o;
  }
  void check_fma(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    ASSERT_EQ(run(VectorOperation::Fma, a, b, c), sum_of(value_of(a) * value_of(b), value_of(c)))
        << std::hex << a << " * " << b << " + " << c;
  }
  void check_pair(std::uint32_t a, std::uint32_t b) {
    const double x = value_of(a), y = value_of(b);
    ASSERT_EQ(run(VectorOperation::Add, a, b), sum_of(x, y)) << std::hex << a << ' ' << b;
    ASSERT_EQ(run(VectorOperation::Subtract, a, b), sum_of(x, -y)) << std::hex << a << ' ' << b;
    ASSERT_EQ(run(VectorOperation::Multiply, a, b), rounded(x * y)) << std::hex << a << ' ' << b;
    ASSERT_EQ(run(VectorOperation::Larger, a, b), x > y ? a : b) << std::hex << a << ' ' << b;
    ASSERT_EQ(run(VectorOperation::Smaller, a, b), x < y ? a : b) << std::hex << a << ' ' << b;
    ASSERT_EQ(run(VectorOperation::Greater, a, b), x > y ? ~0U : 0U) << std::hex << a << ' ' << b;
    ASSERT_EQ(run(VectorOperation::Equal, a, b), x == y ? ~0U : 0U) << std::hex << a << ' ' << b;
  }

  Clocked<Vmmu_vector_lane> lane_;
};

TEST_F(Lane, multiplies_and_adds_special_values) {
  const auto values = special_values({0, 1, 2, 64, 103, 126, 127, 128, 150, 190, 253, 254, 255},
                                     {0, 1, 0x400000, 0x7FFFFF});
  for (const std::uint32_t a : values)
    for (const std::uint32_t b : values) {
      check_pair(a, b);
      for (const std::uint32_t c : values) {
        check_fma(a, b, c);
        if (HasFatalFailure()) return;
      }
    }
}

TEST_F(Lane, multiplies_and_adds_random_values) {
  for (std::uint64_t i = 0; i < random_cases && !HasFatalFailure(); ++i) {
    const auto a = static_cast<std::uint32_t>(random_());
    const std::uint32_t b =
        near(static_cast<std::uint32_t>(random_() % 3 * 127) - (a >> 23 & 0xFF));
    const std::uint32_t product = rounded(value_of(a) * value_of(b));
    const std::uint32_t close = (product ^ 0x80000000) + static_cast<std::uint32_t>(random_() % 5);
    check_fma(a, b, i % 8 == 0 ? close - 2 : near(product >> 23 & 0xFF));
  }
  for (std::uint64_t i = 0; i < random_cases / 4 && !HasFatalFailure(); ++i) {
    const auto a = static_cast<std::uint32_t>(random_());
    check_pair(a,
               i % 16 == 0 ? a ^ static_cast<std::uint32_t>(random_() % 3) : near(a >> 23 & 0xFF));
  }
}

TEST_F(Lane, converts_integers) {
  const auto check = [&](std::int32_t a) {
    const auto expected = std::bit_cast<std::uint32_t>(static_cast<float>(a));
    ASSERT_EQ(run(VectorOperation::ToFloat, static_cast<std::uint32_t>(a)), expected) << a;
  };
  for (const std::int32_t a :
       {0, 1, -1, 0xFFFFFF, 0x1000000, 0x1000001, 0x1000003, INT32_MAX, INT32_MIN, INT32_MIN + 1})
    check(a);
  for (std::uint64_t i = 0; i < random_cases / 4 && !HasFatalFailure(); ++i)
    check(static_cast<std::int32_t>(random_()) >> random_() % 32);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "--long") == 0) random_cases = 100'000'000;
  return RUN_ALL_TESTS();
}
