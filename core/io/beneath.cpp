// SPDX-License-Identifier: Apache-2.0
#include "core/io/beneath.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/io/input_file.h"

namespace triptych::internal {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

/// Parts of a name that stays beneath its folder, without ".".
std::vector<std::string> parts_of(const fs::path& name) {
  std::vector<std::string> parts;
  for (const auto& part : name)
    if (!part.empty() && part != ".") parts.push_back(part.string());
  return parts;
}

/// A folder opened through a link fails by ENOTDIR. This function returns ELOOP for it.
int reason_of(int folder, const std::string& name, int error) {
  struct stat status = {};
  const bool link = error == ENOTDIR &&
                    ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISLNK(status.st_mode);
  return link ? ELOOP : error;
}

FileDescriptor open_part(int folder, const std::string& name, int flags, mode_t mode = 0) {
  FileDescriptor file(retry_interrupted(
      [&] { return ::openat(folder, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode); }));
  if (file.get() < 0) errno = reason_of(folder, name, errno);
  return file;
}

/// The folder that holds the last of `parts`.
FileDescriptor open_parent(int folder, const std::vector<std::string>& parts) {
  FileDescriptor open(::fcntl(folder, F_DUPFD_CLOEXEC, 0));
  for (std::size_t i = 0; i + 1 < parts.size() && open.get() >= 0; ++i)
    open = open_part(open.get(), parts[i], kFolderFlags);
  return open;
}

/// Calls `use` with the folder of the last part and that part.
template <class Result, class Use>
Result with_parent(int folder, const fs::path& name, Result failed, const Use& use) {
  if (!stays_beneath(name)) {
    errno = EXDEV;
    return failed;
  }
  const auto parts = parts_of(name);
  const auto parent = open_parent(folder, parts);
  return parent.get() < 0 ? std::move(failed) : use(parent.get(), parts.back());
}

}  // namespace

bool stays_beneath(const fs::path& name) {
  const bool leaves = name.is_absolute() || name.native().find('\0') != std::string::npos ||
                      std::ranges::count(name, fs::path("..")) > 0;
  return !leaves && !parts_of(name).empty();
}

FileDescriptor open_folder(const fs::path& path) {
  const auto* name = path.empty() ? "." : path.c_str();
  return FileDescriptor(
      retry_interrupted([&] { return ::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
}

FileDescriptor open_beneath(int folder, const fs::path& name, int flags, mode_t mode) {
  return with_parent(folder, name, FileDescriptor(), [&](int parent, const std::string& last) {
    return open_part(parent, last, flags, mode);
  });
}

FileDescriptor open_folder_beneath(int folder, const fs::path& name) {
  if (name.empty()) return FileDescriptor(::fcntl(folder, F_DUPFD_CLOEXEC, 0));
  return open_beneath(folder, name, kFolderFlags);
}

FileDescriptor make_folder_beneath(int folder, const fs::path& name) {
  FileDescriptor open(::fcntl(folder, F_DUPFD_CLOEXEC, 0));
  if (name.empty()) return open;
  if (!stays_beneath(name)) {
    errno = EXDEV;
    return FileDescriptor();
  }
  for (const auto& part : parts_of(name)) {
    if (::mkdirat(open.get(), part.c_str(), 0777) != 0 && errno != EEXIST) return FileDescriptor();
    open = open_part(open.get(), part, O_RDONLY | O_DIRECTORY);
    if (open.get() < 0) break;
  }
  return open;
}

std::optional<struct stat> status_beneath(int folder, const fs::path& name) {
  using Status = std::optional<struct stat>;
  return with_parent(folder, name, Status(), [](int parent, const std::string& last) -> Status {
    struct stat status = {};
    if (::fstatat(parent, last.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
    return status;
  });
}

int unlink_beneath(int folder, const fs::path& name) {
  return with_parent(folder, name, -1, [](int parent, const std::string& last) {
    return ::unlinkat(parent, last.c_str(), 0);
  });
}

}  // namespace triptych::internal

namespace triptych {
namespace {

using internal::FileDescriptor;

[[noreturn]] void refuse(const std::string& name, const std::string& problem) {
  throw IoError(fmt::format("\"{}\": {}", name, problem));
}

/// The open file, or descriptor -1 when the name does not exist.
FileDescriptor open_file(const std::filesystem::path& folder, const std::string& name) {
  const auto root = internal::open_folder(folder);
  if (root.get() < 0) internal::throw_errno("open", folder);
  auto file = internal::open_beneath(root.get(), name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return file;
    if (errno == EXDEV || errno == ELOOP)
      refuse(name, "is a symbolic link or lies behind one; put the file itself there");
    internal::throw_errno("open", name);
  }
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) internal::throw_errno("examine", name);
  if (!S_ISREG(status.st_mode)) refuse(name, "is no regular file");
  if (status.st_nlink != 1)
    refuse(name, fmt::format("has {} names (hard links); put a copy there", status.st_nlink));
  return file;
}

}  // namespace

bool is_file_beneath(const std::filesystem::path& folder, const std::string& name) {
  return open_file(folder, name).get() >= 0;
}

std::string read_beneath(const std::filesystem::path& folder, const std::string& name,
                         std::int64_t max_bytes) {
  auto opened = open_file(folder, name);
  if (opened.get() < 0) refuse(name, "there is no such file");
  const InputFile file(std::move(opened), name);
  if (file.size() > max_bytes)
    refuse(name, fmt::format("has {} bytes, and {} are allowed", file.size(), max_bytes));
  return file.read_text(0, file.size());
}

}  // namespace triptych
