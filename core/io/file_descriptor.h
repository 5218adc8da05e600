// An owned POSIX file descriptor, and the conversion of failed system calls to IoError.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace triptych::internal {

/// Throws IoError: `cannot <action> "<path>": <reason of errno>`.
[[noreturn]] inline void throw_errno(const std::string& action, const std::filesystem::path& path) {
  const auto reason = std::generic_category().message(errno);
  throw IoError("cannot " + action + " \"" + path.string() + "\": " + reason);
}

/// Calls `call` again while it is interrupted by a signal. Returns its last result.
template <class Call>
auto retry_interrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Closes on destruction. -1 when empty.
class FileDescriptor {
 public:
  explicit FileDescriptor(int value = -1) : value_(value) {}
  FileDescriptor(FileDescriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const { return value_; }
  void reset() {
    if (value_ >= 0) ::close(value_);
    value_ = -1;
  }

 private:
  int value_;
};

}  // namespace triptych::internal
