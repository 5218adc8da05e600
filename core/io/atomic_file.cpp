// SPDX-License-Identifier: Apache-2.0
#include "core/io/atomic_file.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <regex>

#include "core/base/folder.h"
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

/// Waits until what was on its way to the disk is there, and sends what was written since.
void follow_disk(const FileDescriptor& descriptor, const std::filesystem::path& path) {
  constexpr unsigned flags = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE;
  const auto result =
      retry_interrupted([&] { return ::sync_file_range(descriptor.get(), 0, 0, flags); });
  if (result != 0 && errno != ENOSYS) throw_errno("write", path);
}

void sync_folder_of(const std::filesystem::path& path) {
  const auto folder = path.has_parent_path() ? path.parent_path() : ".";
  const FileDescriptor descriptor(retry_interrupted(
      [&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (descriptor.get() < 0) throw_errno("open", folder);
  sync(descriptor, folder);
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  if (!target_.has_filename()) {
    throw IoError(fmt::format("cannot write \"{}\": it names no file", target_.string()));
  }
  open_temporary();
}

void AtomicFile::open_temporary() {
  static std::atomic<unsigned> counter = 0;
  int error = 0;
  do {  // an earlier process with this id may have been killed and left its file
    auto name = fmt::format(".{}.{}.{}{}", target_.filename().string(), ::getpid(), counter++,
                            kTemporarySuffix);
    temporary_ = make_temporary([&] {
      const auto path = target_.parent_path() / name;
      descriptor_ = FileDescriptor(retry_interrupted(
          [&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }));
      error = errno;
      return path;
    });
    if (descriptor_.get() >= 0) return;
    forget_temporary(temporary_);
  } while (error == EEXIST);
  errno = error;
  throw_errno("create", temporary_);
}

AtomicFile::~AtomicFile() {
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  forget_temporary(temporary_);
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
  descriptor_.reset();
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) throw_errno("replace", target_);
  forget_temporary(temporary_);
  temporary_.clear();
  sync_folder_of(target_);
}

void remove_temporaries(const std::filesystem::path& folder, const std::set<std::string>& names) {
  static const std::regex temporary(R"(\.(.+)\.\d+\.\d+\.tmp)");
  std::error_code ignored;
  for (const auto& name : names_in(folder, ignored)) {
    std::smatch parts;
    if (std::regex_match(name, parts, temporary) && names.contains(parts[1]))
      std::filesystem::remove(folder / name, ignored);
  }
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(content)));
  file.commit();
}

}  // namespace triptych
