// SPDX-License-Identifier: Apache-2.0
#include "core/io/temporary_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/io/atomic_file.h"
#include "tests/unit/io/test_files.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::vector<std::string> names_of(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& item : fs::directory_iterator(folder)) names.push_back(item.path().filename());
  std::ranges::sort(names);
  return names;
}

/// TMPDIR is a folder of the test's own.
class TemporaryFolderTest : public ::testing::Test {
 protected:
  TemporaryFolderTest() {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", folder.path().c_str(), 1);
  }
  ~TemporaryFolderTest() override {
    before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR");
  }

  /// A process makes a temporary folder, puts something into it and is killed.
  void make_and_be_killed(const std::function<void(const fs::path&)>& fill) {
    const auto status = test::status_of(test::in_child([&] {
      const TemporaryFolder left("left");
      fill(left.path());
      ::raise(SIGKILL);
    }));
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_THAT(names_of(folder.path()), Contains(StartsWith("triptych-left.")));
  }

  test::TemporaryFolder folder;

 private:
  std::optional<std::string> before_;
};

TEST_F(TemporaryFolderTest, goes_with_its_content) {
  fs::path path;
  {
    const TemporaryFolder temporary("a");
    path = temporary.path();
    fs::create_directories(path / "deep/er");
    test::put_file(path / "deep/er/file", "x");
    fs::create_symlink("nowhere", path / "link");
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_THAT(names_of(folder.path()), IsEmpty());
}

TEST_F(TemporaryFolderTest, one_that_a_killed_process_left_goes_when_the_next_is_made) {
  make_and_be_killed([](const fs::path& path) {
    fs::create_directories(path / "deep/er");
    test::put_file(path / "deep/er/file", "x");
  });
  { const TemporaryFolder next("other"); }
  EXPECT_THAT(names_of(folder.path()), IsEmpty());
}

TEST_F(TemporaryFolderTest, one_whose_owner_lives_stays) {
  const TemporaryFolder alive("alive");
  test::put_file(alive.path() / "file", "x");
  const auto status = test::status_of(test::in_child([] { const TemporaryFolder next("next"); }));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(test::get_file(alive.path() / "file"), "x");
}

TEST_F(TemporaryFolderTest, folders_of_others_stay) {
  test::put_file(folder / "victim", "x");
  for (const auto* name :
       {"triptych-results.backup", "triptych-kernel", "triptych-run-abcdef", "other.abcdef"}) {
    fs::create_directory(folder / name);
    test::put_file(folder / name / "mine", "x");
  }
  fs::create_directory(folder / "triptych-results.backup/.triptych-file");
  test::put_file(folder / "triptych-a.FILEFI", "a file");
  fs::create_directory_symlink("triptych-results.backup", folder / "triptych-a.LINKLI");
  const auto before = names_of(folder.path());
  { const TemporaryFolder next("next"); }
  EXPECT_EQ(names_of(folder.path()), before);
  for (const auto* name : {"triptych-results.backup", "triptych-kernel", "triptych-run-abcdef"})
    EXPECT_TRUE(fs::exists(folder / name / "mine")) << name;
}

TEST_F(TemporaryFolderTest, links_in_what_was_left_are_not_followed) {
  fs::create_directory(folder / "outside");
  test::put_file(folder / "outside/victim", "x");
  make_and_be_killed([&](const fs::path& path) {
    fs::create_directory_symlink(folder / "outside", path / "link");
    fs::create_hard_link(folder / "outside/victim", path / "hard");
  });
  { const TemporaryFolder next("next"); }
  EXPECT_THAT(names_of(folder.path()), ElementsAre("outside"));
  EXPECT_EQ(test::get_file(folder / "outside/victim"), "x");
}

/// Longer than any path that a system call takes, and deeper than there are descriptors.
TEST_F(TemporaryFolderTest, neither_depth_nor_missing_permissions_keep_it) {
  const std::string name(200, 'd');
  {
    const TemporaryFolder temporary("deep");
    int at = ::open(temporary.path().c_str(), O_RDONLY | O_DIRECTORY);
    for (int depth = 0; depth < 1100; ++depth) {
      ASSERT_EQ(::mkdirat(at, name.c_str(), 0700), 0) << depth;
      const int next = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY);
      if (depth % 100 == 99) ::fchmod(at, 0500);
      ::close(at);
      at = next;
    }
    ::close(::openat(at, "file", O_CREAT | O_WRONLY, 0600));
    ::fchmod(at, 0);
    ::close(at);
  }
  EXPECT_THAT(names_of(folder.path()), IsEmpty());
}

/// A process begins a file and is killed.
void write_and_be_killed(const fs::path& target) {
  const auto status = test::status_of(test::in_child([&] {
    AtomicFile file(target);
    ::raise(SIGKILL);
  }));
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(Temporaries, those_of_killed_writers_go_and_nothing_else) {
  const test::TemporaryFolder folder;
  write_and_be_killed(folder / "file.png");
  write_and_be_killed(folder / std::string(250, 'n'));
  const AtomicFile alive(folder / "alive");
  EXPECT_THAT(names_of(folder.path()), SizeIs(3));
  test::put_file(folder / "mine", "x");
  fs::create_symlink("mine", folder / ".link.1.2.triptych.tmp");
  fs::create_hard_link(folder / "mine", folder / ".hard.1.2.triptych.tmp");
  for (const auto* name : {".notes.1.2.tmp", ".1.2.triptych.tmp", "notes.1.2.triptych.tmp",
                           ".notes.a.2.triptych.tmp", ".notes..2.triptych.tmp"})
    test::put_file(folder / name, "x");
  const auto kept = names_of(folder.path()).size() - 2;
  remove_temporaries(folder.path());
  EXPECT_THAT(names_of(folder.path()), SizeIs(kept));
  EXPECT_EQ(test::get_file(folder / "mine"), "x");
}

TEST(Temporaries, those_below_a_folder_go_but_not_behind_links) {
  const test::TemporaryFolder folder;
  const test::TemporaryFolder outside;
  fs::create_directories(folder / "deep/er");
  write_and_be_killed(folder / "deep/er/file");
  write_and_be_killed(outside / "file");
  fs::create_directory_symlink(outside.path(), folder / "link");
  remove_temporaries_below(folder.path());
  remove_temporaries_below(folder / "link");
  EXPECT_THAT(names_of(folder / "deep/er"), IsEmpty());
  EXPECT_THAT(names_of(outside.path()), SizeIs(1));
}

}  // namespace
}  // namespace triptych
