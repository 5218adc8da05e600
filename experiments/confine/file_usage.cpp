// SPDX-License-Identifier: Apache-2.0
#include "experiments/confine/file_usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "core/io/folder_tree.h"
#include "experiments/confine/confined.h"

namespace triptych::confine {
namespace {

constexpr std::int64_t kBlock = 4096;  // an empty file takes an inode
constexpr std::int64_t kAnyLimit = std::numeric_limits<std::int64_t>::max() / 4;

std::int64_t bytes_of(const struct stat& status) { return std::int64_t{status.st_blocks} * 512; }

/// False for a process at its end. Then only root may list its files.
bool has_memory(pid_t process) {
  std::int64_t pages = 0;
  std::ifstream(fmt::format("/proc/{}/statm", process)) >> pages;
  return pages > 0;
}

/// Files without a name, each counted once.
class Nameless {
 public:
  /// False when the process hides its files.
  bool add_open(pid_t process) {
    const auto path = fmt::format("/proc/{}/fd", process);
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(path.c_str()), closedir);
    if (!stream) return (errno != EACCES && errno != EPERM) || !has_memory(process);
    while (const auto* entry = readdir(stream.get())) {
      struct stat status = {};
      if (fstatat(dirfd(stream.get()), entry->d_name, &status, 0) != 0) continue;
      if (S_ISREG(status.st_mode) && status.st_nlink == 0) add(status);
    }
    return true;
  }

  /// A mapping keeps a file without a descriptor. Root alone may look at the file itself. For
  /// others it counts as large as one may be.
  void add_mapped(pid_t process) {
    std::ifstream maps(fmt::format("/proc/{}/maps", process));
    for (std::string line; std::getline(maps, line);) {
      if (!line.ends_with(" (deleted)")) continue;
      std::istringstream words(line);
      std::string range, access, offset, device, inode;
      words >> range >> access >> offset >> device >> inode;
      struct stat status = {};
      if (stat(fmt::format("/proc/{}/map_files/{}", process, range).c_str(), &status) == 0)
        add(status);
      else if (errno != ENOENT && mapped_.insert(device.append(" ").append(inode)).second)
        bytes_ += static_cast<std::int64_t>(kLargestFile);
    }
  }

  std::int64_t bytes() const { return bytes_; }

 private:
  void add(const struct stat& status) {
    if (seen_.emplace(status.st_dev, status.st_ino).second) bytes_ += bytes_of(status);
  }

  std::set<std::pair<dev_t, ino_t>> seen_;
  std::set<std::string> mapped_;
  std::int64_t bytes_ = 0;
};

}  // namespace

std::int64_t bytes_of_folder(const std::filesystem::path& folder) {
  std::int64_t bytes = 0;
  const bool complete = visit_tree(
      folder, [&](const TreeEntry& entry) { bytes += std::max(kBlock, bytes_of(entry.status)); });
  return complete ? bytes : kAnyLimit;
}

std::optional<std::int64_t> bytes_of_nameless_files(std::span<const pid_t> processes) {
  Nameless files;
  for (const auto process : processes) {
    if (!files.add_open(process)) return std::nullopt;
    files.add_mapped(process);
  }
  return files.bytes();
}

}  // namespace triptych::confine
