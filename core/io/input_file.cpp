// SPDX-License-Identifier: Apache-2.0
#include "core/io/input_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

namespace triptych {

using internal::retry_interrupted;
using internal::throw_errno;

namespace {

/// Non-blocking, so that opening a named pipe cannot hang before it is refused.
internal::FileDescriptor open_to_read(const std::filesystem::path& path) {
  if (path.native().find('\0') != std::string::npos) throw IoError("a file name holds a NUL");
  internal::FileDescriptor file(retry_interrupted(
      [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  if (file.get() < 0) throw_errno("open", path);
  return file;
}

}  // namespace

InputFile::InputFile(std::filesystem::path path, std::int64_t max_bytes)
    : InputFile(open_to_read(path), path, max_bytes) {}

InputFile::InputFile(internal::FileDescriptor opened, std::filesystem::path path,
                     std::int64_t max_bytes)
    : path_(std::move(path)), descriptor_(std::move(opened)) {
  struct stat status = {};
  if (::fstat(descriptor_.get(), &status) != 0) throw_errno("examine", path_);
  if (!S_ISREG(status.st_mode)) refuse("not a regular file");
  size_ = status.st_size;
  if (size_ > max_bytes) {
    refuse(fmt::format("{} bytes, the limit is {}; raise it if the file is trusted", size_,
                       max_bytes));
  }
}

void InputFile::read(std::int64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const auto count = retry_interrupted(
        [&] { return ::pread(descriptor_.get(), into.data(), into.size(), offset); });
    if (count < 0) throw_errno("read", path_);
    if (count == 0) refuse(fmt::format("ends at byte {}, more was expected", offset));
    into = into.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

std::string InputFile::read_text(std::int64_t offset, std::int64_t count) const {
  const auto bytes = static_cast<std::size_t>(count);
  memory_budget().require(bytes, fmt::format("\"{}\"", path_.string()));
  std::string text(bytes, '\0');
  read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

void InputFile::refuse(const std::string& problem) const {
  throw IoError(fmt::format("\"{}\": {}", path_.string(), problem));
}

void InputFile::refuse_memory(const std::string& problem) const {
  const auto name = fmt::format("\"{}\"", path_.string());
  throw MemoryLimitError(problem.starts_with(name) ? problem : name + ": " + problem);
}

std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes) {
  const InputFile file(path, max_bytes);
  return file.read_text(0, file.size());
}

}  // namespace triptych
