// Folders of modules that replace ours, and the name of a machine that has one.
// SPDX-License-Identifier: Apache-2.0
#include "systolic/sim/own_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "systolic/driver/driver.h"
#include "systolic/sim/machine_library.h"
#include "systolic/sim/rtl_machine.h"

namespace triptych::mmu {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OwnModules : public testing::Test {
 protected:
  OwnModules() : folder_(fs::path(testing::TempDir()) / "own_modules_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    machine_.rtl = folder_.string();
  }
  ~OwnModules() override { fs::remove_all(folder_); }

  void write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::string complaint() const {
    try {
      array_of_own_modules(machine_);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  }

  fs::path folder_;
  MachineConfig machine_ = find_machine("mmu4");
};

TEST_F(OwnModules, take_the_place_of_the_file_of_their_name) {
  write("mmu_pe.sv", "// mine\nmodule mmu_pe; endmodule\nmodule helper; endmodule\n");
  write("notes.txt", "not read");
  const auto sources = rtl_sources(machine_), ours = rtl_sources(find_machine("mmu4"));
  ASSERT_EQ(sources.size(), ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(sources[i].name, ours[i].name);
    EXPECT_EQ(sources[i].own, ours[i].name == "mmu_pe.sv");
    EXPECT_EQ(sources[i].content == ours[i].content, !sources[i].own);
  }
  EXPECT_EQ(own_module_names(machine_), "mmu_pe.sv");
}

TEST_F(OwnModules, say_which_array_they_are_part_of) {
  write("mmu_queue.sv", module_text("mmu_queue.sv"));
  EXPECT_EQ(array_of_own_modules(machine_), std::nullopt);
  write("mmu_pe.sv", module_text("mmu_pe.sv"));
  EXPECT_EQ(array_of_own_modules(machine_), ArrayKind::Grid);
  machine_.array = ArrayKind::Fast;
  EXPECT_THAT(complaint(), HasSubstr("mmu_pe.sv is part of the grid array, but the machine is to "
                                     "have the fast one"));
  machine_.array = std::nullopt;
  write("mmu_array.sv", module_text("mmu_array.sv"));
  EXPECT_THAT(complaint(), HasSubstr("a machine has one of them"));
}

TEST_F(OwnModules, are_refused_where_the_machine_has_them_not) {
  write("mmu_output_stages.sv", module_text("mmu_output_stages.sv"));
  EXPECT_EQ(complaint(), "accepted") << "ours, unchanged";
  write("mmu_output_stages.sv", std::string(module_text("mmu_output_stages.sv")) + "// a change");
  EXPECT_THAT(complaint(), HasSubstr("whose pe_latency is 2 or 3; that of 'mmu4' is 1"));
  machine_.pe_latency = 2;
  EXPECT_EQ(complaint(), "accepted");
}

/// Text of the RTL between two places.
std::string_view between(std::string_view text, std::string_view begin, std::string_view end) {
  const std::size_t at = text.find(begin);
  EXPECT_NE(at, text.npos) << begin;
  return text.substr(at, text.find(end, at) - at);
}

TEST_F(OwnModules, of_one_array_are_those_that_the_rtl_chooses_between) {
  const auto array = [&](const std::string& module) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write(module + ".sv", module_text(module + ".sv"));
    return array_of_own_modules(machine_);
  };
  const std::string choice = "if (ArrayKind == 0) begin";
  int choices = 0;
  for (const std::string_view file : {"mmu_datapath.sv", "mmu_weights.sv"}) {
    std::string_view text = module_text(file);
    for (; text.find(choice) != text.npos; ++choices) {
      text.remove_prefix(text.find(choice));
      const std::string_view fast = between(text, "    mmu_", " #(").substr(4);
      text.remove_prefix(text.find("end else begin"));
      const std::string_view grid = between(text, "    mmu_", " #(").substr(4);
      EXPECT_EQ(array(std::string(fast)), ArrayKind::Fast) << fast;
      EXPECT_EQ(array(std::string(grid)), ArrayKind::Grid) << grid;
    }
  }
  EXPECT_EQ(choices, 4);
}

TEST_F(OwnModules, are_refused_by_name_where_they_are_none_of_ours) {
  EXPECT_THAT(complaint(), HasSubstr("has no module (mmu_*.sv)"));
  write("mmu_pee.sv", "module mmu_pee; endmodule");
  EXPECT_THAT(complaint(), testing::AllOf(HasSubstr("mmu_pee.sv\": no module of the machine"),
                                          HasSubstr("mmu_pe.sv")));
  fs::remove(folder_ / "mmu_pee.sv");
  write("mmu_pe.sv", "// module mmu_pe\nmodule my_pe; endmodule");
  EXPECT_THAT(complaint(), HasSubstr("declares my_pe, not mmu_pe"));
  write("mmu_pe.sv", "/* module mmu_pe; */");
  EXPECT_THAT(complaint(), HasSubstr("declares no module, not mmu_pe"));
  fs::remove(folder_ / "mmu_pe.sv");
  write("mmu_pe.v", module_text("mmu_pe.sv"));
  EXPECT_THAT(complaint(), HasSubstr("mmu_pe.v\": no module of the machine"));
  machine_.rtl += "/nowhere";
  EXPECT_THAT(complaint(), HasSubstr("nowhere\" is no folder"));
}

TEST_F(OwnModules, make_another_machine) {
  write("mmu_pe.sv", module_text("mmu_pe.sv"));
  const auto file = [](const MachineConfig& machine) {
    return library_file(machine, ArrayKind::Grid, Effort::Quick);
  };
  const fs::path same = file(machine_);
  EXPECT_NE(same, file(find_machine("mmu4")));
  EXPECT_EQ(rtl_state(machine_), RtlState::NotBuilt) << "although mmu4 is built in";
  write("mmu_pe.sv", std::string(module_text("mmu_pe.sv")) + "// a change");
  EXPECT_NE(same, file(machine_));
  EXPECT_TRUE(is_outdated(same, file(machine_)));
  EXPECT_FALSE(is_outdated(file(find_machine("mmu4")), file(machine_)));
  EXPECT_THAT([&] { open_machine(machine_, Simulation::Twin); },
              testing::ThrowsMessage<std::runtime_error>(
                  HasSubstr("the twin knows nothing of the modules in")));
}

TEST_F(OwnModules, are_named_behind_a_plus_or_in_the_file) {
  const MachineConfig named = find_machine("mmu4+" + folder_.string());
  EXPECT_EQ(named.rtl, folder_.string());
  EXPECT_EQ(named.name, "mmu4+" + folder_.string());
  write("mine.json", R"({"name": "mine", "rtl": "."})");
  const MachineConfig filed = find_machine((folder_ / "mine.json").string());
  EXPECT_TRUE(fs::equivalent(filed.rtl, folder_));
  EXPECT_EQ(parse_machine(to_json(filed)).rtl, filed.rtl);
  EXPECT_THROW(find_machine("mmu4+"), std::invalid_argument);
  EXPECT_THROW(find_machine("mmu3+" + folder_.string()), std::invalid_argument);
  EXPECT_THROW(find_machine((folder_ / "mine.json").string() + "+x"), std::invalid_argument);
}

/// Libraries are loaded from there: a stranger may own the current directory.
TEST(MachineLibrary, lies_in_an_absolute_folder) {
  const char* old = std::getenv("HOME");
  const std::string home = old == nullptr ? "" : old;
  unsetenv("XDG_CACHE_HOME");
  for (const char* relative : {"", ".", "relative"}) {
    setenv("HOME", relative, 1);
    const auto file = library_file(find_machine("mmu4"), ArrayKind::Fast, Effort::Full);
    EXPECT_TRUE(file.is_absolute()) << file;
  }
  setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace triptych::mmu
