// Folders and files that tests make, and the real data that some tests read when it is there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "core/io/temporary_folder.h"

namespace triptych::test {

/// A folder of its own, removed with its content at the end.
class TemporaryFolder : public triptych::TemporaryFolder {
 public:
  TemporaryFolder() : triptych::TemporaryFolder("test") {}

  std::filesystem::path operator/(const std::string& name) const { return path() / name; }
};

inline void put_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string get_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Runs `body` in a child process that ends without unwinding. Its exit status is 0 when it
/// returned.
inline pid_t in_child(const std::function<void()>& body) {
  const auto child = ::fork();
  if (child != 0) return child;
  try {
    body();
    ::_exit(0);
  } catch (const std::exception&) {
    ::_exit(1);
  }
}

inline int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

inline std::ptrdiff_t files_in(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

/// `name` inside TRIPTYCH_TEST_DATA, or inside ../shared/data next to the sources. Empty when it is
/// not there.
inline std::filesystem::path test_data(const std::string& source_folder, const std::string& name) {
  const char* chosen = std::getenv("TRIPTYCH_TEST_DATA");
  const std::filesystem::path root = chosen != nullptr ? chosen : source_folder + "/../shared/data";
  std::error_code ignored;
  return std::filesystem::exists(root / name, ignored) ? root / name : std::filesystem::path();
}

}  // namespace triptych::test
