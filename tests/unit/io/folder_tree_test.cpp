// Trees deeper than any path, and files of a directory that somebody else filled.
// SPDX-License-Identifier: Apache-2.0
#include "core/io/folder_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/error.h"
#include "core/base/folder.h"
#include "core/io/beneath.h"
#include "core/io/temporary_folder.h"
#include "tests/unit/io/test_files.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;

/// 30 directories with names of 200 letters, a file in the last one.
void make_deep(const fs::path& folder) {
  const std::string name(200, 'd');
  int at = open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(mkdirat(at, name.c_str(), 0700), 0);
    const int below = openat(at, name.c_str(), O_RDONLY | O_DIRECTORY);
    close(at);
    at = below;
  }
  close(openat(at, "file", O_WRONLY | O_CREAT, 0600));
  close(at);
}

TEST(FolderTree, a_deep_tree_is_visited_and_removed) {
  const TemporaryFolder outer("tree");
  const auto root = outer.path() / "root";
  fs::create_directory(root);
  make_deep(root);
  int directories = 0, files = 0;
  EXPECT_TRUE(visit_tree(root, [&](const TreeEntry& entry) {
    (S_ISDIR(entry.status.st_mode) ? directories : files) += 1;
  }));
  EXPECT_EQ(directories, 30);
  EXPECT_EQ(files, 1);
  remove_tree(root);
  EXPECT_FALSE(fs::exists(root));
}

TEST(FolderTree, links_are_removed_and_not_followed) {
  const TemporaryFolder outer("tree");
  const auto root = outer.path() / "root", kept = outer.path() / "kept";
  fs::create_directories(root / "below/closed");
  fs::create_directory(kept);
  std::ofstream(kept / "file") << "x";
  fs::create_directory_symlink(kept, root / "below/link");
  fs::permissions(root / "below/closed", fs::perms::none);
  int entries = 0;
  visit_tree(root, [&](const TreeEntry&) { ++entries; });
  EXPECT_EQ(entries, 3);
  remove_tree(root);
  EXPECT_FALSE(fs::exists(root));
  EXPECT_TRUE(fs::exists(kept / "file"));
}

TEST(FolderTree, no_folder_is_an_error) {
  EXPECT_THROW(visit_tree("/nowhere/at/all", [](const TreeEntry&) {}), IoError);
}

TEST(OpenBeneath, reads_regular_files_alone) {
  const TemporaryFolder folder("beneath"), outside("outside");
  std::ofstream(outside.path() / "secret") << "secret";
  std::ofstream(folder.path() / "file") << "text";
  fs::create_directory(folder.path() / "below");
  fs::create_symlink(outside.path() / "secret", folder.path() / "soft");
  fs::create_directory_symlink(outside.path(), folder.path() / "door");
  fs::create_hard_link(outside.path() / "secret", folder.path() / "hard");
  mkfifo((folder.path() / "pipe").c_str(), 0600);
  EXPECT_EQ(read_beneath(folder.path(), "file", 4), "text");
  EXPECT_TRUE(is_file_beneath(folder.path(), "file"));
  EXPECT_FALSE(is_file_beneath(folder.path(), "none"));
  EXPECT_THROW(read_beneath(folder.path(), "file", 3), IoError);
  EXPECT_THROW(read_beneath(folder.path(), "none", 9), IoError);
  for (const char* name : {"soft", "door/secret", "hard", "pipe", "below", "../x", "/etc/passwd"}) {
    EXPECT_THROW(read_beneath(folder.path(), name, 1 << 20), IoError) << name;
    EXPECT_THROW(is_file_beneath(folder.path(), name), IoError);
  }
}

TEST(Folder, that_cannot_be_made_or_read_is_reported) {
  const test::TemporaryFolder folder;
  make_folder(folder / "a/b");
  make_folder(folder / "a/b");
  test::put_file(folder / "a/file", "content");
  EXPECT_THROW(make_folder(folder / "a/file"), IoError);
  EXPECT_THROW(make_folder(folder / "a/file/below"), IoError);
  std::error_code error;
  EXPECT_EQ(names_in(folder / "a", error), (std::vector<std::string>{"b", "file"}));
  EXPECT_FALSE(error);
  EXPECT_TRUE(names_in(folder / "absent", error).empty());
  EXPECT_TRUE(error);
}

}  // namespace
}  // namespace triptych
