// Instructions of inline PTX that compute: integers, bits, floats, predicates and conversions.
// Linked with libraries of kernels that have such instructions.
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <type_traits>

#include "backends/cuda/plain/ptx_running.h"
#include "backends/cuda/program/narrow_bits.h"

namespace triptych::cuda::plain {
namespace {

using Operation = PtxOperation;

std::uint64_t high_product(const RunningPtx& r) {
  const auto product =
      r.is_signed() ? static_cast<__int128>(r.operand(1)) * r.operand(2)
                    : static_cast<__int128>(
                          static_cast<unsigned __int128>(static_cast<std::uint64_t>(r.operand(1))) *
                          static_cast<std::uint64_t>(r.operand(2)));
  return static_cast<std::uint64_t>(product >> r.bits());
}

/// The fifth operand is the table of a function of three bits.
std::uint32_t logic(const RunningPtx& r) {
  std::uint32_t result = 0;
  for (unsigned row = 0; row < 8; ++row) {
    if ((r.word(4) >> row & 1) == 0) continue;
    result |= ((row & 4) != 0 ? r.word(1) : ~r.word(1)) &
              ((row & 2) != 0 ? r.word(2) : ~r.word(2)) & ((row & 1) != 0 ? r.word(3) : ~r.word(3));
  }
  return result;
}

std::uint32_t permute(const RunningPtx& r) {
  const std::uint64_t bytes = r.word(1) | static_cast<std::uint64_t>(r.word(2)) << 32;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const auto selector = r.word(3) >> 4 * i & 0xF;
    auto byte = static_cast<std::uint32_t>(bytes >> 8 * (selector & 7) & 0xFF);
    if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
    result |= byte << 8 * i;
  }
  return result;
}

/// Bits from a position on. Above the value's own stands its sign, as the PTX manual has it.
std::uint64_t extract(const RunningPtx& r) {
  const unsigned begin = r.value(2) & 0xFF, length = r.value(3) & 0xFF;
  const auto value = static_cast<std::uint64_t>(r.operand(1));
  const unsigned last = begin + length - 1 < r.bits() - 1 ? begin + length - 1 : r.bits() - 1;
  const bool sign = length != 0 && r.is_signed() && (value >> last & 1) != 0;
  std::uint64_t result = 0;
  for (unsigned i = 0; i < r.bits(); ++i) {
    const bool inside = i < length && begin + i < r.bits();
    const bool bit = inside ? (value >> (begin + i) & 1) != 0 : sign;
    result |= static_cast<std::uint64_t>(bit) << i;
  }
  return result;
}

std::uint64_t insert(const RunningPtx& r) {
  const unsigned begin = r.value(3) & 0xFF, length = r.value(4) & 0xFF;
  std::uint64_t result = r.value(2);
  for (unsigned i = 0; i < length && begin + i < r.bits(); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << (begin + i);
    result = (r.value(1) >> i & 1) != 0 ? result | bit : result & ~bit;
  }
  return result;
}

/// The position of the highest bit that differs from the sign. All ones: there is none.
std::uint32_t find_bit(const RunningPtx& r) {
  auto value = static_cast<std::uint64_t>(r.operand(1));
  if (r.is_signed() && r.operand(1) < 0) value = ~value;
  return value == 0 ? ~0U : 63U - static_cast<unsigned>(std::countl_zero(value));
}

std::uint32_t byte_differences(const RunningPtx& r) {
  std::uint32_t sum = r.word(3);
  for (unsigned shift = 0; shift < 32; shift += 8) {
    const auto a = static_cast<int>(r.word(1) >> shift & 0xFF),
               b = static_cast<int>(r.word(2) >> shift & 0xFF);
    sum += static_cast<std::uint32_t>(a < b ? b - a : a - b);
  }
  return sum;
}

std::uint64_t calculate(const RunningPtx& r) {
  const auto a = static_cast<std::uint64_t>(r.operand(1)),
             b = static_cast<std::uint64_t>(r.operand(2)),
             c = static_cast<std::uint64_t>(r.operand(3));
  const std::uint64_t pair = r.word(1) | static_cast<std::uint64_t>(r.word(2)) << 32;
  const auto bits = r.bits();
  switch (r.code.operation) {
    case Operation::Add:
      return a + b;
    case Operation::Subtract:
      return a - b;
    case Operation::MultiplyLow:
    case Operation::MultiplyWide:
      return a * b;
    case Operation::MultiplyHigh:
      return high_product(r);
    case Operation::MultiplyAdd:
      return a * b + c;
    case Operation::And:
      return a & b;
    case Operation::Or:
      return a | b;
    case Operation::Xor:
      return a ^ b;
    case Operation::Not:
      return ~a;
    case Operation::ShiftLeft:
      return r.word(2) < bits ? a << r.word(2) : 0;
    case Operation::ShiftRight:
      if (r.is_signed())
        return static_cast<std::uint64_t>(r.operand(1) >>
                                          (r.word(2) < bits ? r.word(2) : bits - 1));
      return r.word(2) < bits ? a >> r.word(2) : 0;
    case Operation::Minimum:
      return r.is_less(2, 1) ? b : a;
    case Operation::Maximum:
      return r.is_less(1, 2) ? b : a;
    case Operation::Absolute:
      return r.operand(1) < 0 ? 0 - a : a;
    case Operation::Negate:
      return 0 - a;
    case Operation::Logic3:
      return logic(r);
    case Operation::Permute:
      return permute(r);
    case Operation::ExtractBits:
      return extract(r);
    case Operation::InsertBits:
      return insert(r);
    case Operation::FindBit:
      return find_bit(r);
    case Operation::CountBits:
      return static_cast<unsigned>(std::popcount(a));
    case Operation::CountZeros:
      return static_cast<unsigned>(std::countl_zero(a)) - (64 - bits);
    case Operation::ReverseBits: {
      std::uint64_t reversed = 0;
      for (unsigned i = 0; i < bits; ++i) reversed |= (a >> i & 1) << (bits - 1 - i);
      return reversed;
    }
    case Operation::SumDifference:
      return c + (r.is_less(1, 2) ? b - a : a - b);
    case Operation::FunnelLeft:
      return pair << (r.word(3) & 31) >> 32;
    case Operation::FunnelRight:
      return pair >> (r.word(3) & 31);
    case Operation::ByteDifferences:
      return byte_differences(r);
    default:
      return a;
  }
}

/// Predicates are 0 or 1.
template <class T>
bool compare(T a, T b, PtxComparison how) {
  switch (how) {
    case PtxComparison::Equal:
      return a == b;
    case PtxComparison::NotEqual:
      return a != b;
    case PtxComparison::Less:
      return a < b;
    case PtxComparison::LessOrEqual:
      return a <= b;
    case PtxComparison::Greater:
      return a > b;
    case PtxComparison::GreaterOrEqual:
      return a >= b;
  }
  return false;
}

template <class T>
T float_of(const RunningPtx& r, std::size_t i) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<double>(r.value(i));
  return std::bit_cast<float>(r.word(i));
}

/// For two floats. It uses `b` and `c` where the operation has them.
template <class T>
T calculate_float(Operation operation, T a, T b, T c) {
  switch (operation) {
    case Operation::Add:
      return a + b;
    case Operation::Subtract:
      return a - b;
    case Operation::Multiply:
      return a * b;
    case Operation::FusedMultiplyAdd:
      return std::fma(a, b, c);
    case Operation::Minimum:
      return std::fmin(a, b);
    case Operation::Maximum:
      return std::fmax(a, b);
    case Operation::Absolute:
      return std::fabs(a);
    case Operation::Negate:
      return -a;
    case Operation::PowerOfTwo:
      return std::exp2(a);
    case Operation::Logarithm:
      return std::log2(a);
    case Operation::Reciprocal:
      return 1 / a;
    case Operation::SquareRoot:
      return std::sqrt(a);
    case Operation::ReciprocalRoot:
      return 1 / std::sqrt(a);
    case Operation::Tangent:
      return std::tanh(a);
    default:
      return a;
  }
}

template <class T>
void run_float(const RunningPtx& r) {
  const T a = float_of<T>(r, 1), b = float_of<T>(r, 2), c = float_of<T>(r, 3);
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  r.set(0, std::bit_cast<Bits>(calculate_float<T>(r.code.operation, a, b, c)));
}

void run_comparison(const RunningPtx& r) {
  const auto how = static_cast<PtxComparison>(r.code.detail);
  const auto a = r.operand(1), b = r.operand(2);
  const bool result =
      r.code.type == PtxClass::Float
          ? (r.code.bytes == 8 ? compare(float_of<double>(r, 1), float_of<double>(r, 2), how)
                               : compare(float_of<float>(r, 1), float_of<float>(r, 2), how))
      : r.is_signed() ? compare(a, b, how)
                      : compare(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b), how);
  r.put(0, result ? 1 : 0);
}

double float_of_bits(std::uint64_t bits, PtxClass type, std::int64_t bytes) {
  const auto half = static_cast<unsigned short>(bits);
  if (type == PtxClass::Bfloat) return program::float_of_bfloat16(half);
  if (bytes == 2) return program::float_of_half(half);
  if (bytes == 4) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

std::uint64_t bits_of_float(double value, PtxClass type, std::int64_t bytes) {
  const auto single = static_cast<float>(value);
  if (type == PtxClass::Bfloat) return program::bits_of_bfloat16(single);
  if (bytes == 2) return program::bits_of_half(single);
  return bytes == 4 ? std::bit_cast<std::uint32_t>(single) : std::bit_cast<std::uint64_t>(value);
}

void run_conversion(const RunningPtx& r) {
  const auto from = static_cast<PtxClass>(r.code.detail & ((1 << kPtxClassBits) - 1));
  const auto from_bytes = r.code.detail >> kPtxClassBits;
  if (from < PtxClass::Float) {
    const unsigned shift = 64 - 8 * static_cast<unsigned>(from_bytes);
    const auto value = r.value(1) << shift;
    return r.set(0, from == PtxClass::Signed
                        ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value) >> shift)
                        : value >> shift);
  }
  const auto converted = [&](std::size_t i) {
    return bits_of_float(float_of_bits(r.value(i), from, from_bytes), r.code.type, r.code.bytes);
  };
  if (r.count() == 2) return r.set(0, converted(1));
  // The first source is the upper half.
  const auto low = converted(2), high = converted(1);
  r.put(0, low | high << 16);
}

void run_parts(const RunningPtx& r) {
  const auto bits = r.bits();
  const auto mask = (std::uint64_t{1} << bits) - 1;
  const auto parts = r.count() - 1;
  if (r.code.operation == Operation::Unpack) {
    const auto whole = r.value(parts);
    for (std::size_t i = 0; i < parts; ++i) r.set(i, whole >> bits * i & mask);
    return;
  }
  std::uint64_t whole = 0;
  for (std::size_t i = 0; i < parts; ++i) whole |= (r.value(i + 1) & mask) << bits * i;
  r.put(0, whole);
}

}  // namespace

void run_values(const RunningPtx& r) {
  switch (r.code.operation) {
    case Operation::Compare:
      return run_comparison(r);
    case Operation::Select:
      return r.set(0, r.value(3) != 0 ? r.value(1) : r.value(2));
    case Operation::Convert:
      return run_conversion(r);
    case Operation::RoundToTf32:
      return r.set(0, (r.word(1) + 0x1000U) & 0xFFFFE000U);
    case Operation::Pack:
    case Operation::Unpack:
      return run_parts(r);
    default:
      break;
  }
  if (r.code.type == PtxClass::Float && r.code.operation != Operation::Move) {
    return r.code.bytes == 8 ? run_float<double>(r) : run_float<float>(r);
  }
  const auto result = calculate(r);
  r.set(0, r.code.bytes == 1 ? result & 1 : result);  // of a predicate
}

}  // namespace triptych::cuda::plain
