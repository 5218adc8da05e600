// Functions of the vector unit have the bits of the exact mathematics, in the twin.
// SPDX-License-Identifier: Apache-2.0
#include "backends/systolic/lowering/vector_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "core/base/exact_activations.h"
#include "core/base/exact_math.h"
#include "core/ops/scalar_math.h"
#include "systolic/driver/driver.h"

namespace triptych::systolic {
namespace {

constexpr std::uint32_t kRows = 256, kColumns = 64, kValues = kRows * kColumns;

using Function = std::function<void(VectorProgram&, VectorBlock, VectorBlock)>;

mmu::MachineConfig vector_machine() {
  mmu::MachineConfig machine = mmu::find_machine("mmu4-vector");
  machine.columns = kColumns;
  machine.vector_rows = 4096;
  return machine;
}

using Bits = std::vector<std::uint32_t>;

/// The kValues bit patterns that a program leaves at 12 kValues, from those at 0 and 4 kValues.
Bits run(VectorProgram& program, const mmu::MachineConfig& config, const Bits& a, const Bits& b) {
  const mmu::Program finished = program.finish();
  mmu::verify(finished, config);
  const auto machine = mmu::open_machine(config, mmu::Simulation::Twin);
  std::memcpy(machine->dram().data(), a.data(), 4 * kValues);
  std::memcpy(machine->dram().data() + 4 * kValues, b.data(), 4 * kValues);
  machine->run(finished);
  Bits y(kValues);
  std::memcpy(y.data(), machine->dram().data() + 12 * kValues, 4 * kValues);
  return y;
}

/// y = function(x).
Bits run(const Function& function, const Bits& x) {
  const mmu::MachineConfig config = vector_machine();
  VectorProgram program(config, kRows);
  const VectorBlock in = program.allocate(), out = program.allocate();
  program.load(0, kValues, kColumns, in);
  function(program, in, out);
  program.store(out, kValues, kColumns, 12 * kValues);
  return run(program, config, x, x);
}

constexpr std::uint32_t kEdges = 56;

/// kEdges edges of every function, numbers of all exponents, and numbers of everyday size.
std::vector<std::uint32_t> arguments(unsigned seed) {
  std::vector<std::uint32_t> x;
  for (const std::uint32_t sign : {0U, 0x80000000U})
    for (const std::uint32_t bits :
         {0x00000000U, 0x00000001U, 0x007FFFFFU, 0x00800000U, 0x00800001U, 0x3F2AAAAAU,
          0x3F2AAAABU, 0x3F7FFFFFU, 0x3F800000U, 0x3F800001U, 0x3FFFFFFFU, 0x40000000U,
          0x42AEAC4FU, 0x42AEAC50U, 0x42AEAC51U, 0x42B17217U, 0x42B17218U, 0x42B17219U,
          0x7E7FFFFFU, 0x7E800000U, 0x7E800001U, 0x7EFFFFFFU, 0x7F000000U, 0x7F7FFFFFU,
          0x7F800000U, 0x7F800001U, 0x7FC00000U, 0x7FFFFFFFU})
      x.push_back(sign | bits);
  std::mt19937 random(seed);
  while (x.size() < kValues / 2) x.push_back(static_cast<std::uint32_t>(random()));
  std::uniform_real_distribution<float> everyday(-100, 100);
  while (x.size() < kValues) x.push_back(std::bit_cast<std::uint32_t>(everyday(random)));
  return x;
}

void expect_bits(const Function& function, const std::function<float(float)>& expected) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const auto x = arguments(seed);
    const auto y = run(function, x);
    for (std::uint32_t i = 0; i < kValues; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(expected(std::bit_cast<float>(x[i])));
      ASSERT_EQ(y[i], bits) << std::hex << "x = " << x[i];
    }
  }
}

TEST(VectorProgram, relu_has_the_bits_of_the_exact_mathematics) {
  expect_bits(&VectorProgram::relu, [](float x) { return exact::relu(x); });
}
TEST(VectorProgram, exp_has_the_bits_of_the_exact_mathematics) {
  expect_bits(&VectorProgram::exp, [](float x) { return exact::exp(x); });
}
TEST(VectorProgram, log_has_the_bits_of_the_exact_mathematics) {
  expect_bits(&VectorProgram::log, [](float x) { return exact::log(x); });
}
TEST(VectorProgram, a_reciprocal_is_rounded_correctly) {
  expect_bits(&VectorProgram::reciprocal,
              [](float x) { return exact::flushed(exact::canonical(1.0F / exact::flushed(x))); });
}
TEST(VectorProgram, a_square_root_is_rounded_correctly) {
  expect_bits(&VectorProgram::square_root,
              [](float x) { return exact::canonical(std::sqrt(exact::flushed(x))); });
}

TEST(VectorProgram, sigmoid_has_the_bits_of_the_exact_mathematics) {
  expect_bits(&VectorProgram::sigmoid, [](float x) { return exact::sigmoid(x); });
}
TEST(VectorProgram, softplus_of_minus_has_the_bits_of_the_exact_mathematics) {
  expect_bits(&VectorProgram::softplus_of_minus,
              [](float x) { return exact::canonical(exact::softplus_of_minus(x)); });
}

/// f of a number as the unit reads it, and as it writes it.
template <float (*kFunction)(float)>
float flushed(float x) {
  return exact::flushed(kFunction(exact::flushed(x)));
}
float expm1_of_any(float x) { return exact::expm1_of_negative(exact::select(x > 0, 0.0F, x)); }
void emit_expm1(VectorProgram& program, VectorBlock x, VectorBlock y) {
  const VectorBlock below = program.allocate();
  program.apply(mmu::VectorOperation::Greater, below, x, 0.0F);
  program.apply(mmu::VectorOperation::Select, below, 0.0F, x, below);
  program.expm1_of_negative(below, y);
  program.release(below);
}

TEST(VectorProgram, tanh_has_the_bits_of_the_exact_mathematics) {
  expect_bits(&VectorProgram::tanh, &flushed<exact::tanh>);
}
TEST(VectorProgram, erf_has_the_bits_of_the_exact_mathematics) {
  expect_bits(&VectorProgram::erf, &flushed<exact::erf>);
}
TEST(VectorProgram, softplus_has_the_bits_of_the_exact_mathematics) {
  expect_bits(&VectorProgram::softplus, &flushed<exact::softplus>);
}
TEST(VectorProgram, exp_minus_one_has_the_bits_of_the_exact_mathematics) {
  expect_bits(&emit_expm1, &flushed<expm1_of_any>);
}

template <UnaryKind kKind>
float formula(float x) {
  return scalar::unary<kKind>(x, {});
}
float gelu(float x) {
  const float half = exact::flushed(0.5F * x), scaled = exact::flushed(x * 0.707106781F);
  return exact::canonical(half * (1.0F + exact::erf(scaled)));
}

TEST(VectorProgram, other_activations_have_the_bits_of_their_formulas) {
  expect_bits(&VectorProgram::sign, &flushed<formula<UnaryKind::Sign>>);
  expect_bits(&VectorProgram::softsign, &flushed<formula<UnaryKind::Softsign>>);
  expect_bits(&VectorProgram::gelu, &flushed<gelu>);
}

TEST(VectorProgram, a_maximum_is_the_number_or_the_nan_that_the_order_states) {
  const mmu::MachineConfig config = vector_machine();
  const Bits a = arguments(1), b = arguments(2);
  for (const bool larger : {false, true}) {
    VectorProgram program(config, kRows);
    const VectorBlock x = program.allocate(), y = program.allocate();
    program.load(0, kValues, kColumns, x);
    program.load(4 * kValues, kValues, kColumns, y);
    program.extreme(larger, x, y, x);
    program.store(x, kValues, kColumns, 12 * kValues);
    const Bits found = run(program, config, a, b);
    for (std::uint32_t i = 0; i < kValues; ++i) {
      const auto p = exact::flushed(std::bit_cast<float>(a[i]));
      const auto q = exact::flushed(std::bit_cast<float>(b[i]));
      const bool takes_b = q != q || (larger ? q > p : q < p);
      ASSERT_EQ(found[i], takes_b ? b[i] : a[i]) << std::hex << a[i] << ", " << b[i];
    }
  }
}

/// The bits of a / b: rounded to 24 bits, then flushed. In double, which rounds no quotient of
/// floats twice.
std::uint32_t quotient(std::uint32_t a, float b) {
  const double wide = double{exact::flushed(std::bit_cast<float>(a))} / double{exact::flushed(b)};
  const auto scaled = static_cast<float>(wide * 0x1p64);
  const bool tiny = std::fabs(scaled) < 0x1p-62F;
  const float rounded = tiny ? exact::with_sign(0.0F, scaled) : static_cast<float>(wide);
  return std::bit_cast<std::uint32_t>(exact::canonical(rounded));
}

TEST(VectorProgram, a_quotient_is_rounded_correctly) {
  const mmu::MachineConfig config = vector_machine();
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const Bits a = arguments(seed);
    Bits b = arguments(seed + 3);
    // Every edge is divided by every edge.
    for (std::uint32_t i = 0; i < kEdges * kEdges; ++i) b[kEdges + i] = b[i % kEdges];
    Bits dividends = a;
    for (std::uint32_t i = 0; i < kEdges * kEdges; ++i) dividends[kEdges + i] = a[i / kEdges];
    VectorProgram program(config, kRows);
    const VectorBlock x = program.allocate(), y = program.allocate(), z = program.allocate();
    program.load(0, kValues, kColumns, x);
    program.load(4 * kValues, kValues, kColumns, y);
    const VectorDivisor divisor = program.prepare(y);
    program.divide(x, divisor, z);
    program.store(z, kValues, kColumns, 12 * kValues);
    const Bits quotients = run(program, config, dividends, b);
    for (std::uint32_t i = 0; i < kValues; ++i) {
      ASSERT_EQ(quotients[i], quotient(dividends[i], std::bit_cast<float>(b[i])))
          << std::hex << dividends[i] << " / " << b[i];
    }
  }
}

TEST(VectorProgram, a_quotient_by_a_number_is_rounded_correctly) {
  const mmu::MachineConfig config = vector_machine();
  for (const float number : {8.0F, 0.25F, 3.0F, 12288.0F, -49.0F}) {
    const Bits a = arguments(1);
    VectorProgram program(config, kRows);
    const VectorBlock x = program.allocate(), y = program.allocate();
    program.load(0, kValues, kColumns, x);
    program.divide(x, number, y);
    program.store(y, kValues, kColumns, 12 * kValues);
    const Bits quotients = run(program, config, a, a);
    for (std::uint32_t i = 0; i < kValues; ++i) {
      ASSERT_EQ(quotients[i], quotient(a[i], number)) << std::hex << a[i] << " / " << number;
    }
  }
}

/// Operations and cycles per row, without the rows of constants.
template <class Emit>
std::pair<int, int> cost_of(const Emit& emit) {
  const mmu::MachineConfig config = vector_machine();
  VectorProgram program(config, kRows);
  const VectorBlock x = program.allocate(), y = program.allocate();
  std::invoke(emit, program, x, y);
  std::pair<int, int> cost;
  for (const mmu::Instruction& instruction : program.finish()) {
    if (instruction.opcode() != mmu::Opcode::VectorOp) continue;
    const auto op = mmu::decode<mmu::VectorOp>(instruction);
    if (op.count == 1) continue;
    cost.first += 1;
    cost.second += (mmu::vector_operation(op.operation).reads & mmu::kReadsC) != 0 ? 2 : 1;
  }
  return cost;
}

TEST(VectorProgram, functions_cost_what_the_manual_states) {
  EXPECT_THAT(cost_of(&VectorProgram::relu), testing::Pair(2, 3));
  EXPECT_THAT(cost_of(&VectorProgram::exp), testing::Pair(18, 30));
  EXPECT_THAT(cost_of(&VectorProgram::log), testing::Pair(23, 36));
  EXPECT_THAT(cost_of(&VectorProgram::reciprocal), testing::Pair(26, 38));
  EXPECT_THAT(cost_of(&VectorProgram::square_root), testing::Pair(33, 45));
  EXPECT_THAT(cost_of(&VectorProgram::sigmoid), testing::Pair(48, 73));
  EXPECT_THAT(cost_of(&VectorProgram::tanh), testing::Pair(90, 126));
  EXPECT_THAT(cost_of(&VectorProgram::erf), testing::Pair(46, 75));
  EXPECT_THAT(cost_of(&VectorProgram::softplus), testing::Pair(101, 144));
  const auto quotients = [](int count) {
    return [=](VectorProgram& program, VectorBlock x, VectorBlock y) {
      const VectorDivisor divisor = program.prepare(x);
      for (int i = 0; i < count; ++i) program.divide(x, divisor, y);
    };
  };
  EXPECT_THAT(cost_of(quotients(1)), testing::Pair(52, 69));
  EXPECT_THAT(cost_of(quotients(2)), testing::Pair(52 + 24, 69 + 30));
}

TEST(VectorProgram, a_full_memory_is_an_error) {
  const mmu::MachineConfig config = vector_machine();
  VectorProgram program(config, 1024);
  for (int block = 0; block < 3; ++block) program.allocate();
  const VectorBlock last = program.allocate();
  EXPECT_THROW(program.allocate(), std::invalid_argument);
  EXPECT_THROW(program.relu({0}, {1024}), std::invalid_argument) << "no row for a constant is left";
  program.release(last);
  EXPECT_EQ(program.allocate().row, last.row);
}

}  // namespace
}  // namespace triptych::systolic
