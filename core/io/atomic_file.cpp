// SPDX-License-Identifier: Apache-2.0
#include "core/io/atomic_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/base/folder.h"
#include "core/io/beneath.h"
#include "core/io/temporaries.h"

namespace triptych {
namespace {

using internal::FileDescriptor;
using internal::retry_interrupted;
using internal::throw_errno;

constexpr std::size_t kFollowEvery = std::size_t{16} << 20;

void sync(const FileDescriptor& descriptor, const std::filesystem::path& path) {
  const auto result = retry_interrupted([&] { return ::fsync(descriptor.get()); });
  if (result != 0) throw_errno("make durable", path);
}

/// Waits until earlier data have reached the disk, then sends the data written since.
void follow_disk(const FileDescriptor& descriptor, const std::filesystem::path& path) {
  constexpr unsigned flags = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE;
  const auto result =
      retry_interrupted([&] { return ::sync_file_range(descriptor.get(), 0, 0, flags); });
  if (result != 0 && errno != ENOSYS) throw_errno("write", path);
}

constexpr std::size_t kMostNameBytes = 200;  // of the target's, in a temporary file's name

/// True for ".NAME.PROCESS.NUMBER.triptych.tmp".
bool is_temporary_file(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kTemporarySuffix)) return false;
  name.remove_suffix(kTemporarySuffix.size());
  for (int number = 0; number < 2; ++number) {
    const auto dot = name.rfind('.');
    const auto digits = name.substr(dot + 1);
    if (digits.empty() || !std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }))
      return false;
    name = name.substr(0, dot);
  }
  return name.size() > 1;
}

FileDescriptor folder_of(const std::filesystem::path& target) {
  if (!target.has_filename()) {
    throw IoError(fmt::format("cannot write \"{}\": it names no file", target.string()));
  }
  auto folder = internal::open_folder(target.parent_path());
  if (folder.get() < 0) throw_errno("open", target.has_parent_path() ? target.parent_path() : ".");
  return folder;
}

/// Whether `name` in `folder` is the open file.
bool names_file(int folder, const std::string& name, const struct stat& file) {
  struct stat named = {};
  return ::fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         named.st_dev == file.st_dev && named.st_ino == file.st_ino;
}

/// Whether a killed writer left the open file: this user's, and no process holds it.
bool is_abandoned(const FileDescriptor& file, struct stat& status) {
  return ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && status.st_nlink == 1 &&
         ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target)
    : AtomicFile(folder_of(target), target.filename().string(), target) {}

AtomicFile::AtomicFile(FileDescriptor folder, std::string name, std::filesystem::path shown)
    : target_(std::move(shown)), folder_(std::move(folder)), name_(std::move(name)) {
  open_temporary();
}

void AtomicFile::open_temporary() {
  static std::atomic<unsigned> counter = 0;
  struct stat status = {};
  do {
    open_new_temporary(counter);
    // A file system without locks has no clean-up either: remove_temporaries() needs the lock.
    retry_interrupted([&] { return ::flock(descriptor_.get(), LOCK_EX); });
    // Another process may have removed it before it was locked.
  } while (::fstat(descriptor_.get(), &status) == 0 && status.st_nlink == 0);
}

void AtomicFile::open_new_temporary(std::atomic<unsigned>& counter) {
  std::error_code unknown;  // the current folder was removed
  const auto target = std::filesystem::absolute(target_, unknown);
  const auto folder = (unknown ? target_ : target).parent_path();
  forget_temporary(remembered_);
  int error = 0;
  do {  // an earlier process with this id may have been killed and left its file
    temporary_ = fmt::format(".{}.{}.{}{}", name_.substr(0, kMostNameBytes), ::getpid(), counter++,
                             kTemporarySuffix);
    remembered_ = folder / temporary_;
    make_temporary(remembered_, [&] {
      descriptor_ = FileDescriptor(retry_interrupted([&] {
        return ::openat(folder_.get(), temporary_.c_str(),
                        O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
      }));
      error = errno;
      return descriptor_.get() >= 0;
    });
  } while (descriptor_.get() < 0 && error == EEXIST);
  if (descriptor_.get() >= 0) return;
  temporary_.clear();
  errno = error;
  throw_errno("create", remembered_);
}

AtomicFile::~AtomicFile() {
  if (temporary_.empty()) return;
  ::unlinkat(folder_.get(), temporary_.c_str(), 0);
  forget_temporary(remembered_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = retry_interrupted([&] {
      return ::write(descriptor_.get(), bytes.data(), std::min(bytes.size(), kFollowEvery));
    });
    if (count < 0) throw_errno("write", target_);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    follow(static_cast<std::size_t>(count));
  }
}

void AtomicFile::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = retry_interrupted([&] {
      return ::pwrite(descriptor_.get(), bytes.data(), std::min(bytes.size(), kFollowEvery),
                      offset);
    });
    if (count < 0) throw_errno("write", target_);
    offset += count;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    follow(static_cast<std::size_t>(count));
  }
}

void AtomicFile::read_at(std::int64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const auto count = retry_interrupted(
        [&] { return ::pread(descriptor_.get(), into.data(), into.size(), offset); });
    if (count < 0) throw_errno("read back", target_);
    if (count == 0) throw IoError(fmt::format("\"{}\" ends early", target_.string()));
    offset += count;
    into = into.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::follow(std::size_t written) {
  behind_ += written;
  if (behind_ < kFollowEvery) return;
  follow_disk(descriptor_, target_);
  behind_ = 0;
}

void AtomicFile::commit() {
  sync(descriptor_, target_);
  const auto renamed = ::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str());
  if (renamed != 0) throw_errno("replace", target_);
  forget_temporary(remembered_);
  temporary_.clear();
  descriptor_.reset();
  sync(folder_, target_.has_parent_path() ? target_.parent_path() : ".");
}

void remove_temporaries(const std::filesystem::path& path,
                        const std::function<bool(const std::filesystem::path&)>& may_go) {
  const auto folder = internal::open_folder(path);
  std::error_code ignored;
  for (const auto& name : names_in(path, ignored)) {
    if (!is_temporary_file(name)) continue;
    const auto file = internal::open_beneath(folder.get(), name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat status = {};
    if (file.get() < 0 || !is_abandoned(file, status)) continue;
    if (may_go && !may_go(path / name)) continue;
    if (names_file(folder.get(), name, status)) ::unlinkat(folder.get(), name.c_str(), 0);
  }
}

void remove_temporaries_below(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(folder, ignored))) return;
  remove_temporaries(folder);
  for (const auto& name : names_in(folder, ignored)) remove_temporaries_below(folder / name);
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(content)));
  file.commit();
}

}  // namespace triptych
