// Random programs on RTL with PEs of several cycles, and on the twin. Every program contains the
// special properties of these machines: the skew, the hazard, the swap that passes the capture.
// SPDX-License-Identifier: Apache-2.0
#include "Vmmu_latency_2.h"
#include "Vmmu_latency_2___024root.h"
#include "Vmmu_latency_3.h"
#include "Vmmu_latency_3___024root.h"
#include "tests/systolic/cosim/variants.h"

namespace triptych::mmu {
namespace {

/// The parameters of the models are those of mmu4, PEs aside.
MachineConfig with_pes(PeKind pe, std::uint32_t latency) {
  MachineConfig machine = find_machine("mmu4");
  machine.pe = pe;
  machine.pe_latency = latency;
  return machine;
}

TEST(Latency, twin_equals_the_rtl_of_int8_pes_of_two_cycles) {
  expect_twin_equals<Vmmu_latency_2>(with_pes(PeKind::Int8, 2));
}
TEST(Latency, twin_equals_the_rtl_of_bf16_pes_of_three_cycles) {
  expect_twin_equals<Vmmu_latency_3>(with_pes(PeKind::Bf16, 3));
}

}  // namespace
}  // namespace triptych::mmu
