// SPDX-License-Identifier: Apache-2.0
#include "core/io/own_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "tests/unit/io/test_files.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;

TEST(OwnFiles, replaces_what_it_wrote_and_nothing_else) {
  const test::TemporaryFolder folder;
  OwnFiles own(folder / "new");
  EXPECT_FALSE(own.listed());
  for (const auto* content : {"one", "two", "one"}) own.write("deep/file", content);
  EXPECT_EQ(test::get_file(folder / "new/deep/file"), "one");
  OwnFiles again(folder / "new");
  EXPECT_TRUE(again.listed());
  EXPECT_NO_THROW(again.require("deep/file"));
  EXPECT_NO_THROW(again.require("deep/absent"));
  test::put_file(folder / "new/deep/file", "changed");
  EXPECT_THROW(again.write("deep/file", "three"), InvalidArgument);
  EXPECT_EQ(test::get_file(folder / "new/deep/file"), "changed");
}

TEST(OwnFiles, an_equal_file_of_another_name_a_link_or_a_folder_is_not_its_own) {
  const test::TemporaryFolder folder;
  OwnFiles own(folder.path());
  own.write("a", "content");
  test::put_file(folder / "b", "content");
  fs::create_symlink("a", folder / "c");
  fs::create_symlink("nowhere", folder / "d");
  fs::create_directory(folder / "e");
  for (const auto* name : {"b", "c", "d", "e"})
    EXPECT_THROW(own.require(name), InvalidArgument) << name;
  EXPECT_THROW(own.require_all_of("", [](const std::string&) { return false; }), InvalidArgument);
}

TEST(OwnFiles, a_file_whose_line_was_cut_is_not_its_own) {
  const test::TemporaryFolder folder;
  write_own_file(folder / "a", "content");
  EXPECT_NO_THROW(require_own_file(folder / "a"));
  fs::resize_file(folder / ".triptych", 60);
  EXPECT_THROW(require_own_file(folder / "a"), InvalidArgument);
}

TEST(OwnFiles, adopts_what_is_there) {
  const test::TemporaryFolder folder;
  test::put_file(folder / "old", "content");
  OwnFiles own(folder.path());
  own.adopt("old");
  own.adopt("absent");
  EXPECT_NO_THROW(OwnFiles(folder.path()).require("old"));
}

TEST(OwnFiles, what_the_user_lets_go_is_replaced_and_told_of_once) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "drawn") << "by hand";
  std::filesystem::create_directory(folder / "deep");
  std::vector<std::filesystem::path> told;
  allow_overwriting([&](const auto& path) { told.push_back(path); });
  OwnFiles own(folder.path());
  EXPECT_NO_THROW(own.require("drawn"));
  EXPECT_THROW(own.require("deep"), InvalidArgument) << "a folder";
  own.write("drawn", "anew");
  own.write("other", "new");
  allow_overwriting({});
  EXPECT_THAT(told, ::testing::ElementsAre(folder / "drawn"));
  EXPECT_EQ(read_file(folder / "drawn"), "anew");
  EXPECT_NO_THROW(own.require("drawn"));
}

TEST(OwnFiles, devices_and_pipes_are_never_replaced) {
  const test::TemporaryFolder folder;
  const auto pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  allow_overwriting([](const auto&) {});
  EXPECT_THROW(write_own_file(pipe, "anew"), InvalidArgument);
  allow_overwriting({});
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_FALSE(OwnFiles(folder.path()).listed());
}

TEST(OwnFiles, an_input_stays_under_each_of_its_names) {
  const test::TemporaryFolder folder;
  OwnFiles own(folder.path());
  own.write("read", "content");
  fs::create_hard_link(folder / "read", folder / "other");
  fs::create_symlink("read", folder / "link");
  keep_input(folder / "read");
  keep_input(folder / "absent");
  keep_input(folder.path());
  allow_overwriting([](const auto&) {});
  for (const auto* name : {"read", "other", "link"}) {
    EXPECT_THROW(own.write(name, "new"), InvalidArgument) << name;
    EXPECT_THROW(own.remove(name), InvalidArgument) << name;
  }
  own.remove_own_of("");
  allow_overwriting({});
  forget_inputs();
  EXPECT_EQ(test::get_file(folder / "read"), "content");
  EXPECT_NO_THROW(own.write("absent", "new"));
  EXPECT_NO_THROW(own.write("read", "new")) << "forgotten";
}

TEST(OwnFiles, a_place_that_is_kept_takes_no_file) {
  const test::TemporaryFolder folder;
  write_own_file(folder / "kept", "content");
  keep_places([](const fs::path& path) {
    return std::string(path.filename() == "kept" ? "the run in \"r\"" : "");
  });
  EXPECT_THROW(require_own_file(folder / "kept"), InvalidArgument);
  EXPECT_THROW(write_own_file(folder / "kept", "new"), InvalidArgument);
  EXPECT_NO_THROW(write_own_file(folder / "other", "new"));
  EXPECT_NO_THROW(OwnFiles(folder.path()).require("kept")) << "its owner writes it";
  keep_places({});
  EXPECT_EQ(test::get_file(folder / "kept"), "content");
  EXPECT_NO_THROW(require_own_file(folder / "kept"));
}

TEST(OwnFiles, only_unchanged_files_of_its_own_are_removed) {
  const test::TemporaryFolder folder;
  OwnFiles own(folder.path());
  for (const auto* name : {"a/kept", "a/changed", "a/gone", "ab"}) own.write(name, name);
  std::ofstream(folder / "a/changed") << "by hand";
  std::ofstream(folder / "a/drawn") << "by hand";
  std::filesystem::rename(folder / "a/kept", folder / "a/renamed");
  own.remove_own_of("a");
  std::set<std::string> left;
  for (const auto& item : std::filesystem::directory_iterator(folder / "a"))
    left.insert(item.path().filename().string());
  EXPECT_THAT(left, ::testing::UnorderedElementsAre("changed", "drawn", "renamed"));
  EXPECT_TRUE(std::filesystem::exists(folder / "ab"));
}

}  // namespace
}  // namespace triptych
