// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/hub_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>

#include "core/io/beneath.h"

namespace triptych::onnx {
namespace {

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

}  // namespace

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

}  // namespace triptych::onnx
