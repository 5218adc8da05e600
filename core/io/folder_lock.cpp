// SPDX-License-Identifier: Apache-2.0
#include "core/io/folder_lock.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>

#include "core/base/folder.h"
#include "core/io/beneath.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;

/// `folder` and the folders above it that are not there, the outermost first.
std::vector<fs::path> missing_of(fs::path folder) {
  std::vector<fs::path> missing;
  std::error_code ignored;
  for (; !folder.empty() && !fs::exists(folder, ignored); folder = folder.parent_path()) {
    if (folder.has_filename()) missing.push_back(folder);
    if (folder == folder.parent_path()) break;
  }
  std::ranges::reverse(missing);
  return missing;
}

}  // namespace

FolderLock::FolderLock(fs::path folder) : made_(missing_of(folder)) {
  struct stat status = {};
  do {
    if (!folder.empty()) make_folder(folder);
    descriptor_ = internal::open_folder(folder);
    if (descriptor_.get() < 0) internal::throw_errno("open", folder);
    const auto result =
        internal::retry_interrupted([&] { return ::flock(descriptor_.get(), LOCK_EX | LOCK_NB); });
    // A file system without locks is no reason to refuse the work.
    if (result != 0 && errno == EWOULDBLOCK) {
      throw IoError(
          fmt::format("\"{}\" is in use by another command; let it end, or give the option out "
                      "another folder",
                      folder.string()));
    }
    // A command that just ended may have removed its empty folder.
  } while (::fstat(descriptor_.get(), &status) == 0 && status.st_nlink == 0);
}

FolderLock::~FolderLock() {
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder)
    if (::rmdir(folder->c_str()) != 0) break;  // it is not empty
}

}  // namespace triptych
