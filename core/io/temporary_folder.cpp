// SPDX-License-Identifier: Apache-2.0
#include "core/io/temporary_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/folder.h"
#include "core/io/beneath.h"
#include "core/io/folder_tree.h"
#include "core/io/temporaries.h"

namespace triptych {
namespace {

namespace fs = std::filesystem;
using internal::FileDescriptor;

constexpr std::string_view kPrefix = "triptych-";
constexpr std::string_view kUnique = ".XXXXXX";  // as mkdtemp wants it
/// The folder within it. One of such a name without this one is somebody else's.
constexpr const char* kMark = ".triptych-files";

/// True for "triptych-PURPOSE.XXXXXX".
bool is_temporary_folder(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() <= kPrefix.size() + kUnique.size()) return false;
  const auto unique = name.substr(name.size() - kUnique.size());
  return unique.front() == '.' && std::ranges::all_of(unique.substr(1), [](unsigned char c) {
           return std::isalnum(c) != 0;
         });
}

/// The folder, open and locked, or nothing while its owner lives or when another user owns it.
std::optional<FileDescriptor> take(int where, const std::string& name) {
  auto folder = internal::open_beneath(where, name, O_RDONLY | O_DIRECTORY);
  struct stat status = {};
  const bool taken = folder.get() >= 0 && ::fstat(folder.get(), &status) == 0 &&
                     status.st_uid == ::geteuid() && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
  if (!taken) return std::nullopt;
  return folder;
}

/// Removes the folders of killed processes of this user in `where`.
void remove_abandoned(const fs::path& where) {
  const auto open = internal::open_folder(where);
  std::error_code ignored;
  for (const auto& name : names_in(where, ignored)) {
    if (!is_temporary_folder(name)) continue;
    const auto folder = take(open.get(), name);
    if (!folder) continue;
    const auto mark = internal::status_beneath(folder->get(), kMark);
    if (mark && S_ISDIR(mark->st_mode)) {
      remove_tree(where / name);
    } else {  // goes only if it is empty: its owner was killed as it began
      ::unlinkat(open.get(), name.c_str(), AT_REMOVEDIR);
    }
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder(std::string_view purpose) {
  const auto where = fs::absolute(fs::temp_directory_path());
  remove_abandoned(where);
  struct stat status = {};
  do {
    forget_temporary(outer_);
    outer_ = make_temporary_folder(where / fmt::format("{}{}{}", kPrefix, purpose, kUnique));
    if (outer_.empty())
      throw IoError(fmt::format("cannot make a folder in \"{}\"", where.string()));
    descriptor_ = internal::open_folder(outer_);
    if (descriptor_.get() < 0) continue;  // another process has just removed it
    internal::retry_interrupted([&] { return ::flock(descriptor_.get(), LOCK_EX); });
  } while (descriptor_.get() < 0 ||
           (::fstat(descriptor_.get(), &status) == 0 && status.st_nlink == 0));
  // Other users who may enter path() come through the outer folder. A confined process cannot
  // change modes, and starts no process of another user.
  [[maybe_unused]] const auto opened = ::fchmod(descriptor_.get(), S_IRWXU | S_IXGRP | S_IXOTH);
  const bool made = ::mkdirat(descriptor_.get(), kMark, S_IRWXU) == 0;
  path_ = outer_ / kMark;
  if (made) return;
  const int error = errno;
  ::rmdir(outer_.c_str());
  forget_temporary(outer_);
  errno = error;
  internal::throw_errno("write to", outer_);
}

TemporaryFolder::~TemporaryFolder() {
  remove_tree(outer_);
  forget_temporary(outer_);
}

}  // namespace triptych
