// SPDX-License-Identifier: Apache-2.0
#include "core/io/folder_lock.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "core/base/error.h"
#include "tests/unit/io/test_files.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;

TEST(FolderLock, one_at_a_time_holds_a_folder_under_each_of_its_names) {
  const test::TemporaryFolder folder;
  fs::create_directory_symlink("real", folder / "link");
  {
    const FolderLock lock(folder / "real");
    for (const auto* name : {"real", "link"}) {
      try {
        const FolderLock second(folder / name);
        ADD_FAILURE() << name;
      } catch (const IoError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("in use by another command"));
      }
    }
    test::put_file(folder / "real/file", "content");
  }
  EXPECT_NO_THROW(FolderLock(folder / "real"));
  EXPECT_TRUE(fs::exists(folder / "real/file"));
}

TEST(FolderLock, removes_the_empty_folders_that_it_made) {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "there");
  { const FolderLock lock(folder / "there/new/er"); }
  EXPECT_EQ(test::files_in(folder / "there"), 0);
  { const FolderLock lock(folder / "there"); }
  EXPECT_TRUE(fs::exists(folder / "there"));
}

}  // namespace
}  // namespace triptych
