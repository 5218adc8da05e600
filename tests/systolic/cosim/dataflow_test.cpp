// Random programs on RTL with both dataflows, and on the twin: chains that stay in the PEs, between
// and beside weight-stationary matmuls.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include "Vmmu_both_3x5.h"
#include "Vmmu_both_3x5___024root.h"
#include "Vmmu_both_4x4.h"
#include "Vmmu_both_4x4___024root.h"

#include "tests/systolic/cosim/variants.h"
#include "tests/systolic/twin/product.h"

namespace triptych::mmu {
namespace {

/// The memories of the models are those of mmu4.
MachineConfig with_both(std::uint32_t rows, std::uint32_t columns, PeKind pe) {
  MachineConfig machine = find_machine("mmu4");
  machine.rows = rows;
  machine.columns = columns;
  machine.pe = pe;
  machine.dataflows = Dataflows::Both;
  return machine;
}

TEST(Dataflow, twin_equals_the_rtl_of_4_x_4_bf16_pes) {
  expect_twin_equals<Vmmu_both_4x4>(with_both(4, 4, PeKind::Bf16));
}
TEST(Dataflow, twin_equals_the_rtl_of_3_x_5_int8_pes_in_a_grid) {
  expect_twin_equals<Vmmu_both_3x5>(with_both(3, 5, PeKind::Int8));
}

struct Result {
  RunReport report;
  std::vector<std::byte> bytes;
};

Result run(Machine& machine, const Product& product, const std::vector<std::byte>& operands) {
  std::memcpy(machine.dram().data(), operands.data(), operands.size());
  Result result;
  result.report = machine.run(product.program(machine.config()), {.record_times = true});
  const auto y = machine.dram().subspan(product.y, std::size_t{4} * product.m * product.n);
  result.bytes.assign(y.begin(), y.end());
  return result;
}

/// Exponents of sane numbers, so that the order of a sum shows in its bits.
std::vector<std::byte> random_operands(const Product& product, std::mt19937& random) {
  std::vector<std::byte> memory(product.y);
  for (std::size_t i = 0; i < memory.size(); i += 2) {
    const auto bits = static_cast<std::uint16_t>((random() & 0x807F) | (120 + random() % 12) << 7);
    std::memcpy(memory.data() + i, &bits, sizeof bits);
  }
  return memory;
}

/// Random products: the RTL has the twin's bits and times, and both dataflows have the same bits.
template <class Model>
void expect_equal_products(const MachineConfig& machine, unsigned products) {
  std::uint64_t moved[2] = {};
  for (unsigned seed = 1; seed <= products; ++seed) {
    std::mt19937 random(seed);
    MachineConfig varied = vary_machine(machine, random);
    varied.dram_bytes = 1 << 18;
    const auto side = [&](unsigned most) {
      return static_cast<std::uint32_t>(1 + random() % most);
    };
    Product product{.m = side(20), .k = side(40), .n = side(12)};
    const auto operands = random_operands(product, random);
    const auto twin = open_twin(varied);
    const auto rtl = make_rtl_machine(std::make_unique<VerilatedModel<Model>>(), varied);
    const Result stationary_weights = run(*twin, product, operands);
    product.output_stationary = true;
    const Result expected = run(*twin, product, operands), got = run(*rtl, product, operands);
    ASSERT_EQ(expected.bytes, stationary_weights.bytes) << "seed " << seed;
    ASSERT_EQ(got.bytes, expected.bytes) << "seed " << seed;
    ASSERT_EQ(got.report.times, expected.report.times) << "seed " << seed;
    ASSERT_EQ(got.report.counters, expected.report.counters) << "seed " << seed;
    moved[0] += stationary_weights.report.counters.accumulator_writes;
    moved[1] += expected.report.counters.accumulator_writes;
  }
  EXPECT_LT(2 * moved[1], moved[0]) << "sums stay in the array";
}

TEST(Dataflow, random_products_have_the_bits_of_stationary_weights) {
  expect_equal_products<Vmmu_both_4x4>(with_both(4, 4, PeKind::Bf16), 150);
  expect_equal_products<Vmmu_both_3x5>(with_both(3, 5, PeKind::Int8), 150);
}

}  // namespace
}  // namespace triptych::mmu
