// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/external_data.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/io/beneath.h"

namespace triptych::onnx {
namespace {

using internal::FileDescriptor;
using internal::retry_interrupted;
using internal::throw_errno;

[[noreturn]] void refuse(const std::string& location, const std::string& problem) {
  throw IoError(fmt::format("external data \"{}\": {}", location, problem));
}

/// A message ends at a zero.
std::string without_zeros(std::string name) {
  std::ranges::replace(name, '\0', '?');
  return name;
}

/// Size of an open file, which must be regular and have one name.
std::int64_t size_of(const FileDescriptor& file, const std::string& location) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) throw_errno("examine", location);
  if (!S_ISREG(status.st_mode)) refuse(location, "not a regular file");
  if (status.st_nlink != 1) {
    refuse(location, fmt::format("the file has {} names (hard links); copy it", status.st_nlink));
  }
  return status.st_size;
}

}  // namespace

ExternalFolder::ExternalFolder(const std::filesystem::path& model)
    : folder_(model.has_parent_path() ? model.parent_path() : ".") {}

FileDescriptor ExternalFolder::open(const std::string& location) {
  if (descriptor_.get() < 0) {
    descriptor_ = FileDescriptor(retry_interrupted(
        [&] { return ::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
    if (descriptor_.get() < 0) throw_errno("open", folder_);
  }
  auto file = internal::open_beneath(descriptor_.get(), location, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (file.get() >= 0) return file;
  if (errno == EXDEV || errno == ELOOP) {
    refuse(location, "leads out of the model's folder or through a symbolic link");
  }
  throw_errno("open", folder_ / location);
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
  ExternalBytes bytes;
  bytes.file_ = open(location);
  bytes.location_ = location;
  bytes.offset_ = range.offset;
  const auto size = size_of(bytes.file_, location);
  if (range.offset < 0 || range.offset > size || wanted > size - range.offset) {
    refuse(location, fmt::format("{} bytes from offset {} do not lie in its {} bytes", wanted,
                                 range.offset, size));
  }
  return bytes;
}

void ExternalBytes::read(std::span<std::byte> into) const {
  auto offset = offset_;
  while (!into.empty()) {
    const auto count =
        retry_interrupted([&] { return ::pread(file_.get(), into.data(), into.size(), offset); });
    if (count < 0) throw_errno("read", location_);
    if (count == 0) refuse(location_, "became shorter while it was read");
    into = into.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

}  // namespace triptych::onnx
