// The choice between several versions of clang on the PATH.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/clang.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "core/base/error.h"
#include "core/io/temporary_folder.h"
#include "experiments/kernels/program_source.h"

namespace triptych::kernels {
namespace {

namespace fs = std::filesystem;

class ClangTest : public testing::Test {
 protected:
  ClangTest() : before_(std::getenv("PATH")) { setenv("PATH", folder_.path().c_str(), 1); }
  ~ClangTest() override { setenv("PATH", before_.c_str(), 1); }

  /// A program that prints the version.
  void add(const std::string& name, const std::string& version) const {
    add_script(name, "echo " + version);
  }
  /// A program of these commands, which find those of the system.
  void add_script(const std::string& name, const std::string& commands) const {
    const auto file = folder_.path() / name;
    std::ofstream(file) << "#!/bin/sh\nPATH=/usr/bin:/bin\n" << commands << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }

  TemporaryFolder folder_{"clang"};

 private:
  std::string before_;
};

TEST_F(ClangTest, the_name_without_a_number_has_priority) {
  EXPECT_THROW(find_clang("programs"), DeviceError);
  add("clang++-16", "16.0.6");
  add("clang++-23", "23.0.0");
  EXPECT_EQ(find_clang("programs"), "clang++-23");
  add("clang++", "14.0.6");
  EXPECT_EQ(find_clang("programs"), "clang++");
}

TEST_F(ClangTest, the_newest_tested_version_is_the_second_choice) {
  add("clang++", "14.0.6");
  EXPECT_EQ(newer_clang("clang++"), std::nullopt);
  add("clang++-14", "14.0.6");
  EXPECT_EQ(newer_clang("clang++"), std::nullopt);
  add("clang++-16", "16.0.6");
  add("clang++-19", "19.1.7");
  add("clang++-23", "23.0.0");
  EXPECT_EQ(newer_clang("clang++"), "clang++-19");
  add("clang++", "19.1.7");
  EXPECT_EQ(newer_clang("clang++"), std::nullopt);
  EXPECT_EQ(newer_clang("clang++-16"), "clang++-19");
}

TEST_F(ClangTest, a_compiler_that_tells_no_version_has_no_newer_one) {
  add("clang++-19", "19.1.7");
  EXPECT_EQ(newer_clang("clang++"), std::nullopt);
}

/// Compilers that only preprocess, and log their calls.
class Refusals : public ClangTest {
 protected:
  Refusals() {
    add_script("g++", "exit 0");
    add_script("clang++",
               "case \"$*\" in *-dumpversion*) echo 14.0.6;; *) echo old >&2; exit 1; esac");
    add_script("clang++-19", fmt::format("case \"$*\" in *-E*) grep -q missing.h {0}; [ $? = 1 ];; "
                                         "*) touch {1}; exit 1; esac",
                                         source().string(), called().string()));
  }
  fs::path source() const { return folder_.path() / "my.cu"; }
  fs::path called() const { return folder_.path() / "called"; }

  /// The words of the error, and whether the newer version compiled.
  std::pair<std::string, bool> compile(const char* text) const {
    std::ofstream(source()) << text;
    ProgramSource program;
    program.files = {source()};
    try {
      compile_program(program, folder_.path() / "built");
    } catch (const InvalidArgument& refusal) {
      return {refusal.what(), fs::exists(called())};
    }
    return {};
  }
};

TEST_F(Refusals, a_newer_version_compiles_only_what_it_can_preprocess) {
  const auto missing = compile("#include \"missing.h\"\nint main() {}\n");
  EXPECT_THAT(missing.first, testing::HasSubstr("old"));
  EXPECT_FALSE(missing.second);
  const auto refused = compile("int main() {}\n");
  EXPECT_THAT(refused.first, testing::HasSubstr("old"));
  EXPECT_TRUE(refused.second);
}

}  // namespace
}  // namespace triptych::kernels
