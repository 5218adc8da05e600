// A program on the systolic machine, and the backend of such machines.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "backends/systolic/systolic_backend.h"
#include "systolic/driver/driver.h"

int main() {
  using namespace triptych;
  const auto machine = mmu::open_machine(mmu::find_machine("mmu4"), mmu::Simulation::Twin);
  const auto cycles =
      machine->run(mmu::assemble_program("load units=1 lines=1\nhalt")).counters.cycles;
  std::printf("%llu cycles\n", static_cast<unsigned long long>(cycles));
  return cycles > 0 && !systolic::backend().devices().empty() ? 0 : 1;
}
