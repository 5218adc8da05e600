// Programs on the PATH: the first file of the name that may be run.
// SPDX-License-Identifier: Apache-2.0
#include "core/io/find_program.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/unit/io/test_files.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;

class FindProgram : public testing::Test {
 protected:
  void SetUp() override {
    old_path_ = std::getenv("PATH");
    for (const char* name : {"a", "b"}) fs::create_directory(folder_ / name);
    setenv("PATH", search_path().c_str(), 1);
  }
  void TearDown() override { setenv("PATH", old_path_.c_str(), 1); }

  std::string search_path() const {
    return (folder_ / "a").string() + ":" + (folder_ / "b").string();
  }
  fs::path put(const std::string& name, bool runs) {
    test::put_file(folder_ / name, "");
    if (runs) fs::permissions(folder_ / name, fs::perms::owner_all);
    return folder_ / name;
  }

  test::TemporaryFolder folder_;
  std::string old_path_;
};

TEST_F(FindProgram, takes_the_first_that_may_be_run) {
  put("a/tool", false);
  const auto file = put("b/tool", true);
  EXPECT_EQ(find_program("tool"), file);
  put("a/tool", true);
  EXPECT_EQ(find_program("tool"), folder_ / "a/tool");
}

TEST_F(FindProgram, takes_no_folder_and_nothing_that_is_not_there) {
  fs::create_directory(folder_ / "a/tool");
  EXPECT_EQ(find_program("tool"), std::nullopt);
  EXPECT_EQ(find_program("other"), std::nullopt);
}

TEST_F(FindProgram, passes_over_the_current_directory) {
  const auto here = fs::current_path();
  put("a/tool", true);
  fs::current_path(folder_ / "a");
  for (const char* relative : {":/nowhere", "/nowhere::/nowhere", ".", "../a:/nowhere", ""}) {
    setenv("PATH", relative, 1);
    EXPECT_EQ(find_program("tool"), std::nullopt) << relative;
  }
  fs::current_path(here);
}

TEST_F(FindProgram, children_get_the_absolute_elements_alone) {
  setenv("PATH", ":/usr/bin:.:bin:/bin:", 1);
  drop_relative_path_elements();
  EXPECT_STREQ(std::getenv("PATH"), "/usr/bin:/bin");
  for (const char* relative : {"", ".", ":"}) {
    setenv("PATH", relative, 1);
    drop_relative_path_elements();
    EXPECT_EQ(std::getenv("PATH"), nullptr) << relative;
    drop_relative_path_elements();
    EXPECT_EQ(std::getenv("PATH"), nullptr);
  }
}

}  // namespace
}  // namespace triptych
