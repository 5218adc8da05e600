// How close a training step of unet-l comes to the bound for every order of weight tiles and every
// DRAM, on arrays that are wide for it. docs/results/systolic.md has the figures. The short form
// takes each memory and each array once, TRIPTYCH_ALL_CASES=1, as in the part `cases`, all pairs.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
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

/// `bound`: of each node the larger one of the array's and the DRAM's. The narrowest array takes a
/// smaller model, which fills it as well.
Use measured_step(const std::string& name, const std::string& dram, std::uint32_t latency) {
  static const auto large = model_graph("unet-l", "train", false);
  static const auto medium = model_graph("unet-m", "train", false);
  const auto& graph = name == "mmu32" ? medium : large;
  auto machine = mmu::find_machine(name);
  machine.pe = mmu::PeKind::Bf16;
  machine.dram = mmu::dram_preset(dram, machine.clock_mhz);
  machine.pe_latency = latency;
  Use use;
  for (const auto& node : programs_of(graph.clone(), machine)) {
    const auto counters = mmu::estimate(node.program, machine).counters;
    const double bandwidth = machine.dram.bytes_per_cycle;
    use.bound += std::max(node.product.array_bound(machine),
                          bandwidth > 0 ? dram_bytes(counters) / bandwidth : 0);
    use.cycles += number(counters.cycles);
    use.products += node.product.macs() / number(machine.rows * machine.columns);
  }
  return use;
}

bool has_all_cases() { return std::getenv("TRIPTYCH_ALL_CASES") != nullptr; }

/// Each step is measured once.
Use training_step(const std::string& name, const std::string& dram, std::uint32_t latency = 1) {
  static std::map<std::tuple<std::string, std::string, std::uint32_t>, Use> measured;
  const auto [use, is_new] = measured.try_emplace({name, dram, latency});
  if (is_new) use->second = measured_step(name, dram, latency);
  return use->second;
}

TEST(Utilisation, reaches_the_array_s_bound_where_memory_is_ideal) {
  EXPECT_GT(training_step("mmu32", "ideal").utilisation(), 0.985);
  EXPECT_GT(training_step("tpu-v2-core", "ideal").utilisation(), 0.80);
  EXPECT_GT(training_step("tpu-v1", "ideal").utilisation(), 0.47);
}

/// A convolution of `window` x `window` that keeps the size of its input.
Graph convolution(std::int64_t in, std::int64_t out, std::int64_t height, std::int64_t width,
                  std::int64_t window) {
  Graph graph;
  Conv conv;
  conv.kernel_shape = {window, window};
  conv.pads = Dims(4, window / 2);
  const auto x = graph.add_input("x", {DType::F32, Shape{1, in, height, width}});
  const auto w =
      graph.add_state("w", Tensor(TensorSpec{DType::F32, Shape{out, in, window, window}}));
  graph.mark_output("y", graph.add_node(make_op(conv), std::vector{x, w})[0]);
  return graph;
}

struct Layer {
  std::string machine;
  std::int64_t in, out, side;
  Graph graph() const { return convolution(in, out, side, side, 3); }
};

mmu::Counters counters_of(const Layer& layer, const std::string& tiling = "") {
  const auto machine = mmu::find_machine(layer.machine);
  const auto node = programs_of(layer.graph(), machine, false, tiling).at(0);
  return mmu::estimate(node.program, machine).counters;
}

/// Fewest cycles and least traffic, of different tilings.
struct Best {
  double cycles = std::numeric_limits<double>::max(), bytes = cycles;
  int tilings = 0;
};

/// The best tilings of whole rows: all, halves and quarters by powers of two of column tiles.
Best best_of(const Layer& layer) {
  Best best;
  for (const int parts : {1, 2, 4}) {
    for (int columns = 1; columns <= 16; columns *= 2) {
      const auto rows = layer.side / parts;
      const auto tiling =
          fmt::format("y={},x=all,columns={},buffer=2,accumulators=2", rows, columns);
      try {
        const auto counters = counters_of(layer, tiling);
        best.cycles = std::min(best.cycles, number(counters.cycles));
        best.bytes = std::min(best.bytes, dram_bytes(counters));
        ++best.tilings;
      } catch (const UnsupportedError& error) {  // it does not fit the machine
        EXPECT_NE(std::string(error.what()).find(tiling), std::string::npos) << error.what();
      }
    }
  }
  return best;
}

TEST(Utilisation, plans_move_little_more_than_the_least_of_any_tiling) {
  for (const auto& layer : {Layer{"mmu16", 256, 256, 16}, Layer{"mmu16", 64, 64, 32},
                            Layer{"mmu16", 32, 32, 64}, Layer{"mmu32", 128, 128, 32}}) {
    SCOPED_TRACE(fmt::format("{}, {} to {} channels", layer.machine, layer.in, layer.out));
    const auto counters = counters_of(layer);
    const auto best = best_of(layer);
    EXPECT_GE(best.tilings, 5);
    EXPECT_LE(number(counters.cycles), 1.02 * best.cycles);  // 1 % and the estimate's error
    EXPECT_LE(dram_bytes(counters), 1.3 * best.bytes);
  }
}

TEST(Utilisation, a_larger_buffer_never_needs_more_traffic) {
  double before = std::numeric_limits<double>::max();
  for (const std::uint32_t rows : {1024, 2048, 8192}) {
    auto machine = mmu::find_machine("mmu16");
    machine.buffer_rows = rows;
    const auto node = programs_of(convolution(64, 64, 32, 32, 3), machine).at(0);
    const auto bytes = dram_bytes(mmu::estimate(node.program, machine).counters);
    EXPECT_LE(bytes, before) << rows << " buffer rows";
    before = bytes;
  }
}

TEST(Utilisation, few_positions_come_within_a_tenth_of_the_bound) {
  auto machine = mmu::find_machine("mmu16");
  machine.dram = mmu::dram_preset("ideal", machine.clock_mhz);
  // As many buffer rows as slots.
  const auto node = programs_of(convolution(384, 16, 10, 12, 1), machine).at(0);
  EXPECT_EQ(node.product.array_bound(machine), 2880);
  const auto cycles = mmu::estimate(node.program, machine).counters.cycles;
  RecordProperty("cycles", std::to_string(cycles));
  EXPECT_LT(number(cycles), 1.1 * 2880);
}

TEST(Utilisation, slower_sums_cost_no_more_than_their_chains) {
  for (const auto* machine : {"tpu-v1", "tpu-v2-core"}) {
    const auto fast = training_step(machine, "ideal").of_the_bound();
    EXPECT_GT(training_step(machine, "ideal", 2).of_the_bound(), fast - 0.01) << machine;
    if (!has_all_cases()) break;
  }
}

TEST(Utilisation, comes_near_the_bound_with_every_memory) {
  std::vector<std::pair<const char*, const char*>> pairs = {
      {"tpu-v2-core", "ddr3"}, {"tpu-v1", "hbm300"}, {"tpu-v1", "hbm"}};
  if (has_all_cases()) {
    pairs.insert(pairs.end(),
                 {{"tpu-v1", "ddr3"}, {"tpu-v2-core", "hbm300"}, {"tpu-v2-core", "hbm"}});
  }
  for (const auto& [machine, dram] : pairs) {
    EXPECT_GT(training_step(machine, dram).of_the_bound(), 0.95) << machine << ", " << dram;
  }
}

}  // namespace
}  // namespace triptych
