// The faults that lab 4 asks tests to find.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/seeded_faults.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.h"
#include "experiments/labs/lab_texts.h"
#include "systolic/sim/own_modules.h"

namespace triptych::labs {
namespace {

std::map<std::string, std::string> ours() {
  std::map<std::string, std::string> modules;
  for (const auto& name : modules_with_faults())
    modules[name] = std::string(mmu::module_text(name + ".sv"));
  return modules;
}

TEST(SeededFaults, stand_once_in_the_modules_that_the_program_has) {
  const auto modules = seed_faults(ours());
  ASSERT_EQ(modules.size(), modules_with_faults().size());
  for (std::size_t i = 0; i < seeded_faults().size(); ++i) {
    const auto& text = modules.at(std::string(seeded_faults()[i].module));
    EXPECT_THAT(text, testing::HasSubstr("lab_faults::selected == " + std::to_string(i + 1) + ")"));
  }
  EXPECT_TRUE(modules.at("mmu_arithmetic_pkg").starts_with("package lab_faults;"));
}

TEST(SeededFaults, are_refused_where_the_module_has_become_another) {
  auto modules = ours();
  auto& tokens = modules.at("mmu_tokens");
  tokens.replace(tokens.find("8'(take)"), 8, "8'(took)");
  EXPECT_THROW(seed_faults(modules), InvalidArgument);
}

TEST(SeededFaults, come_from_all_places_and_the_handout_shows_those_that_are_shown) {
  const auto handout = lab_text("handouts/4-verifier/README.md");
  for (const auto& entry : kNamesOf<Place>) {
    const auto hidden = std::ranges::count_if(seeded_faults(), [&](const SeededFault& fault) {
      return fault.place == entry.first && !fault.shown;
    });
    EXPECT_GE(hidden, 4) << entry.second;
  }
  for (const auto& fault : seeded_faults()) {
    const bool named = handout.find("`" + std::string(fault.name) + "`") != handout.npos;
    EXPECT_EQ(named, fault.shown) << fault.name;
  }
}

TEST(SeededFaults, break_a_promise_that_the_handout_lists) {
  const auto handout = lab_text("handouts/4-verifier/README.md");
  for (const auto& fault : seeded_faults()) {
    EXPECT_THAT(std::string(handout), testing::HasSubstr(fmt::format("\n| {} | ", fault.promise)))
        << fault.name;
  }
}

}  // namespace
}  // namespace triptych::labs
