// Temporary files of a process that a signal ends.
// SPDX-License-Identifier: Apache-2.0
#include "core/io/temporaries.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "core/io/atomic_file.h"
#include "core/io/temporary_folder.h"
#include "tests/unit/io/test_files.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;

/// Ends as a stopped program does, in the middle of its work.
[[noreturn]] void end_in_the_middle(const fs::path& folder) {
  ::setenv("TMPDIR", folder.c_str(), 1);
  fs::current_path(folder);
  const TemporaryFolder whole("test");
  test::put_file(whole.path() / "deep.txt", "temporary");
  fs::create_symlink(folder / "mine.txt", whole.path() / "link");
  AtomicFile finished("done.txt");
  finished.commit();
  const AtomicFile open("late.txt");
  { const TemporaryFolder ended("test"); }
  remove_temporaries_of_process();
  std::_Exit(0);
}

TEST(Temporaries, of_a_process_that_ends_are_removed_and_its_results_stay) {
  const test::TemporaryFolder folder;
  test::put_file(folder.path() / "mine.txt", "mine");
  EXPECT_EXIT(end_in_the_middle(folder.path()), testing::ExitedWithCode(0), "");
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    left.insert(entry.path().filename().string());
  EXPECT_EQ(left, (std::set<std::string>{"done.txt", "mine.txt"}));
}

/// Fails to make a file, for another one has its name; then ends as a stopped program does.
[[noreturn]] void end_after_a_failure(const fs::path& path) {
  const bool made = make_temporary(path, [] { return false; });
  try {
    AtomicFile file(path / "impossible");
  } catch (const IoError&) {
    remove_temporaries_of_process();
    std::_Exit(made ? 1 : 0);
  }
  std::_Exit(2);
}

/// Meets a foreign file under the name that its next temporary would have.
[[noreturn]] void end_beside_a_foreign_file(const fs::path& folder) {
  fs::path next;
  {
    const AtomicFile probe(folder / "f");
    const auto name = fs::directory_iterator(folder)->path().filename().string();
    const auto end = name.size() - kTemporarySuffix.size(), begin = name.rfind('.', end - 1) + 1;
    const auto number = std::stoi(name.substr(begin, end - begin)) + 1;
    next = folder / (name.substr(0, begin) + std::to_string(number) + name.substr(end));
  }
  test::put_file(next, "by hand");
  const AtomicFile file(folder / "f");
  remove_temporaries_of_process();
  std::_Exit(test::get_file(next) == "by hand" ? 0 : 1);
}

TEST(Temporaries, that_met_a_foreign_file_leave_it) {
  const test::TemporaryFolder folder;
  EXPECT_EXIT(end_beside_a_foreign_file(folder.path()), testing::ExitedWithCode(0), "");
  EXPECT_EQ(test::files_in(folder.path()), 1);
}

TEST(Temporaries, that_were_not_made_are_those_of_others_and_stay) {
  const test::TemporaryFolder folder;
  test::put_file(folder / "foreign", "by hand");
  EXPECT_EXIT(end_after_a_failure(folder / "foreign"), testing::ExitedWithCode(0), "");
  EXPECT_EQ(test::get_file(folder / "foreign"), "by hand");
}

}  // namespace
}  // namespace triptych
