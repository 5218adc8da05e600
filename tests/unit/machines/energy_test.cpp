// The energy table and results computed from it.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/machines/energy.h"

#include <gmock/gmock.h>

#include "core/base/error.h"

namespace triptych::machines {
namespace {

TEST(Energy, every_line_has_a_price_and_a_source) {
  for (const auto& event : energy_table()) {
    EXPECT_GT(event.joule, 1e-14) << event.name;
    EXPECT_LT(event.joule, 1e-8) << event.name;
    EXPECT_THAT(std::string(event.source), testing::HasSubstr("ISSCC 2014"));
    EXPECT_EQ(&energy_of(event.name), &event);
  }
  EXPECT_THROW(energy_of("wish"), InvalidArgument);
}

TEST(Energy, a_memory_costs_what_the_nearest_size_costs) {
  EXPECT_EQ(sram_of(0).name, "8 KiB SRAM, 8 bytes");
  EXPECT_EQ(sram_of(49152).name, "32 KiB SRAM, 8 bytes");
  EXPECT_EQ(sram_of(1 << 18).name, "1 MiB SRAM, 8 bytes");
  EXPECT_EQ(sram_of(1e12).name, "1 MiB SRAM, 8 bytes");
  EXPECT_GT(dram().joule, 10 * sram_of(1e12).joule);
}

TEST(Energy, is_the_sum_of_its_parts) {
  const std::vector<EnergyPart> parts = {{"multiply", 1e6, &energy_of("float16 multiply")},
                                         {"free", 1e6, nullptr},
                                         {"memory", 10, &dram()}};
  EXPECT_DOUBLE_EQ(total_joule(parts), 1e6 * 1.1e-12 + 10 * 1.95e-9);
}

}  // namespace
}  // namespace triptych::machines
