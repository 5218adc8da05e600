// How close a training step of unet-l comes to what no order of weight tiles and no DRAM could
// beat, on arrays that are wide for it. docs/results/systolic.md has the figures.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "systolic/twin/twin.h"
#include "tests/systolic/utilisation/measure.h"

namespace triptych {
namespace {

struct Use {
  double cycles = 0, bound = 0, products = 0;
  double utilisation() const { return products / cycles; }
  double of_the_bound() const { return bound / cycles; }
};

/// `bound`: of each node the larger one of the array's and the DRAM's.
Use training_step(const std::string& name, const std::string& dram) {
  auto machine = mmu::find_machine(name);
  machine.pe = mmu::PeKind::Bf16;
  machine.dram = mmu::dram_preset(dram, machine.clock_mhz);
  Use use;
  for (const auto& node : programs_of(model_graph("unet-l", "train", false), machine)) {
    const auto counters = mmu::estimate(node.program, machine).counters;
    double bytes = 0;
    for (const auto of_unit : counters.dram_bytes) bytes += number(of_unit);
    const double bandwidth = machine.dram.bytes_per_cycle;
    const auto array =
        node.product.tiles(machine) * std::max(node.product.streamed(), number(machine.rows));
    use.bound += std::max(array, bandwidth > 0 ? bytes / bandwidth : 0);
    use.cycles += number(counters.cycles);
    use.products += node.product.macs() / number(machine.rows * machine.columns);
  }
  return use;
}

TEST(Utilisation, reaches_the_array_s_bound_where_memory_is_ideal) {
  EXPECT_GT(training_step("mmu32", "ideal").utilisation(), 0.985);
  EXPECT_GT(training_step("tpu-v2-core", "ideal").utilisation(), 0.80);
  EXPECT_GT(training_step("tpu-v1", "ideal").utilisation(), 0.47);
}

TEST(Utilisation, comes_near_the_bound_with_every_memory) {
  for (const auto* machine : {"tpu-v2-core", "tpu-v1"}) {
    for (const auto* dram : {"ddr3", "hbm300", "hbm"}) {
      EXPECT_GT(training_step(machine, dram).of_the_bound(), 0.95) << machine << ", " << dram;
    }
  }
}

}  // namespace
}  // namespace triptych
