// SPDX-License-Identifier: Apache-2.0
#include "core/base/shared_library.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace triptych {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

/// A folder of its own, without anything of this machine.
class SharedLibraries : public testing::Test {
 protected:
  SharedLibraries() {
    fs::remove_all(root_);
    fs::create_directories(root_);
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX", "TOOLKIT"}) unsetenv(name);
    setenv("PATH", (root_ / "nothing").c_str(), 1);
    setenv("HOME", (root_ / "nobody").c_str(), 1);
  }
  ~SharedLibraries() override { fs::remove_all(root_); }

  fs::path make_folder(const fs::path& folder) {
    fs::create_directories(root_ / folder);
    return root_ / folder;
  }
  fs::path place(const fs::path& folder, const char* name = "libfound.so.3") {
    const auto path = make_folder(folder) / name;
    fs::copy_file(TRIPTYCH_FOUND_LIBRARY, path);
    return path;
  }
  SharedLibrary open(const char* file = "libfound.so.3") { return {file, places_}; }

  fs::path root_ = fs::temp_directory_path() / "triptych_shared_library_test";
  LibraryPlaces places_{"TOOLKIT", (root_ / "default").string(), "vendor"};
};

TEST_F(SharedLibraries, one_of_the_default_toolkit_is_found_and_called) {
  const auto path = place("default/lib64");
  auto library = open();
  ASSERT_EQ(library.problem(), "");
  EXPECT_EQ(library.path(), path);
  int (*answer)() = library.find("found_answer");
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer(), 42);
}

TEST_F(SharedLibraries, the_toolkit_of_the_environment_comes_before_the_default) {
  place("default/lib64", "libsecond.so.3");
  const auto path = place("other/lib64", "libsecond.so.3");
  setenv("TOOLKIT", (root_ / "other").c_str(), 1);
  EXPECT_EQ(open("libsecond.so.3").path(), path);
}

TEST_F(SharedLibraries, folders_of_python_packages_follow_the_toolkits) {
  const auto toolkit = make_folder("default/lib64");
  const auto own = make_folder("venv/lib/python3.12/site-packages/vendor/blas/lib");
  const auto debian = make_folder("machine/lib/python3/dist-packages/vendor/dnn/lib");
  make_folder("venv/lib/python3.12/site-packages/other/blas/lib");
  make_folder("machine/bin");
  std::ofstream(root_ / "machine/bin/python3") << "";
  setenv("VIRTUAL_ENV", (root_ / "venv").c_str(), 1);
  setenv("PATH", (root_ / "machine/bin").c_str(), 1);
  EXPECT_EQ(library_folders(places_), (std::vector<std::string>{toolkit, own, debian}));
}

TEST_F(SharedLibraries, a_python_that_is_a_link_is_followed) {
  const auto packages = make_folder("real/lib/python3.12/site-packages/vendor/blas/lib");
  make_folder("real/bin");
  make_folder("bin");
  std::ofstream(root_ / "real/bin/python3") << "";
  fs::create_symlink(root_ / "real/bin/python3", root_ / "bin/python3");
  setenv("PATH", (root_ / "bin").c_str(), 1);
  EXPECT_EQ(library_folders(places_), (std::vector<std::string>{packages}));
}

TEST_F(SharedLibraries, none_is_looked_for_in_the_current_directory) {
  const auto here = fs::current_path();
  place("lib64");
  make_folder("lib/python3.12/site-packages/vendor/blas/lib");
  make_folder("bin");
  std::ofstream(root_ / "bin/python3") << "";
  std::ofstream(root_ / "python3") << "";
  fs::current_path(root_);
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX", "TOOLKIT"}) setenv(name, ".", 1);
  for (const char* path : {":/nowhere", ".", "bin"}) {
    setenv("PATH", path, 1);
    EXPECT_THAT(library_folders(places_), testing::IsEmpty()) << path;
  }
  fs::current_path(here);
}

TEST_F(SharedLibraries, one_that_is_missing_is_told_with_the_places) {
  const auto folder = make_folder("default/lib64");
  EXPECT_THAT(open().problem(), AllOf(HasSubstr("libfound.so.3"), HasSubstr(folder.string())));
  EXPECT_EQ(open().path(), "");
  void (*nothing)() = open().find("found_answer");
  EXPECT_EQ(nothing, nullptr);
}

TEST_F(SharedLibraries, one_of_another_version_is_named_and_not_taken) {
  const auto path = place("default/lib64", "libfound.so.2");
  EXPECT_THAT(open("libfound.so.4").problem(), HasSubstr(path.string() + " is of another version"));
}

TEST_F(SharedLibraries, one_that_is_broken_is_told_in_the_linkers_words) {
  const auto folder = make_folder("default/lib64");
  std::ofstream(folder / "libbroken.so.3") << "not a library";
  EXPECT_THAT(open("libbroken.so.3").problem(), HasSubstr((folder / "libbroken.so.3").string()));
}

TEST_F(SharedLibraries, a_function_that_it_lacks_is_told) {
  place("default/lib64", "libolder.so.3");
  auto library = open("libolder.so.3");
  void (*nothing)() = library.find("found_later");
  EXPECT_EQ(nothing, nullptr);
  EXPECT_THAT(library.problem(), HasSubstr("has no found_later"));
}

}  // namespace
}  // namespace triptych
