// Random machines of the co-simulation.
// SPDX-License-Identifier: Apache-2.0
#include "tests/systolic/cosim/dice.h"
#include "tests/systolic/cosim/generator.h"

namespace triptych::mmu {

MachineConfig vary_machine(MachineConfig machine, std::mt19937& random) {
  Dice dice(random);
  machine.dram_bytes = kCaseDramBytes;
  machine.weight_scheme =
      dice.among({WeightScheme::PassThrough, WeightScheme::PerColumn, WeightScheme::Drained});
  if (dice.one_in(2)) {
    machine.dram = dram_preset(dice.among({"ddr3", "hbm", "hbm300", "ideal"}), machine.clock_mhz);
    return machine;
  }
  machine.dram.preset = "custom";
  machine.dram.bytes_per_cycle = dice.among({0.0, 0.7, 3.0, 8.0, 17.3, 64.0, 300.0});
  machine.dram.latency = dice.among({0U, 1U, 2U, 5U, 20U, 150U});
  machine.dram.burst_bytes = dice.among({1U, 4U, 16U, 64U, 256U});
  machine.dram.row_bytes = machine.dram.burst_bytes * dice.among({1U, 4U, 32U});
  machine.dram.banks = dice.among({1U, 2U, 3U, 8U});
  machine.dram.row_miss = dice.among({0U, 1U, 7U, 40U});
  return machine;
}

MachineConfig random_machine(std::mt19937& random) {
  Dice dice(random);
  MachineConfig machine;
  machine.name = "random";
  machine.rows = dice.among({2U, 3U, 4U, 5U, 8U, 12U, 16U});
  machine.columns = dice.among({2U, 3U, 4U, 7U, 8U, 16U, 17U, 20U});
  machine.pe = dice.one_in(3) ? PeKind::Int8 : PeKind::Bf16;
  machine.pe_latency = dice.among({1U, 1U, 2U, 3U});
  machine.buffer_rows = dice.among({16U, 64U, 256U});
  machine.accumulator_rows = dice.among({16U, 64U, 256U});
  machine.weight_tiles = static_cast<std::uint32_t>(dice.between(1, 4));
  machine.queue_depth = dice.among({1U, 2U, 4U, 16U});
  if (machine.pe_latency == 1 && dice.one_in(3)) machine.dataflows = Dataflows::Both;
  return vary_machine(machine, random);
}

MachineConfig random_vector_machine(std::mt19937& random) {
  MachineConfig machine = random_machine(random);
  machine.pe = PeKind::Bf16;
  machine.pe_latency = 1;
  machine.vector_rows = Dice(random).among({8U, 16U, 64U});
  return machine;
}

}  // namespace triptych::mmu
