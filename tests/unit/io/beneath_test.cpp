// SPDX-License-Identifier: Apache-2.0
#include "core/io/beneath.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "tests/unit/io/test_files.h"

namespace triptych::internal {
namespace {

namespace fs = std::filesystem;

/// A folder "in" next to a folder "out", each with a file.
class BeneathTest : public ::testing::Test {
 protected:
  BeneathTest() {
    fs::create_directories(folder / "in/deep");
    fs::create_directory(folder / "out");
    test::put_file(folder / "in/deep/file", "inside");
    test::put_file(folder / "out/file", "outside");
    fs::create_directory_symlink("../out", folder / "in/up");
    fs::create_directory_symlink("deep", folder / "in/same");
    fs::create_symlink("deep/file", folder / "in/link");
    in = open_folder(folder / "in");
  }

  /// 0, or errno.
  int error_of(const fs::path& name) {
    return open_beneath(in.get(), name, O_RDONLY).get() < 0 ? errno : 0;
  }

  test::TemporaryFolder folder;
  FileDescriptor in;
};

TEST_F(BeneathTest, opens_what_lies_within) {
  for (const auto* name : {"deep/file", "./deep/./file", "deep//file", "deep", "deep/"})
    EXPECT_EQ(error_of(name), 0) << name;
  EXPECT_EQ(error_of("absent"), ENOENT);
  EXPECT_EQ(error_of("deep/absent/file"), ENOENT);
}

TEST_F(BeneathTest, refuses_names_that_lead_out) {
  const auto absolute = (folder / "in/deep/file").string();
  for (const auto& name : {std::string("../out/file"), std::string("deep/../../out/file"),
                           std::string("deep/../deep/file"), absolute, std::string(),
                           std::string("."), std::string("deep/file\0x", 11)}) {
    EXPECT_EQ(error_of(name), EXDEV) << name;
    EXPECT_EQ(unlink_beneath(in.get(), name), -1) << name;
    EXPECT_FALSE(status_beneath(in.get(), name)) << name;
  }
  EXPECT_EQ(test::get_file(folder / "out/file"), "outside");
}

TEST_F(BeneathTest, follows_no_link) {
  for (const auto* name : {"up/file", "up", "same/file", "link"})
    EXPECT_EQ(error_of(name), ELOOP) << name;
  EXPECT_EQ(unlink_beneath(in.get(), "up/file"), -1);
  EXPECT_EQ(make_folder_beneath(in.get(), "up/new").get(), -1);
  EXPECT_EQ(errno, ELOOP);
  EXPECT_FALSE(fs::exists(folder / "out/new"));
  ASSERT_TRUE(status_beneath(in.get(), "link"));
  EXPECT_TRUE(S_ISLNK(status_beneath(in.get(), "link")->st_mode));
}

TEST_F(BeneathTest, makes_folders_and_removes_files) {
  EXPECT_GE(make_folder_beneath(in.get(), "new/er").get(), 0);
  EXPECT_TRUE(fs::is_directory(folder / "in/new/er"));
  EXPECT_GE(make_folder_beneath(in.get(), "").get(), 0);
  EXPECT_EQ(make_folder_beneath(in.get(), "../new").get(), -1);
  EXPECT_EQ(unlink_beneath(in.get(), "deep/file"), 0);
  EXPECT_FALSE(fs::exists(folder / "in/deep/file"));
}

}  // namespace
}  // namespace triptych::internal
