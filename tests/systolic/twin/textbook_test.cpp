// Closed forms of docs/reference/mmu.md, section "Cycles by hand", and the peak of TPU v1.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "systolic/twin/twin.h"
#include "tests/systolic/twin/product.h"

namespace triptych::mmu {
namespace {

MachineConfig with_ideal_dram(std::uint32_t rows, std::uint32_t columns,
                              std::uint32_t pe_latency = 1) {
  MachineConfig config = find_machine("mmu16");
  config.rows = rows;
  config.columns = columns;
  config.pe_latency = pe_latency;
  config.dram = dram_preset("ideal", config.clock_mhz);
  return config;
}

TEST(Textbook, one_tile_takes_the_cycles_of_its_closed_form) {
  for (const std::uint32_t rows : {2U, 4U, 16U, 32U})
    for (const std::uint32_t columns : {2U, 4U, 5U, 16U, 33U})
      for (const std::uint32_t m : {1U, 4U, 5U, 16U, 100U, 1000U}) {
        const MachineConfig config = with_ideal_dram(rows, columns);
        const RunReport report =
            estimate(Product{m, rows, columns}.program(config), config, {.record_times = true});
        const std::uint32_t start = std::max(2 * rows + 7, m + 3);
        EXPECT_EQ(report.times[5].start, start) << rows << " x " << columns << ", M " << m;
        EXPECT_EQ(report.counters.cycles, start + 2 * m + rows + columns + 5)
            << rows << " x " << columns << ", M " << m;
      }
}

TEST(Textbook, one_tile_takes_the_cycles_of_its_closed_form_when_sums_take_several) {
  for (const std::uint32_t latency : {2U, 3U})
    for (const std::uint32_t rows : {2U, 4U, 32U})
      for (const std::uint32_t columns : {2U, 5U, 33U})
        for (const std::uint32_t m : {1U, 5U, 100U}) {
          const MachineConfig config = with_ideal_dram(rows, columns, latency);
          const RunReport report =
              estimate(Product{m, rows, columns}.program(config), config, {.record_times = true});
          const std::uint32_t start = std::max(rows + 8, m + 3);
          EXPECT_EQ(report.times[5].start, start) << rows << " x " << columns << ", M " << m;
          EXPECT_EQ(report.counters.cycles, start + 2 * m + 1 + rows * latency + columns + 15)
              << rows << " x " << columns << ", M " << m << ", latency " << latency;
        }
}

TEST(Textbook, a_chain_of_tiles_starts_one_every_m_cycles_or_rows_plus_2) {
  constexpr std::uint32_t kTiles = 6;
  for (const std::uint32_t rows : {2U, 4U, 16U})
    for (const std::uint32_t m : {1U, 4U, 5U, 6U, 17U, 18U, 19U, 64U}) {
      const std::uint32_t latency = 1 + m % 3;
      const MachineConfig config = with_ideal_dram(rows, rows, latency);
      // The activations of all tiles are there before the first matmul: the load unit comes last.
      const RunReport report =
          estimate(Product{m, kTiles * rows, rows}.program(config), config, {.record_times = true});
      for (std::size_t tile = 1; tile < 4; ++tile)  // as many as the FIFO holds
        EXPECT_EQ(report.times[5 + 2 * tile].start - report.times[3 + 2 * tile].start,
                  std::max(m, rows * latency + 2))
            << rows << " rows, M " << m << ", latency " << latency << ", tile " << tile;
    }
}

TEST(Textbook, tpu_v1_sustains_its_peak_of_92_tera_operations_per_second) {
  const MachineConfig tpu = find_machine("tpu-v1");
  constexpr std::uint32_t kTiles = 8;
  const Product product{4096, kTiles * tpu.rows, tpu.columns};
  const RunReport report = estimate(product.program(tpu), tpu, {.record_times = true});
  // From the first slot to the last. Weights come from DDR3 meanwhile.
  const std::uint64_t cycles =
      report.times[3 + 2 * kTiles].start + product.m - report.times[5].start;
  const double seconds = static_cast<double>(cycles) / (tpu.clock_mhz * 1e6);
  EXPECT_NEAR(2 * static_cast<double>(report.counters.macs) / seconds / 1e12, 91.75, 0.005);
}

}  // namespace
}  // namespace triptych::mmu
