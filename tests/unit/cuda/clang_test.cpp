// The choice between several versions of clang on the PATH.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/kernels/clang.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/io/temporary_folder.h"

namespace triptych::kernels {
namespace {

namespace fs = std::filesystem;

class ClangTest : public testing::Test {
 protected:
  ClangTest() : before_(std::getenv("PATH")) { setenv("PATH", folder_.path().c_str(), 1); }
  ~ClangTest() override { setenv("PATH", before_.c_str(), 1); }

  /// A program that prints the version.
  void add(const std::string& name, const std::string& version) const {
    const auto file = folder_.path() / name;
    std::ofstream(file) << fmt::format("#!/bin/sh\necho {}\n", version);
    fs::permissions(file, fs::perms::owner_all);
  }

 private:
  TemporaryFolder folder_{"clang"};
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

}  // namespace
}  // namespace triptych::kernels
