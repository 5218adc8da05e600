// How close a training step of unet-l comes to what no order of weight tiles and no DRAM could
// beat, on arrays that are wide for it. docs/results/systolic.md has the figures.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/ops/conv.h"
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
Use training_step(const std::string& name, const std::string& dram, std::uint32_t latency = 1) {
  auto machine = mmu::find_machine(name);
  machine.pe = mmu::PeKind::Bf16;
  machine.dram = mmu::dram_preset(dram, machine.clock_mhz);
  machine.pe_latency = latency;
  Use use;
  for (const auto& node : programs_of(model_graph("unet-l", "train", false), machine)) {
    const auto counters = mmu::estimate(node.program, machine).counters;
    double bytes = 0;
    for (const auto of_unit : counters.dram_bytes) bytes += number(of_unit);
    const double bandwidth = machine.dram.bytes_per_cycle;
    use.bound += std::max(node.product.array_bound(machine), bandwidth > 0 ? bytes / bandwidth : 0);
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

/// A pointwise convolution of 384 channels to 16 at 10 x 12: as many buffer rows as slots.
Graph few_positions() {
  Graph graph;
  Conv conv;
  conv.kernel_shape = {1, 1};
  conv.pads = Dims(4, 0);
  const auto x = graph.add_input("x", {DType::F32, Shape{1, 384, 10, 12}});
  const auto w = graph.add_state("w", Tensor(TensorSpec{DType::F32, Shape{16, 384, 1, 1}}));
  graph.mark_output("y", graph.add_node(make_op(conv), std::vector{x, w})[0]);
  return graph;
}

TEST(Utilisation, few_positions_come_within_a_tenth_of_the_bound) {
  auto machine = mmu::find_machine("mmu16");
  machine.dram = mmu::dram_preset("ideal", machine.clock_mhz);
  const auto node = programs_of(few_positions(), machine).at(0);
  EXPECT_EQ(node.product.array_bound(machine), 2880);
  const auto cycles = mmu::estimate(node.program, machine).counters.cycles;
  RecordProperty("cycles", std::to_string(cycles));
  EXPECT_LT(number(cycles), 1.1 * 2880);
}

TEST(Utilisation, slower_sums_cost_no_more_than_their_chains) {
  for (const auto* machine : {"tpu-v2-core", "tpu-v1"}) {
    const auto fast = training_step(machine, "ideal").of_the_bound();
    EXPECT_GT(training_step(machine, "ideal", 2).of_the_bound(), fast - 0.01) << machine;
  }
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
