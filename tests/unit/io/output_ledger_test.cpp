// SPDX-License-Identifier: Apache-2.0
#include "core/io/output_ledger.h"

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

TEST(OutputLedger, replaces_what_it_wrote_and_nothing_else) {
  const test::TemporaryFolder folder;
  OutputLedger own(folder / "new");
  for (const auto* content : {"one", "two", "one"}) own.write("deep/file", content);
  EXPECT_EQ(test::get_file(folder / "new/deep/file"), "one");
  OutputLedger again(folder / "new");
  EXPECT_NO_THROW(again.require("deep/file"));
  EXPECT_NO_THROW(again.require("deep/absent"));
  test::put_file(folder / "new/deep/file", "changed");
  EXPECT_THROW(again.write("deep/file", "three"), InvalidArgument);
  EXPECT_EQ(test::get_file(folder / "new/deep/file"), "changed");
}

TEST(OutputLedger, an_equal_file_of_another_name_a_link_or_a_folder_is_not_its_own) {
  const test::TemporaryFolder folder;
  OutputLedger own(folder.path());
  own.write("a", "content");
  test::put_file(folder / "b", "content");
  fs::create_symlink("a", folder / "c");
  fs::create_symlink("nowhere", folder / "d");
  fs::create_directory(folder / "e");
  for (const auto* name : {"b", "c", "d", "e"})
    EXPECT_THROW(own.require(name), InvalidArgument) << name;
  EXPECT_THROW(own.require_all_of("", [](const std::string&) { return false; }), InvalidArgument);
}

TEST(OutputLedger, a_file_whose_line_was_cut_is_not_its_own) {
  const test::TemporaryFolder folder;
  write_own_file(folder / "a", "content");
  EXPECT_NO_THROW(require_own_file(folder / "a"));
  fs::resize_file(folder / ".triptych", 60);
  EXPECT_THROW(require_own_file(folder / "a"), InvalidArgument);
}

TEST(OutputLedger, what_the_user_lets_go_is_replaced_and_told_of_once) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "drawn") << "by hand";
  std::filesystem::create_directory(folder / "deep");
  std::vector<std::filesystem::path> told;
  allow_overwriting([&](const auto& path) { told.push_back(path); });
  OutputLedger own(folder.path());
  EXPECT_NO_THROW(own.require("drawn"));
  EXPECT_THROW(own.require("deep"), InvalidArgument) << "a folder";
  own.write("drawn", "anew");
  own.write("other", "new");
  allow_overwriting({});
  EXPECT_THAT(told, ::testing::ElementsAre(folder / "drawn"));
  EXPECT_EQ(read_file(folder / "drawn"), "anew");
  EXPECT_NO_THROW(own.require("drawn"));
}

TEST(OutputLedger, devices_and_pipes_are_never_replaced) {
  const test::TemporaryFolder folder;
  const auto pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  allow_overwriting([](const auto&) {});
  EXPECT_THROW(write_own_file(pipe, "anew"), InvalidArgument);
  allow_overwriting({});
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_FALSE(fs::exists(folder / ".triptych"));
}

TEST(OutputLedger, an_input_stays_under_each_of_its_names) {
  const test::TemporaryFolder folder;
  OutputLedger own(folder.path());
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
  EXPECT_THROW(own.write("read", "new"), InvalidArgument) << "it has a second name";
  fs::remove(folder / "other");
  EXPECT_NO_THROW(own.write("read", "new")) << "forgotten";
}

TEST(OutputLedger, a_place_that_is_kept_takes_no_file) {
  const test::TemporaryFolder folder;
  write_own_file(folder / "kept", "content");
  keep_places([](const fs::path& path) {
    return std::string(path.filename() == "kept" ? "the run in \"r\"" : "");
  });
  EXPECT_THROW(require_own_file(folder / "kept"), InvalidArgument);
  EXPECT_THROW(write_own_file(folder / "kept", "new"), InvalidArgument);
  EXPECT_NO_THROW(write_own_file(folder / "other", "new"));
  EXPECT_NO_THROW(OutputLedger(folder.path()).require("kept")) << "its owner writes it";
  keep_places({});
  EXPECT_EQ(test::get_file(folder / "kept"), "content");
  EXPECT_NO_THROW(require_own_file(folder / "kept"));
}

TEST(OutputLedger, only_unchanged_files_of_its_own_are_removed) {
  const test::TemporaryFolder folder;
  OutputLedger own(folder.path());
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

TEST(OutputLedger, all_files_of_a_folder_are_its_own_at_every_depth) {
  const test::TemporaryFolder folder;
  OutputLedger own(folder.path());
  for (const auto* name : {"a/mine", "a/deep/mine"}) own.write(name, name);
  const auto none = [](const std::string&) { return false; };
  EXPECT_NO_THROW(own.require_all_of("a", none));
  EXPECT_NO_THROW(own.require_all_of("absent", none));
  test::put_file(folder / "a/.hidden", "by hand");
  EXPECT_NO_THROW(own.require_all_of("a", none)) << "hidden files are replaced by nobody";
  test::put_file(folder / "a/deep/foreign", "by hand");
  EXPECT_THROW(own.require_all_of("a", none), InvalidArgument);
  EXPECT_NO_THROW(
      own.require_all_of("a", [](const std::string& name) { return name == "foreign"; }));
}

/// A victim beside the folder "in", which holds the same text and lists it under hostile names.
class HostileList : public ::testing::Test {
 protected:
  HostileList() {
    fs::create_directories(folder / "in/worst/a");
    test::put_file(folder / "victim", "content");
    test::put_file(folder / "in/worst/mine", "content");
  }
  void put_list(const std::string& line) { test::put_file(folder / "in/.triptych", line + "\n"); }
  std::string line(const std::string& name) { return kHash + "  " + name; }

  const std::string kHash = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73";
  test::TemporaryFolder folder;
};

TEST_F(HostileList, names_that_lead_out_are_refused_before_anything_is_touched) {
  const auto absolute = (folder / "victim").string();
  for (const auto& name :
       {std::string("../victim"), std::string("worst/a/../../../victim"), absolute,
        std::string("worst/./mine"), std::string("worst//mine"), std::string("worst/a/../mine")}) {
    put_list(line("worst/mine") + "\n" + line(name));
    EXPECT_THROW(OutputLedger(folder / "in").remove_own_of("worst"), InvalidArgument) << name;
    EXPECT_THROW(write_own_file(folder / "in/new", "x"), InvalidArgument) << name;
  }
  EXPECT_EQ(test::get_file(folder / "victim"), "content");
  EXPECT_TRUE(fs::exists(folder / "in/worst/mine"));
  EXPECT_FALSE(fs::exists(folder / "in/new"));
}

TEST_F(HostileList, links_and_second_names_are_not_followed) {
  fs::create_directory(folder / "far");
  test::put_file(folder / "far/victim", "content");
  fs::create_directory_symlink(folder / "far", folder / "in/worst/linked");
  fs::create_symlink(folder / "victim", folder / "in/worst/link");
  fs::create_hard_link(folder / "victim", folder / "in/worst/hard");
  put_list(line("worst/linked/victim") + "\n" + line("worst/link") + "\n" + line("worst/hard"));
  OutputLedger own(folder / "in");
  for (const auto* name : {"worst/linked/victim", "worst/link", "worst/hard"}) {
    EXPECT_THROW(own.write(name, "new"), InvalidArgument) << name;
    EXPECT_THROW(own.remove(name), InvalidArgument) << name;
  }
  EXPECT_THROW(own.write("worst/linked/new", "new"), InvalidArgument);
  own.remove_own_of("worst");
  EXPECT_EQ(test::get_file(folder / "far/victim"), "content");
  EXPECT_EQ(test::get_file(folder / "victim"), "content");
  EXPECT_TRUE(fs::exists(folder / "in/worst/hard"));
  EXPECT_TRUE(fs::is_symlink(folder / "in/worst/link"));
  EXPECT_EQ(test::files_in(folder / "far"), 1);
  fs::create_directory_symlink(folder / "far", folder / "in/linked");
  EXPECT_THROW(own.require_all_of("linked", [](const std::string&) { return false; }),
               InvalidArgument);
}

TEST_F(HostileList, a_list_that_is_not_ours_is_refused_and_stays) {
  const auto list = folder / "in/.triptych";
  for (const std::string text : {"my notes, not a list", "# my notes", "ed70  name", "../victim"}) {
    put_list(text);
    EXPECT_THROW(write_own_file(folder / "in/new", "x"), InvalidArgument) << text;
    EXPECT_EQ(test::get_file(list), text + "\n");
  }
  put_list(line("worst/mine"));
  fs::create_hard_link(list, folder / "second");
  EXPECT_THROW(write_own_file(folder / "in/new", "x"), InvalidArgument) << "a hard link";
  fs::remove(list);
  fs::create_symlink(folder / "second", list);
  EXPECT_THROW(write_own_file(folder / "in/new", "x"), InvalidArgument) << "a link";
  EXPECT_EQ(test::get_file(folder / "second"), line("worst/mine") + "\n");
  fs::remove(list);
  fs::create_symlink(folder / "absent", list);
  EXPECT_THROW(write_own_file(folder / "in/new", "x"), InvalidArgument) << "a dangling link";
  EXPECT_FALSE(fs::exists(folder / "absent"));
  fs::remove(list);
  fs::create_directory(list);
  EXPECT_THROW(write_own_file(folder / "in/new", "x"), InvalidArgument) << "a folder";
  EXPECT_FALSE(fs::exists(folder / "in/new"));
}

TEST(OutputLedger, two_writers_of_one_folder_know_each_others_files) {
  const test::TemporaryFolder folder;
  OutputLedger one(folder.path()), other(folder.path());
  one.write("a", "of one");
  EXPECT_NO_THROW(other.require("a"));
  other.write("a", "of the other");
  one.write("a", "of one again");
  EXPECT_EQ(test::get_file(folder / "a"), "of one again");
}

TEST(OutputLedger, a_list_that_was_cut_is_continued_on_a_line_of_its_own) {
  const test::TemporaryFolder folder;
  for (const std::uintmax_t size : {10, 64, 65, 66}) {
    write_own_file(folder / "a", "content");
    fs::resize_file(folder / ".triptych", size);
    write_own_file(folder / "b", "content");
    EXPECT_NO_THROW(require_own_file(folder / "b")) << size;
    EXPECT_THROW(require_own_file(folder / "a"), InvalidArgument) << size;
    for (const auto* name : {"a", "b", ".triptych"}) fs::remove(folder / name);
  }
}

TEST(OutputLedger, names_with_line_breaks_and_backslashes_are_escaped) {
  const test::TemporaryFolder folder;
  const std::string name = "two\nlines\r and \\n";
  OutputLedger(folder.path()).write(name, "content");
  EXPECT_NO_THROW(OutputLedger(folder.path()).require(name));
  EXPECT_TRUE(test::get_file(folder / ".triptych").starts_with('\\'));
  EXPECT_NO_THROW(OutputLedger(folder.path()).write("other", "content"));
}

TEST(OutputLedger, runs_that_trained_on_the_files_are_noted_once) {
  const test::TemporaryFolder folder;
  OutputLedger own(folder.path());
  own.write("a", "content");
  for (const auto* run : {"/runs/one", "/runs/t\nwo", "/runs/one"}) own.note_run(run);
  const OutputLedger again(folder.path());
  EXPECT_THAT(again.runs(), ::testing::ElementsAre("/runs/one", "/runs/t\nwo"));
  EXPECT_NO_THROW(again.require("a"));
}

}  // namespace
}  // namespace triptych
