// The cache of Verilator's compiled run time: it holds whole objects only.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/labs/kept_runtime.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

namespace triptych::labs {
namespace {

namespace fs = std::filesystem;

/// Commands that write `content` into each object, or that fail at the last one.
ModelCommands commands_that_write(const std::string& content, bool fail = false) {
  const std::string write = "for object; do echo " + content + " > model/$object; done";
  return {{"sh", "-c", "mkdir model"}, {"sh", "-c", write + (fail ? "; false" : ""), "make"}, {}};
}

class VerilatorRuntime : public testing::Test {
 protected:
  VerilatorRuntime() { setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }
  ~VerilatorRuntime() override { unsetenv("XDG_CACHE_HOME"); }

  fs::path folder() const { return cache_.path() / "triptych/labs"; }

  /// The objects that a bench has then, each with a space after it.
  static std::string objects(const ModelCommands& commands) {
    Bench bench;
    put_verilator_runtime(bench, commands);
    std::string text;
    for (const char* name : {"model/verilated.o", "model/verilated_threads.o"}) {
      if (!fs::exists(bench.folder() / name)) return "none";
      text += bench.text(name);
    }
    return text;
  }

 private:
  TemporaryFolder cache_{"kept-runtime"};
};

TEST_F(VerilatorRuntime, is_compiled_once) {
  EXPECT_EQ(objects(commands_that_write("first")), "first\nfirst\n");
  std::set<std::string> kept;
  for (const auto& entry : fs::directory_iterator(folder())) {
    const auto name = entry.path().filename().string();
    kept.insert(name.substr(0, name.find('-')));
  }
  EXPECT_EQ(kept, (std::set<std::string>{"verilated", "verilated_threads"}));
  EXPECT_EQ(objects(commands_that_write("second")), "first\nfirst\n");
}

TEST_F(VerilatorRuntime, is_compiled_again_where_the_cache_has_a_damaged_object) {
  for (const char* damage : {"\x7f"
                             "ELF, cut short",
                             ""}) {
    objects(commands_that_write("first"));
    std::ofstream(fs::directory_iterator(folder())->path()) << damage;
    EXPECT_EQ(objects(commands_that_write("second")), "second\nsecond\n");
    fs::remove_all(folder());
  }
}

TEST_F(VerilatorRuntime, is_left_to_the_makefile_where_its_compilation_fails) {
  EXPECT_EQ(objects(commands_that_write("half", true)), "none");
  EXPECT_FALSE(fs::exists(folder()));
  EXPECT_EQ(objects({{"false"}, {"true"}, {}}), "none");
}

TEST_F(VerilatorRuntime, is_left_to_the_makefile_where_the_user_has_no_cache) {
  std::ofstream(folder().parent_path()) << "no folder";
  EXPECT_EQ(objects(commands_that_write("first")), "none");
}

}  // namespace
}  // namespace triptych::labs
