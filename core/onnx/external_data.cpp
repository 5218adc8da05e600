// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/external_data.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "core/base/memory_budget.h"
#include "core/io/message_digest.h"
#include "core/onnx/hub_cache.h"

#include "core/io/beneath.h"

namespace triptych::onnx {
namespace {

using internal::FileDescriptor;
using internal::retry_interrupted;
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
