// The energy tables and results computed from them.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/energy.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "experiments/machines/published_machines.h"

namespace triptych::machines {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

Json default_file() { return Json::parse(energy_files().front().json); }

/// The message of the error for a table with this text.
std::string problem_of(const Json& file) {
  try {
    const EnergyTable table(file.dump(), "mine.json");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Energy, every_line_of_a_shipped_table_has_a_price_and_a_source) {
  for (const auto& name : energy_table_names()) {
    const auto table = find_energy_table(name);
    EXPECT_EQ(table.name(), name);
    for (const auto& event : table.events()) {
      EXPECT_GT(event.joule, 1e-17) << event.name;
      EXPECT_LT(event.joule, 1e-7) << event.name;
      EXPECT_GT(event.source.size(), 10U) << event.name;
    }
  }
  EXPECT_EQ(energy_table_names().front(), kDefaultEnergyTable);
}

TEST(Energy, tables_hold_the_published_figures) {
  const auto old = find_energy_table("45nm"), recent = find_energy_table("7nm");
  EXPECT_DOUBLE_EQ(old.of(EnergyAction::Bf16Multiply).joule, 1.1e-12);
  EXPECT_DOUBLE_EQ(old.of(EnergyAction::DramBit).joule, 1.95e-9 / 64);
  EXPECT_DOUBLE_EQ(recent.of(EnergyAction::Bf16Multiply).joule, 0.21e-12);
  EXPECT_DOUBLE_EQ(recent.memory_bit(1e9).joule, 14e-12 / 64);
}

TEST(Energy, a_memory_costs_what_the_nearest_size_costs) {
  const auto table = find_energy_table(kDefaultEnergyTable);
  EXPECT_EQ(table.memory_bit(0).name, "8 KiB SRAM bit");
  EXPECT_EQ(table.memory_bit(49152).name, "32 KiB SRAM bit");
  EXPECT_EQ(table.memory_bit(1 << 18).name, "1 MiB SRAM bit");
  EXPECT_EQ(table.memory_bit(1e12).name, "1 MiB SRAM bit");
}

TEST(Energy, stacked_memory_costs_as_much_as_dram_where_a_table_has_no_price) {
  const auto table = find_energy_table("45nm");
  EXPECT_EQ(table.of(EnergyAction::HbmBit).name, "DRAM bit");
  EXPECT_EQ(find_energy_table("7nm").of(EnergyAction::HbmBit).name, "HBM bit");
}

TEST(Energy, a_table_without_a_price_or_with_a_wrong_one_is_refused) {
  auto file = default_file();
  file["actions"].erase("int8 multiply");
  EXPECT_THAT(problem_of(file),
              HasSubstr("mine.json: actions must have a member \"int8 multiply\""));
  file = default_file();
  file["actions"]["int9 multiply"] = file["actions"]["int8 multiply"];
  EXPECT_THAT(problem_of(file), HasSubstr("actions.int9 multiply is no action"));
  file = default_file();
  file["actions"]["int8 multiply"]["picojoule"] = -1;
  EXPECT_THAT(problem_of(file), HasSubstr("actions.int8 multiply.picojoule must be"));
  file = default_file();
  file["actions"]["int8 multiply"].erase("source");
  EXPECT_THAT(problem_of(file), HasSubstr("must have a member \"source\""));
  file = default_file();
  file["memories"] = Json::array();
  EXPECT_THAT(problem_of(file), HasSubstr("memories must have at least one memory"));
  file = default_file();
  file["memories"][1]["name"] = file["memories"][0]["name"];
  EXPECT_THAT(problem_of(file), HasSubstr("memories[1].name is used twice"));
  EXPECT_THAT(problem_of(default_file()), "accepted");
}

TEST(Energy, an_unknown_table_is_answered_with_those_there_are) {
  EXPECT_THROW(find_energy_table("3nm"), InvalidArgument);
  EXPECT_THROW(find_energy_table("./missing.json"), IoError);
}

TEST(Energy, is_the_sum_of_its_parts) {
  const auto table = find_energy_table("45nm");
  const std::vector<EnergyPart> parts = {{"multiply", 1e6, table.of(EnergyAction::Bf16Multiply)},
                                         {"free", 1e6, {}},
                                         {"memory", 640, table.of(EnergyAction::DramBit)}};
  EXPECT_DOUBLE_EQ(total_joule(parts), 1e6 * 1.1e-12 + 10 * 1.95e-9);
}

}  // namespace
}  // namespace triptych::machines
