// Figures that others published, reproduced: SCALE-Sim's cycles of a U-Net, and the shape of TPU
// v1's utilisation by application. docs/results/systolic.md has the tables and explains the
// differences.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/systolic/utilisation/scale_sim.h"
#include "tests/systolic/utilisation/tpu_v1.h"

namespace triptych {
namespace {

std::vector<ScaleSimLine> unet_lines(const std::string& name) {
  auto machine = mmu::find_machine(name);
  machine.dram = mmu::dram_preset("ideal", machine.clock_mhz);
  std::vector<ScaleSimLine> lines;
  for (const auto& node : programs_of(model_graph("unet-s", "infer", true), machine, true)) {
    lines.push_back(compare_with_scale_sim(node, machine));
  }
  return lines;
}

template <class Member>
std::int64_t total(const std::vector<ScaleSimLine>& lines, Member member) {
  return std::accumulate(lines.begin(), lines.end(), std::int64_t{0},
                         [=](std::int64_t sum, const auto& line) { return sum + line.*member; });
}

TEST(ScaleSim, closed_form_gives_the_cycles_that_its_runs_report) {
  EXPECT_EQ(total(unet_lines("mmu16"), &ScaleSimLine::scale_sim), 215'736);
  EXPECT_EQ(total(unet_lines("mmu32"), &ScaleSimLine::scale_sim), 105'012);
}

TEST(ScaleSim, every_cycle_of_the_difference_has_a_cause) {
  for (const auto* machine : {"mmu16", "mmu32"}) {
    for (const auto& line : unet_lines(machine)) {
      EXPECT_EQ(line.cycles, line.scale_sim - line.overlapped + line.padding + line.first_load +
                                 line.waits + line.last_store);
      EXPECT_GT(line.overlapped, 0);
      EXPECT_GE(line.padding, 0);
      EXPECT_GT(line.first_load, 0);
      EXPECT_GE(line.waits, 0);
      EXPECT_GT(line.last_store, 0);
    }
  }
}

TEST(ScaleSim, a_unet_takes_fewer_cycles_with_its_loads_and_stores) {
  for (const auto* machine : {"mmu16", "mmu32"}) {
    const auto lines = unet_lines(machine);
    EXPECT_LT(total(lines, &ScaleSimLine::cycles), total(lines, &ScaleSimLine::scale_sim));
  }
}

TEST(TpuV1, applications_have_the_published_weights_and_operations) {
  const std::map<std::string, double> operations_per_weight = {
      {"MLP0", 200}, {"MLP1", 168}, {"LSTM0", 64}, {"LSTM1", 96}, {"CNN0", 2888}, {"CNN1", 1750}};
  for (const auto& application : tpu_applications()) {
    double weights = 0;
    for (const auto& layer : application.layers) weights += layer.weights();
    EXPECT_NEAR(weights / application.weights, 1, 0.02) << application.name;
    EXPECT_NEAR(application.macs() / weights / operations_per_weight.at(application.name), 1, 0.01)
        << application.name;
  }
}

std::map<std::string, TpuShares> run(TpuTraffic traffic) {
  std::map<std::string, TpuShares> shares;
  for (const auto& application : tpu_applications()) {
    shares[application.name] = run_on_tpu_v1(application, traffic);
  }
  return shares;
}

TEST(TpuV1, connected_layers_reach_the_roofline_of_the_weight_memory) {
  for (const auto& application : tpu_applications()) {
    if (application.name.starts_with("CNN")) continue;
    const auto shares = run_on_tpu_v1(application, TpuTraffic::Weights);
    EXPECT_GT(shares.tops / application.roofline_tops(), 0.85) << application.name;
    EXPECT_LE(shares.tops / application.roofline_tops(), 1) << application.name;
    // Array active < weights shifted in < weights awaited, as the counters of the paper.
    EXPECT_LT(application.paper.active, application.paper.weight_shift);
    EXPECT_LT(shares.active, shares.weight_shift) << application.name;
    EXPECT_LT(2 * shares.weight_shift, shares.weight_stall) << application.name;
  }
}

TEST(TpuV1, applications_reach_the_published_rates_where_their_data_allow) {
  auto shares = run(TpuTraffic::Weights);
  EXPECT_NEAR(shares["MLP0"].tops / 12.3, 1, 0.12);
  EXPECT_NEAR(shares["MLP1"].tops / 9.7, 1, 0.12);
  EXPECT_NEAR(shares["LSTM0"].tops / 3.7, 1, 0.12);
  EXPECT_NEAR(shares["LSTM1"].useful / 0.063, 1, 0.1);  // the paper's TOPS do not fit its counters
  EXPECT_NEAR(shares["CNN0"].tops / 86.0, 1, 0.15);
  EXPECT_NEAR(shares["CNN1"].useful / shares["CNN1"].active, 0.225 / 0.462, 0.05);
}

TEST(TpuV1, activations_in_the_buffer_bring_rows_of_layers_near_their_rates_without_any) {
  auto alone = run(TpuTraffic::Weights), all = run(TpuTraffic::All), kept = run(TpuTraffic::Kept);
  for (const auto* name : {"MLP0", "MLP1", "CNN0", "CNN1"}) {
    EXPECT_GT(kept[name].tops, 0.85 * alone[name].tops) << name;
    EXPECT_GT(kept[name].tops, 1.08 * all[name].tops) << name;
    EXPECT_LE(kept[name].tops, alone[name].tops) << name;
  }
  EXPECT_GT(kept["CNN0"].tops / 91.75, 0.8) << "of the roofline";
  // Gates are no activations of the next layer: nothing is stored.
  EXPECT_EQ(kept["LSTM0"].tops, all["LSTM0"].tops);
}

TEST(TpuV1, convolutions_on_deep_maps_are_far_ahead_of_all_others) {
  for (const auto traffic : {TpuTraffic::Weights, TpuTraffic::All, TpuTraffic::Kept}) {
    auto shares = run(traffic);
    EXPECT_GT(shares["CNN0"].tops, 1.5 * shares["CNN1"].tops);
    EXPECT_GT(shares["CNN1"].tops, shares["MLP0"].tops);
    EXPECT_GT(shares["MLP0"].tops, shares["MLP1"].tops);
    EXPECT_GT(shares["MLP1"].tops, 1.5 * shares["LSTM0"].tops);
    EXPECT_GT(shares["MLP1"].tops, 1.5 * shares["LSTM1"].tops);
  }
}

}  // namespace
}  // namespace triptych
