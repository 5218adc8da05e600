// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/external_data.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/memory_budget.h"
#include "core/io/beneath.h"
#include "core/io/file_descriptor.h"
#include "core/io/message_digest.h"

namespace triptych::onnx {
namespace {

// Files in a cache of Hugging Face's hub, where a name is a link to a blob:
//
//   HUB/REPOSITORY/snapshots/REVISION/[...]/NAME -> ../../[../...]blobs/BLOB
//   HUB/REPOSITORY/blobs/BLOB                       a file, or -> ../../blobs/PREFIX/HASH
//   HUB/blobs/PREFIX/HASH                           a file that repositories share
//
// Only a link of exactly this form is followed, never by the system: each step is opened from the
// descriptor of a directory, without links.

using internal::FileDescriptor;
using internal::retry_interrupted;

constexpr std::string_view kUp = "../";
constexpr std::string_view kBlobs = "blobs/";
constexpr std::size_t kMostUps = 32;
constexpr std::size_t kPrefixDigits = 2;
constexpr std::size_t kHashDigits = 64;

FileDescriptor open_to_read(const FileDescriptor& folder, const std::string& path) {
  return internal::open_beneath(folder.get(), path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

FileDescriptor open_above(const FileDescriptor& folder, std::size_t levels) {
  std::string path;
  for (std::size_t i = 0; i < levels; ++i) path += kUp;
  return FileDescriptor(retry_interrupted(
      [&] { return ::openat(folder.get(), path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
}

/// Where a link leads: so many folders up, then to blobs/`name`.
struct Target {
  std::size_t ups = 0;
  std::string name;
};

std::optional<Target> target_of(const FileDescriptor& folder, const std::string& link) {
  std::array<char, 4096> buffer = {};
  const auto length = ::readlinkat(folder.get(), link.c_str(), buffer.data(), buffer.size());
  if (length < 0 || static_cast<std::size_t>(length) == buffer.size()) return std::nullopt;
  std::string_view text(buffer.data(), static_cast<std::size_t>(length));
  Target target;
  for (; text.starts_with(kUp); text.remove_prefix(kUp.size())) ++target.ups;
  if (target.ups > kMostUps || !text.starts_with(kBlobs)) return std::nullopt;
  target.name = text.substr(kBlobs.size());
  return target;
}

bool is_hexadecimal(std::string_view text) {
  return std::ranges::all_of(
      text, [](char digit) { return std::isxdigit(static_cast<unsigned char>(digit)) != 0; });
}

bool is_same(const FileDescriptor& a, const FileDescriptor& b) {
  struct stat one = {}, other = {};
  return ::fstat(a.get(), &one) == 0 && ::fstat(b.get(), &other) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// True for "ab/ab01...": the first digits of a hash, then all of them.
bool names_shared_blob(std::string_view name) {
  if (name.size() != kPrefixDigits + 1 + kHashDigits || name[kPrefixDigits] != '/') return false;
  const auto prefix = name.substr(0, kPrefixDigits), hash = name.substr(kPrefixDigits + 1);
  return is_hexadecimal(hash) && hash.starts_with(prefix);
}

FileDescriptor refused() {
  errno = ELOOP;
  return FileDescriptor();
}

/// The blob of the hub that the link `name` in the repository's blobs leads to.
FileDescriptor open_shared_blob(const FileDescriptor& repository, const std::string& name) {
  const auto blobs = internal::open_folder_beneath(repository.get(), "blobs");
  if (blobs.get() < 0) return refused();
  const auto target = target_of(blobs, name);
  if (!target || target->ups != 2 || !names_shared_blob(target->name)) return refused();
  return open_to_read(open_above(repository, 1), std::string(kBlobs) + target->name);
}

/// Opens the blob that the link `name` in `folder` leads to. Empty when that fails, with ELOOP in
/// errno when it is no link of a cache.
FileDescriptor open_cached_blob(const FileDescriptor& folder, const std::string& name) {
  const auto target = target_of(folder, name);
  if (!target || target->ups < 2 || target->name.empty() ||
      target->name.find('/') != std::string::npos) {
    return refused();
  }
  const auto repository = open_above(folder, target->ups);
  const auto snapshots = internal::open_folder_beneath(repository.get(), "snapshots");
  if (!is_same(snapshots, open_above(folder, target->ups - 1))) return refused();
  auto blob = open_to_read(repository, std::string(kBlobs) + target->name);
  if (blob.get() >= 0 || errno != ELOOP) return blob;
  return open_shared_blob(repository, target->name);
}

using internal::throw_errno;

constexpr std::size_t kChecksumDigits = 40;

[[noreturn]] void refuse(const std::string& location, const std::string& problem) {
  throw IoError(fmt::format("external data \"{}\": {}", location, problem));
}

/// A message ends at a zero.
std::string without_zeros(std::string name) {
  std::ranges::replace(name, '\0', '?');
  return name;
}

/// `checksum` in lower case.
std::string normalized(const std::string& checksum, const std::string& location) {
  std::string digits;
  for (const char digit : checksum) {
    const auto byte = static_cast<unsigned char>(digit);
    if (std::isxdigit(byte) != 0) digits += static_cast<char>(std::tolower(byte));
  }
  if (checksum.size() != kChecksumDigits || digits.size() != kChecksumDigits) {
    refuse(location,
           fmt::format("its checksum is not a SHA-1 of {} hexadecimal digits", kChecksumDigits));
  }
  return digits;
}

/// Status of an open file, which must be regular and have one name.
struct stat status_of(const FileDescriptor& file, const std::string& location) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) throw_errno("examine", location);
  if (!S_ISREG(status.st_mode)) refuse(location, "not a regular file");
  if (status.st_nlink != 1) {
    refuse(location, fmt::format("the file has {} names (hard links); copy it", status.st_nlink));
  }
  return status;
}

}  // namespace

ExternalFolder::ExternalFolder(std::filesystem::path model)
    : model_(std::move(model)), folder_(model_.has_parent_path() ? model_.parent_path() : ".") {}

void ExternalFolder::throw_not_opened(const std::string& location) const {
  if (errno == EXDEV) refuse(location, "leads out of the model's folder");
  if (errno == ELOOP) {
    refuse(location,
           "leads through a symbolic link, and not through one of a Hugging Face cache to a blob "
           "of its own repository; copy the file into the model's folder");
  }
  const auto reason = std::generic_category().message(errno);
  std::error_code ignored;
  const bool is_linked = std::filesystem::is_symlink(model_, ignored);
  throw IoError(
      fmt::format("cannot open \"{}\": {}{}", (folder_ / location).string(), reason,
                  is_linked ? "; data is looked for beside the link that names the model" : ""));
}

FileDescriptor ExternalFolder::open(const std::string& location) {
  if (descriptor_.get() < 0) {
    descriptor_ = FileDescriptor(retry_interrupted(
        [&] { return ::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
    if (descriptor_.get() < 0) throw_errno("open", folder_);
  }
  auto file = internal::open_beneath(descriptor_.get(), location, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (file.get() >= 0) return file;
  if (errno != ELOOP) throw_not_opened(location);
  const std::filesystem::path path(location);
  const auto folder = internal::open_folder_beneath(descriptor_.get(), path.parent_path());
  if (folder.get() >= 0) file = open_cached_blob(folder, path.filename());
  if (file.get() < 0) throw_not_opened(location);
  return file;
}

void ExternalFolder::verify(const InputFile& file, FileId id, const ExternalRange& range) {
  const auto expected = normalized(*range.checksum, range.location);
  auto& digest = digests_[id];
  if (digest.empty()) {
    if (static_cast<std::size_t>(file.size()) > memory_budget().limit()) {
      refuse(range.location,
             fmt::format("its checksum covers {} bytes, the memory limit is {}; raise the limit if "
                         "the file is trusted",
                         file.size(), memory_budget().limit()));
    }
    MessageDigest hash("SHA1");
    hash.update(file);
    digest = hash.finish();
  }
  if (digest == expected) return;
  refuse(range.location, fmt::format("the file's SHA-1 is {}, the model expects {}; the file was "
                                     "changed or belongs to another model",
                                     digest, expected));
}

ExternalBytes ExternalFolder::find(const ExternalRange& range, std::int64_t wanted) {
  const auto& location = range.location;
  if (location.empty() || location.find('\0') != std::string::npos) {
    refuse(without_zeros(location), "no name of a file");
  }
  if (range.length && *range.length != wanted) {
    refuse(location,
           fmt::format("its length is {}, shape and type need {}", *range.length, wanted));
  }
  auto descriptor = open(location);
  const auto status = status_of(descriptor, location);
  if (range.offset < 0 || range.offset > status.st_size || wanted > status.st_size - range.offset) {
    refuse(location, fmt::format("{} bytes from offset {} do not lie in its {} bytes", wanted,
                                 range.offset, status.st_size));
  }
  InputFile file(std::move(descriptor), folder_ / location,
                 std::numeric_limits<std::int64_t>::max());
  if (range.checksum) verify(file, {status.st_dev, status.st_ino}, range);
  return {std::move(file), range.offset};
}

}  // namespace triptych::onnx
