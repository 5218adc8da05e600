// SPDX-License-Identifier: Apache-2.0
#include "core/io/open_beneath.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/io/file_descriptor.h"

namespace triptych {
namespace {

using internal::FileDescriptor;
using internal::retry_interrupted;

[[noreturn]] void refuse(const std::string& name, const std::string& problem) {
  throw IoError(fmt::format("\"{}\": {}", name, problem));
}

/// The open file and its size; descriptor -1 where nothing has the name.
struct Opened {
  FileDescriptor file;
  std::int64_t size = 0;
};

Opened open_file(const std::filesystem::path& folder, const std::string& name) {
  const FileDescriptor root(
      retry_interrupted([&] { return ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
  if (root.get() < 0) internal::throw_errno("open", folder);
  struct open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  Opened opened{FileDescriptor(static_cast<int>(retry_interrupted(
      [&] { return ::syscall(SYS_openat2, root.get(), name.c_str(), &how, sizeof how); })))};
  if (opened.file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return opened;
    if (errno == EXDEV || errno == ELOOP)
      refuse(name, "is a symbolic link or lies behind one; put the file itself there");
    if (errno == ENOSYS)
      throw DeviceError("files of others are opened by openat2, which needs Linux 5.6");
    internal::throw_errno("open", name);
  }
  struct stat status = {};
  if (::fstat(opened.file.get(), &status) != 0) internal::throw_errno("examine", name);
  if (!S_ISREG(status.st_mode)) refuse(name, "is no regular file");
  if (status.st_nlink != 1)
    refuse(name, fmt::format("has {} names (hard links); put a copy there", status.st_nlink));
  opened.size = status.st_size;
  return opened;
}

}  // namespace

bool is_file_beneath(const std::filesystem::path& folder, const std::string& name) {
  return open_file(folder, name).file.get() >= 0;
}

std::string read_beneath(const std::filesystem::path& folder, const std::string& name,
                         std::int64_t max_bytes) {
  const auto opened = open_file(folder, name);
  if (opened.file.get() < 0) refuse(name, "there is no such file");
  if (opened.size > max_bytes)
    refuse(name, fmt::format("has {} bytes, and {} are allowed", opened.size, max_bytes));
  std::string text(static_cast<std::size_t>(opened.size), '\0');
  for (std::size_t done = 0; done < text.size();) {
    const auto count = retry_interrupted([&] {
      return ::pread(opened.file.get(), text.data() + done, text.size() - done,
                     static_cast<off_t>(done));
    });
    if (count < 0) internal::throw_errno("read", name);
    if (count == 0) refuse(name, "became shorter while it was read");
    done += static_cast<std::size_t>(count);
  }
  return text;
}

}  // namespace triptych
