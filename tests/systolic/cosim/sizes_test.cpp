// Random programs on RTL with rows and columns that are no powers of two, and on the twin: groups
// of all rows, the ring of lanes, slots until its turn is over, ports of odd widths.
// SPDX-License-Identifier: Apache-2.0
#include "Vmmu_12x20.h"
#include "Vmmu_12x20___024root.h"
#include "Vmmu_5x7.h"
#include "Vmmu_5x7___024root.h"
#include "tests/systolic/cosim/variants.h"

namespace triptych::mmu {
namespace {

MachineConfig of_size(std::uint32_t rows, std::uint32_t columns, PeKind pe) {
  MachineConfig machine = find_machine("mmu4");
  machine.rows = rows;
  machine.columns = columns;
  machine.pe = pe;
  return machine;
}

TEST(Sizes, twin_equals_the_rtl_of_5_x_7_int8_pes_in_a_grid) {
  expect_twin_equals<Vmmu_5x7>(of_size(5, 7, PeKind::Int8));
}
TEST(Sizes, twin_equals_the_rtl_of_12_x_20_bf16_pes) {
  expect_twin_equals<Vmmu_12x20>(of_size(12, 20, PeKind::Bf16));
}

}  // namespace
}  // namespace triptych::mmu
