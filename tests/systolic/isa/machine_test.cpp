// SPDX-License-Identifier: Apache-2.0
#include "systolic/isa/machine.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace triptych::mmu {
namespace {

std::string complaint(const std::string& json) {
  try {
    parse_machine(json);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Machine, every_shipped_machine_is_its_file_and_is_valid) {
  EXPECT_THAT(
      machine_names(),
      testing::ElementsAre("mmu2", "mmu4", "mmu8", "mmu16", "mmu32", "mmu4-both", "mmu4-vector",
                           "mmu16-both", "mmu16-int8", "mmu16-45nm", "tpu-v1", "tpu-v2-core"));
  for (const std::string& name : machine_names()) {
    const MachineConfig machine = find_machine(name);
    EXPECT_EQ(machine.name, name);
    const auto path =
        std::filesystem::path(TRIPTYCH_SOURCE_DIR) / "systolic/machines" / (name + ".json");
    EXPECT_EQ(to_json(find_machine(path.string())), to_json(machine));
  }
}

TEST(Machine, json_is_read_as_it_is_written) {
  MachineConfig machine = find_machine("mmu8");
  machine.name = "mine";
  machine.weight_scheme = WeightScheme::Drained;
  machine.dram.preset = "custom";
  machine.dram.bytes_per_cycle = 3.5;
  machine.dram.row_miss = 9;
  machine.array = ArrayKind::Grid;
  machine.pe_latency = 3;
  machine.clock_source = "a data sheet";
  machine.clock_closed_in = "sky130hd_tt";
  const MachineConfig back = parse_machine(to_json(machine));
  EXPECT_EQ(to_json(back), to_json(machine));
  EXPECT_EQ(back.weight_scheme, WeightScheme::Drained);
  EXPECT_EQ(back.dram.bytes_per_cycle, 3.5);
  EXPECT_EQ(back.array, ArrayKind::Grid);
  EXPECT_EQ(back.pe_latency, 3U);
  EXPECT_EQ(back.clock_source, "a data sheet");
  EXPECT_EQ(back.clock_closed_in, "sky130hd_tt");
  EXPECT_EQ(find_machine("mmu8").array, std::nullopt);
}

TEST(Machine, a_memory_that_the_watchdog_would_stop_is_refused) {
  // A request takes 205,000 cycles, and the RTL stops after 65,536 without progress of any unit.
  const auto slow = [](double rate, int burst) {
    return complaint(fmt::format(
        R"({{"name": "x", "dram": {{"bytes_per_cycle": {}, "burst_bytes": {}}}}})", rate, burst));
  };
  EXPECT_THAT(slow(0.01, 2048), testing::HasSubstr("the RTL's watchdog stops it after 65536"));
  EXPECT_THAT(slow(0.1, 2048), testing::HasSubstr("give more bytes_per_cycle"));
  EXPECT_EQ(slow(0.1, 64), "accepted");
  EXPECT_EQ(slow(1, 2048), "accepted");
}

TEST(Machine, a_file_needs_no_schema_but_another_one_is_refused) {
  const auto text = to_json(find_machine("mmu4"));
  EXPECT_THAT(text, testing::HasSubstr("\"schema\": 1"));
  EXPECT_EQ(complaint(R"({"name": "x"})"), "accepted");
  for (const auto* schema : {"0", "2"}) {
    EXPECT_EQ(complaint(fmt::format(R"({{"name": "x", "schema": {}}})", schema)),
              fmt::format("[machine] schema = {}: this version reads schema 1", schema));
  }
}

TEST(Machine, a_short_file_has_cells_of_one_cycle_and_a_clock_of_nobody) {
  const MachineConfig machine = parse_machine(R"({"name": "x", "rows": 8})");
  EXPECT_EQ(machine.pe_latency, 1U);
  EXPECT_EQ(machine.clock_source + machine.clock_closed_in, "");
  EXPECT_EQ(complaint(R"({"name": "x", "pe_latency": 4})"),
            "[machine] pe_latency = 4: give 1 to 3");
  EXPECT_NE(find_machine("mmu4").clock_source, "");
}

TEST(Machine, both_dataflows_need_cells_of_one_cycle) {
  const auto machine = parse_machine(R"({"name": "x", "dataflows": "both"})");
  EXPECT_TRUE(machine.has_output_stationary());
  EXPECT_EQ(parse_machine(to_json(machine)).dataflows, Dataflows::Both);
  EXPECT_EQ(parse_machine(R"({"name": "x"})").dataflows, Dataflows::WeightStationary);
  EXPECT_EQ(complaint(R"({"name": "x", "dataflows": "row-stationary"})"),
            "[machine] dataflows 'row-stationary': give one of weight-stationary, "
            "output-stationary, both");
  EXPECT_THAT(complaint(R"({"name": "x", "dataflows": "both", "pe_latency": 2})"),
              testing::HasSubstr("give pe_latency 1 or dataflows 'weight-stationary'"));
}

TEST(Machine, a_vector_unit_needs_bf16_cells_of_one_cycle) {
  const auto machine = parse_machine(R"({"name": "x", "vector_rows": 64})");
  EXPECT_TRUE(machine.has_vector_unit());
  EXPECT_EQ(parse_machine(to_json(machine)).vector_rows, 64U);
  EXPECT_FALSE(parse_machine(R"({"name": "x"})").has_vector_unit());
  EXPECT_EQ(complaint(R"({"name": "x", "vector_rows": 24})"),
            "[machine] vector_rows = 24: give a power of two");
  EXPECT_EQ(complaint(R"({"name": "x", "vector_rows": 1})"),
            "[machine] vector_rows = 1: give 0 (no vector unit) or at least 2");
  EXPECT_THAT(complaint(R"({"name": "x", "vector_rows": 64, "pe": "int8"})"),
              testing::EndsWith("give pe 'bf16'"));
  EXPECT_THAT(complaint(R"({"name": "x", "vector_rows": 64, "pe_latency": 2})"),
              testing::EndsWith("give pe_latency 1"));
}

TEST(Machine, presets_scale_with_the_clock) {
  EXPECT_DOUBLE_EQ(dram_preset("ddr3", 700).bytes_per_cycle, 34000.0 / 700);
  EXPECT_DOUBLE_EQ(dram_preset("hbm", 1000).bytes_per_cycle, 900);
  EXPECT_EQ(dram_preset("hbm300", 500).latency, 60U);
  EXPECT_EQ(dram_preset("ideal", 700).bytes_per_cycle, 0);
  EXPECT_THROW(dram_preset("sram", 700), std::invalid_argument);
}

TEST(Machine, groups_divide_the_rows_and_have_one_name_each) {
  const auto groups = [](std::uint32_t rows) {
    MachineConfig machine;
    machine.rows = rows;
    std::string text;
    for (std::uint32_t log2 = 0; log2 < 16; ++log2)
      if (machine.has_group(log2)) text += fmt::format("{}:{} ", log2, machine.group(log2));
    return text;
  };
  EXPECT_EQ(groups(8), "0:1 1:2 2:4 3:8 ");
  EXPECT_EQ(groups(5), "0:1 3:5 ");
  EXPECT_EQ(groups(12), "0:1 1:2 2:4 4:12 ");
  EXPECT_EQ(groups(255), "0:1 8:255 ");
  EXPECT_EQ(groups(256), "0:1 1:2 2:4 3:8 4:16 5:32 6:64 7:128 8:256 ");
}

TEST(Machine, errors_say_what_to_give) {
  EXPECT_EQ(complaint(R"({"name": "x", "rows": 1})"), "[machine] rows = 1: give 2 to 256");
  EXPECT_EQ(complaint(R"({"name": "x", "buffer_rows": 3})"),
            "[machine] buffer_rows = 3: give a power of two");
  EXPECT_EQ(complaint(R"({"name": "x", "columns": 300})"),
            "[machine] columns = 300: give 2 to 256");
  EXPECT_EQ(complaint(R"({"name": "x", "pe": "fp8"})"),
            "[machine] pe 'fp8': give one of bf16, int8");
  EXPECT_EQ(complaint(R"({"name": "x", "array": "dense"})"),
            "[machine] array 'dense': give one of fast, grid");
  EXPECT_THAT(complaint(R"({"name": "x", "row": 4})"), testing::HasSubstr("unknown key 'row'"));
  EXPECT_EQ(complaint(R"({"name": "x", "rows": -4})"), "[machine] rows = -4: give 2 to 256");
  EXPECT_EQ(complaint(R"({"name": "x", "weight_tiles": 2.5})"),
            "[machine] weight_tiles = 2.5: give 1 to 64");
  EXPECT_EQ(complaint(R"({"name": "x", "dram": {"latency": -1}})"),
            "[machine] dram.latency = -1: give 0 to 16384");
  EXPECT_EQ(complaint(R"({"name": "x", "dram": {"burst_bytes": 64, "row_bytes": 32}})"),
            "[machine] dram.row_bytes = 32: give 64 to 1048576");
  EXPECT_THAT(complaint("{"), testing::HasSubstr("no JSON"));
  EXPECT_THROW(find_machine("nowhere"), std::invalid_argument);
}

TEST(Machine, refuses_a_key_that_appears_twice) {
  EXPECT_EQ(complaint(R"({"name": "x", "rows": 4, "rows": 8})"),
            "[machine] key 'rows' appears twice");
  EXPECT_EQ(complaint(R"({"name": "x", "dram": {"banks": 4, "banks": 8}})"),
            "[machine] key 'banks' appears twice");
}

TEST(Machine, refuses_more_keys_than_a_machine_has) {
  std::string text = "{";
  for (int i = 0; i < 1001; ++i) text += "\"k" + std::to_string(i) + "\":1,";
  EXPECT_EQ(complaint(text), "[machine] an object has more than 1000 keys");
}

}  // namespace
}  // namespace triptych::mmu
